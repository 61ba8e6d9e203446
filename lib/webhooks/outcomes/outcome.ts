import { CodedError } from '../../errors.ts';

/**
 * What an attempt came to. `delivered` is any 2xx in time; `interrupted` (a fault) and `invalid_message` say nothing of the receiver; everything else
 * is a failure.
 * `outcome-words.ts` says what each one means.
 */
export const OUTCOME_CODES = [
    'delivered',
    'interrupted',
    'invalid_exporter',
    'invalid_message',
    'address_blocked',
    'dns_not_found',
    'dns_failed',
    'dns_timeout',
    'connect_refused',
    'connect_timeout',
    'connect_failed',
    'connection_reset',
    'tls_self_signed',
    'tls_unknown_ca',
    'tls_expired',
    'tls_not_yet_valid',
    'tls_name_mismatch',
    'tls_client_cert_required',
    'tls_failed',
    'proxy_refused',
    'proxy_failed',
    'token_failed',
    'headers_timeout',
    'timeout',
    'protocol_error',
    'redirect_refused',
    'gone',
    'rate_limited',
    'client_error',
    'server_error',
    'unexpected_status',
] as const;

/** One of {@link OUTCOME_CODES}. */
export type OutcomeCode = (typeof OUTCOME_CODES)[number];

/** The phases of an attempt that are timed, in their order. */
export const ATTEMPT_PHASES = ['dns', 'connect', 'tls', 'firstByte'] as const;

/** Whole milliseconds from the start of the attempt's phase to its end; null for a phase that was not reached or not needed. */
export interface Timings {
    readonly dns: number | null;
    readonly connect: number | null;
    readonly tls: number | null;
    /** From the request's last byte written to the first byte of the response's head. */
    readonly firstByte: number | null;
    /** The whole attempt. */
    readonly total: number;
}

/** What one POST came to, as the sender saw it. */
export interface Outcome {
    readonly code: OutcomeCode;
    /** HTTP status, null when no response came. */
    readonly status: number | null;
    /** One sentence for people, for example `The connection to 192.0.2.7:443 was refused`. Never holds secrets, header values or the URL's query. */
    readonly detail: string;
    /** The receiver's `Retry-After` as milliseconds from the end of the attempt, at most 24 hours; null when absent or unusable. */
    readonly retryAfter: number | null;
    readonly timings: Timings;
    /**
     * The address of the receiver to which a connection was tried last, also through a proxy. Null when none was known, for example where the
     * proxy resolves names.
     */
    readonly address: string | null;
    /** SHA-256 fingerprint of the certificate presented, null for http or before the handshake. */
    readonly fingerprint: string | null;
    /** The certificate presented; absent for http, before the handshake, and for a certificate with an impossible date. */
    readonly certificate?: PresentedCertificate;
}

/** What people should know of a receiver's certificate before it ends. */
export interface PresentedCertificate {
    /** At most 200 characters, as the certificate says, and safe to print: `C=US, O=Let's Encrypt, CN=R11`. */
    readonly issuer: string;
    /** ISO 8601, in UTC. */
    readonly expiresAt: string;
}

/** What an attempt came to, without what was measured on the way. */
export type AttemptResult = Pick<Outcome, 'code' | 'status' | 'detail' | 'retryAfter'>;

/** What is measured on the way, kept apart from the result so that a failed attempt still tells how far it came. Times in milliseconds. */
export interface AttemptProgress extends Record<(typeof ATTEMPT_PHASES)[number], number | null> {
    address: string | null;
    fingerprint: string | null;
    certificate: PresentedCertificate | null;
}

/** The progress of an attempt that has not begun. */
export function newProgress(): AttemptProgress {
    return { dns: null, connect: null, tls: null, firstByte: null, address: null, fingerprint: null, certificate: null };
}

/**
 * The outcome of an attempt.
 *
 * @param total Milliseconds of the whole attempt.
 */
export function outcomeOf(result: AttemptResult, progress: AttemptProgress, total: number): Outcome {
    const { address, fingerprint, certificate } = progress;
    return { ...result, timings: timingsOf(progress, total), address, fingerprint, ...(certificate !== null && { certificate }) };
}

/** The outcome of an attempt that ended before anything was sent: nothing was measured, and it took no time. */
export function unsentOutcome(result: AttemptResult): Outcome {
    return outcomeOf(result, newProgress(), 0);
}

/** The times so far. @param total Milliseconds since the attempt began. */
export function timingsOf({ dns, connect, tls, firstByte }: AttemptProgress, total: number): Timings {
    const whole = (time: number | null): number | null => (time === null ? null : Math.round(time));
    return { dns: whole(dns), connect: whole(connect), tls: whole(tls), firstByte: whole(firstByte), total: Math.round(total) };
}

/** Why a claim was taken away from its holder. */
export const INTERRUPTIONS = {
    expired: 'No outcome was recorded before the claim ran out',
    removed: 'The exporter was removed during the attempt',
    erased: 'The body of the event was erased during the attempt',
    /** Meanwhile somebody may have changed the exporter, and have been told that nothing is sent to where it pointed before. */
    late: 'The settings of the exporter had come too late to begin with them',
    /** An earlier attempt of the delivery had been answered with a 2xx, and its late outcome was recorded while this attempt was under way. */
    delivered: 'The receiver had taken an earlier attempt, which was heard of during this one',
} as const;

/**
 * The outcome of an attempt whose claim was taken away; what the receiver got is unknown.
 *
 * @param elapsed Milliseconds from the claim until it was taken away.
 */
export function interrupted(elapsed: number, detail: string): Outcome {
    return outcomeOf({ code: 'interrupted', status: null, detail, retryAfter: null }, newProgress(), Math.max(0, elapsed));
}

/** Why an attempt got no response. The message becomes `Outcome.detail`, so it holds nothing that the receiver or a user wrote. */
export class AttemptFailure extends CodedError<OutcomeCode> {
    override readonly name = 'AttemptFailure';
}
