/**
 * What an attempt came to. `delivered` is any 2xx in time; everything else is a failure. `docs/outcomes.md` says what each
 * one means for the person who runs the receiver.
 */
export const OUTCOME_CODES = [
    'delivered',
    'interrupted',
    'invalid_exporter',
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

export type OutcomeCode = (typeof OUTCOME_CODES)[number];

/** Whole milliseconds from the start of the attempt's phase to its end; null for a phase that was not reached or not needed. */
export interface Timings {
    readonly dns: number | null;
    readonly connect: number | null;
    readonly tls: number | null;
    /** From the request's last byte written to the first byte of the answer's head. */
    readonly firstByte: number | null;
    /** The whole attempt. */
    readonly total: number;
}

/** What one POST came to, as the sender saw it. */
export interface Outcome {
    readonly code: OutcomeCode;
    /** HTTP status, null when no answer came. */
    readonly status: number | null;
    /** One sentence for people, for example `connect to 192.0.2.7:443 refused`. Never holds secrets, header values or the URL's query. */
    readonly detail: string;
    /** The receiver's `Retry-After` as milliseconds from the end of the attempt; null when absent or unusable. */
    readonly retryAfter: number | null;
    readonly timings: Timings;
    /** The address that was called, null when none was reached. */
    readonly address: string | null;
    /** SHA-256 fingerprint of the certificate presented, null for http or before the handshake. */
    readonly fingerprint: string | null;
}
