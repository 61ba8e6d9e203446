import { CodedError, errorCode } from '../errors.ts';

/** Why a connection was not made. */
export type ConnectionCode =
    | 'interrupted'
    | 'address_blocked'
    | 'dns_not_found'
    | 'dns_failed'
    | 'dns_timeout'
    | 'connect_refused'
    | 'connect_timeout'
    | 'connect_failed'
    | 'connection_reset';

/** Codes of Node and the system that mean the same wherever they come up. */
export const CONNECTION_CODES: ReadonlyMap<string, ConnectionCode> = new Map(
    Object.entries({
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
    } satisfies Partial<Record<ConnectionCode, readonly string[]>>).flatMap(([meaning, codes]) =>
        codes.map((code) => [code, meaning as ConnectionCode]),
    ),
);

/** What an error means that came up on the way to a connection; `otherwise` for one that is in no table. */
export function connectionCode(error: unknown, otherwise: ConnectionCode): ConnectionCode {
    return CONNECTION_CODES.get(errorCode(error)) ?? otherwise;
}

/** Why there is no connection. The message may be shown: it holds nothing that the other side wrote. */
export class ConnectionFailure extends CodedError<ConnectionCode> {
    override readonly name = 'ConnectionFailure';
}

/** Why a connection was not secured. */
export type HandshakeCode = 'protocol_error' | 'tls_client_cert_required' | 'tls_failed';

const CODES: ReadonlyMap<string, HandshakeCode> = new Map(
    Object.entries({
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
        ],
    } satisfies Partial<Record<HandshakeCode, readonly string[]>>).flatMap(([meaning, codes]) =>
        codes.map((code) => [code, meaning as HandshakeCode]),
    ),
);

/** What an error code of OpenSSL means for a handshake, whenever it comes up; null for a code that is not OpenSSL's. */
export function handshakeCode(code: string): HandshakeCode | null {
    const known = CODES.get(code) ?? null;
    const isTls = code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO';
    return known ?? (isTls ? 'tls_failed' : null);
}
