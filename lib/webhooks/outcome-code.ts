import { isIP } from 'node:net';
import type { Outcome, OutcomeCode } from './outcome.ts';
import { hostOf } from './receiver-url.ts';

/** How far an attempt had come when an error stopped it. */
export type AttemptPhase = 'dns' | 'connect' | 'tls' | 'exchange';

/** Codes of Node, OpenSSL and undici that mean the same wherever they come up. */
const BY_CODE: ReadonlyMap<string, OutcomeCode> = new Map(
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
            'UND_ERR_DESTROYED',
            'UND_ERR_CLOSED',
        ],
        invalid_exporter: [
            'UND_ERR_INVALID_ARG',
            'UND_ERR_NOT_SUPPORTED',
            'ERR_INVALID_CHAR',
            'ERR_INVALID_URL',
            'ERR_INVALID_ARG_TYPE',
            'ERR_INVALID_ARG_VALUE',
            'ERR_SOCKET_BAD_PORT',
        ],
        dns_not_found: ['ENOTFOUND', 'ENODATA', 'EAI_NODATA', 'EAI_NONAME'],
        dns_failed: ['EAI_AGAIN', 'EAI_FAIL', 'EAI_SYSTEM', 'ESERVFAIL', 'EREFUSED', 'EBADNAME', 'EBADRESP', 'EFORMERR', 'ENOTIMP'],
        connect_refused: ['ECONNREFUSED'],
        connect_failed: ['EHOSTUNREACH', 'ENETUNREACH', 'EHOSTDOWN', 'ENETDOWN', 'EAFNOSUPPORT', 'EINVAL', 'EPROTONOSUPPORT'],
        connection_reset: [
            'ECONNRESET',
            'ECONNABORTED',
            'EPIPE',
            'ENOTCONN',
            'ERR_STREAM_DESTROYED',
            'ERR_STREAM_PREMATURE_CLOSE',
            'UND_ERR_SOCKET',
        ],
        connect_timeout: ['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'],
        headers_timeout: ['UND_ERR_HEADERS_TIMEOUT'],
        timeout: ['UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED', 'ABORT_ERR'],
        protocol_error: [
            'UND_ERR_HEADERS_OVERFLOW',
            'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
            'ERR_SSL_WRONG_VERSION_NUMBER',
            'ERR_SSL_PACKET_LENGTH_TOO_LONG',
            'ERR_SSL_HTTP_REQUEST',
            'ERR_SSL_HTTPS_PROXY_REQUEST',
            'ERR_SSL_RECORD_TOO_SMALL',
            'ERR_SSL_UNEXPECTED_MESSAGE',
            'ERR_SSL_UNKNOWN_PROTOCOL',
        ],
        tls_self_signed: ['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
        tls_unknown_ca: [
            'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
            'UNABLE_TO_GET_ISSUER_CERT',
            'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
            'CERT_UNTRUSTED',
            'CERT_CHAIN_TOO_LONG',
            'PATH_LENGTH_EXCEEDED',
        ],
        tls_expired: ['CERT_HAS_EXPIRED'],
        tls_not_yet_valid: ['CERT_NOT_YET_VALID'],
        tls_name_mismatch: ['ERR_TLS_CERT_ALTNAME_INVALID', 'HOSTNAME_MISMATCH'],
        tls_client_cert_required: ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_SSLV3_ALERT_NO_CERTIFICATE'],
    } satisfies Partial<Record<OutcomeCode, readonly string[]>>).flatMap(([outcome, codes]) =>
        codes.map((code) => [code, outcome as OutcomeCode]),
    ),
);

const BY_PHASE: Readonly<Record<AttemptPhase, OutcomeCode>> = {
    dns: 'dns_failed',
    connect: 'connect_failed',
    tls: 'tls_failed',
    exchange: 'connection_reset',
};

/** How undici names what is not HTTP, an upgrade nobody asked for and an answer to no request: none of them has a code of its own. */
const NOT_HTTP = /^(HTTPParserError: |SocketError: bad (upgrade|response)$)/;

/** The outcome that an error stands for; what is in no table goes by the phase it came up in. */
export function codeOfError(error: unknown, phase: AttemptPhase): OutcomeCode {
    const code = errorCode(error);
    if (NOT_HTTP.test(String(error))) {
        return 'protocol_error';
    }

    const known = BY_CODE.get(code);
    if (known !== undefined) {
        return known;
    }

    return code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO' ? 'tls_failed' : BY_PHASE[phase];
}

/** The error's own code if it looks like one, else an empty text: codes may stand in a detail, messages may not. */
export function errorCode(error: unknown): string {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,60}$/.test(code) ? code : '';
}

const REDIRECTS: ReadonlySet<number> = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

/** The outcome that a status stands for. Any 2xx is success; a redirect is not followed, so it is a failure. */
export function codeOfStatus(status: number): OutcomeCode {
    if (status >= 200 && status <= 299) {
        return 'delivered';
    }

    if (status === 410) {
        return 'gone';
    }

    if (status === 429) {
        return 'rate_limited';
    }

    if (REDIRECTS.has(status)) {
        return 'redirect_refused';
    }

    return status >= 400 && status <= 499 ? 'client_error' : status >= 500 && status <= 599 ? 'server_error' : 'unexpected_status';
}

/**
 * What becomes of a delivery after an attempt.
 *
 * - `success`: done.
 * - `retry`: again on the exporter's schedule.
 * - `short`: again on a shorter schedule; somebody has to change the exporter's or the receiver's configuration.
 * - `permanent`: never again; only a change of the exporter can help.
 * - `gone`: never again, and the exporter stops.
 */
export type Retryability = 'success' | 'retry' | 'short' | 'permanent' | 'gone';

const KINDS: Readonly<Partial<Record<OutcomeCode, Retryability>>> = {
    delivered: 'success',
    gone: 'gone',
    invalid_exporter: 'permanent',
    client_error: 'short',
};

/** Client errors that pass by themselves: 408 Request Timeout and 425 Too Early. */
const PASSING: ReadonlySet<number | null> = new Set([408, 425]);

/**
 * Whether and how an attempt is followed by another.
 *
 * @param url The exporter's URL: a blocked literal address stays blocked, the addresses of a name may change.
 */
export function retryability({ code, status }: Pick<Outcome, 'code' | 'status'>, url: string): { readonly kind: Retryability } {
    if (code === 'address_blocked') {
        return { kind: URL.canParse(url) && isIP(hostOf(new URL(url))) === 0 ? 'retry' : 'permanent' };
    }

    return { kind: PASSING.has(status) ? 'retry' : (KINDS[code] ?? 'retry') };
}
