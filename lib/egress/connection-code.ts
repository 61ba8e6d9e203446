import { CodedError, errorCode } from '../errors.ts';
import { STOOD_STILL } from '../within.ts';

/** Why a connection was not made, or not secured. */
export type ConnectionCode =
    | 'interrupted'
    | 'address_blocked'
    | 'dns_not_found'
    | 'dns_failed'
    | 'dns_timeout'
    | 'connect_refused'
    | 'connect_timeout'
    | 'connect_failed'
    | 'connection_reset'
    | 'protocol_error'
    | 'tls_client_cert_required'
    | 'tls_failed';

/** Why there is no connection. The message may be shown: it holds nothing that the other side wrote. */
export class ConnectionFailure extends CodedError<ConnectionCode> {
    override readonly name = 'ConnectionFailure';
}

/** The failure of another side that was late, unless the timer that says so was late itself: who stood still may have kept that side waiting. */
export function lateBy<Failure extends Error>(by: number, failure: Failure): Failure | ConnectionFailure {
    return by < STOOD_STILL
        ? failure
        : new ConnectionFailure('interrupted', `This process stood still for ${Math.round(by)} ms: ${failure.message}`);
}

/** A table of error codes by what they mean, turned round. */
export function byErrorCode<Meaning extends string>(
    table: Readonly<Partial<Record<Meaning, readonly string[]>>>,
): ReadonlyMap<string, Meaning> {
    const entries = Object.entries(table) as [Meaning, readonly string[]][];
    return new Map(entries.flatMap(([meaning, codes]) => codes.map((code) => [code, meaning])));
}

/** Alerts of the other side on a certificate of ours, in the spellings of OpenSSL. */
const REFUSALS: readonly string[] = [
    ...['BAD_CERTIFICATE', 'UNSUPPORTED_CERTIFICATE', 'CERTIFICATE_REVOKED', 'CERTIFICATE_EXPIRED', 'CERTIFICATE_UNKNOWN'],
    'UNKNOWN_CA',
].flatMap((alert) => ['SSLV3', 'TLSV1', 'TLSV13', 'SSL/TLS'].map((version) => `ERR_SSL_${version}_ALERT_${alert}`));

/** Codes of Node, the system and OpenSSL that mean the same wherever they come up. */
const CODES = byErrorCode<ConnectionCode>({
    // this process or its machine has run out of something, or forbids the call
    interrupted: [
        'EMFILE',
        'ENFILE',
        'ENOBUFS',
        'ENOMEM',
        'EADDRNOTAVAIL',
        'EADDRINUSE',
        'EPERM',
        'EACCES',
        'EAI_MEMORY',
        'ERR_MEMORY_ALLOCATION_FAILED',
    ],
    dns_not_found: ['ENOTFOUND', 'ENODATA', 'EAI_NODATA', 'EAI_NONAME'],
    dns_failed: ['EAI_AGAIN', 'EAI_FAIL', 'EAI_SYSTEM', 'ESERVFAIL', 'EREFUSED', 'EBADNAME', 'EBADRESP', 'EFORMERR', 'ENOTIMP'],
    connect_refused: ['ECONNREFUSED'],
    connect_failed: ['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EAFNOSUPPORT', 'EINVAL', 'EPROTONOSUPPORT'],
    connection_reset: ['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ENOTCONN', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_PREMATURE_CLOSE'],
    connect_timeout: ['ETIMEDOUT'],
    protocol_error: [
        'ERR_SSL_WRONG_VERSION_NUMBER',
        'ERR_SSL_PACKET_LENGTH_TOO_LONG',
        'ERR_SSL_HTTP_REQUEST',
        'ERR_SSL_HTTPS_PROXY_REQUEST',
        'ERR_SSL_RECORD_TOO_SMALL',
        'ERR_SSL_UNEXPECTED_MESSAGE',
        'ERR_SSL_UNKNOWN_PROTOCOL',
    ],
    tls_client_cert_required: [
        'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
        'ERR_SSL_SSLV3_ALERT_NO_CERTIFICATE',
        'ERR_SSL_SSL/TLS_ALERT_NO_CERTIFICATE',
        ...REFUSALS,
    ],
});

/**
 * Whether the other side has refused the certificate that was presented to it. Such an alert says nothing of its own, which we judge: what we refuse
 * comes up as no alert.
 */
export function isClientCertificateRefused(error: unknown): boolean {
    return REFUSALS.includes(errorCode(error));
}

/**
 * What an error of a connection means, whenever it comes up: on the way to the connection, in its TLS handshake (an alert of the
 * other side may come after it) or in its use. `otherwise` for an error that is in no table.
 */
export function connectionCode<Otherwise extends string>(error: unknown, otherwise: Otherwise): ConnectionCode | Otherwise {
    const code = errorCode(error);
    const isTls = code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO';
    return CODES.get(code) ?? (isTls ? 'tls_failed' : otherwise);
}
