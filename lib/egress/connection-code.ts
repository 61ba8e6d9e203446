import { errorCode } from '../error-code.ts';

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
