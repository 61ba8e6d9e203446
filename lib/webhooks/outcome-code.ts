import { isIP } from 'node:net';
import { CONNECTION_CODES } from '../egress/connection-code.ts';
import { handshakeCode } from '../egress/handshake-code.ts';
import { errorCode } from '../error-code.ts';
import type { Outcome, OutcomeCode } from './outcome.ts';
import { hostOf } from './receiver-url.ts';

/** How far an attempt had come after it was connected, when an error stopped it. */
export type AttemptPhase = 'tls' | 'exchange';

/** Codes of Node, OpenSSL and undici that mean the same wherever they come up, besides those of making and securing a connection. */
const BY_CODE: ReadonlyMap<string, OutcomeCode> = new Map(
    Object.entries({
        interrupted: ['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'],
        invalid_exporter: [
            'UND_ERR_INVALID_ARG',
            'UND_ERR_NOT_SUPPORTED',
            'ERR_INVALID_CHAR',
            'ERR_INVALID_URL',
            'ERR_INVALID_ARG_TYPE',
            'ERR_INVALID_ARG_VALUE',
            'ERR_SOCKET_BAD_PORT',
        ],
        connection_reset: ['UND_ERR_SOCKET'],
        connect_timeout: ['UND_ERR_CONNECT_TIMEOUT'],
        headers_timeout: ['UND_ERR_HEADERS_TIMEOUT'],
        timeout: ['UND_ERR_BODY_TIMEOUT', 'UND_ERR_ABORTED', 'ABORT_ERR'],
        protocol_error: ['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'],
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
    } satisfies Partial<Record<OutcomeCode, readonly string[]>>).flatMap(([outcome, codes]) =>
        codes.map((code) => [code, outcome as OutcomeCode]),
    ),
);

const BY_PHASE: Readonly<Record<AttemptPhase, OutcomeCode>> = {
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

    return BY_CODE.get(code) ?? CONNECTION_CODES.get(code) ?? handshakeCode(code) ?? BY_PHASE[phase];
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
