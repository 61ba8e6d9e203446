import { byErrorCode, ConnectionFailure, connectionCode, isClientCertificateRefused } from '../../egress/connection-code.ts';
import { ProxyFailure } from '../../egress/proxy.ts';
import { CodedError, codeNote, errorCode, ScanwireError } from '../../errors.ts';
import { AlteredText } from '../../keys/key-ring.ts';
import { UnmakeableMessage } from '../messages/formatted-message.ts';
import { type Exchange, isSuccess, ResponseTooLong } from '../sending/http-exchange.ts';
import { AttemptFailure, type AttemptResult, type OutcomeCode } from './outcome.ts';

/** The result of an exchange, by its status, or else by the error that ended it. `now` is for a `Retry-After` date in a response without `Date`. */
export function resultOfExchange(exchange: Exchange, url: URL, now: Date): AttemptResult {
    const { status, location, error } = exchange;
    if (status === null) {
        return resultOfError(failureOf(exchange, url));
    }

    const code = codeOfStatus(status);
    const target = code === 'redirect_refused' ? redirectTarget(location, url) : '';
    return {
        code,
        status,
        detail: `Answered ${status}${target}${bodyNote(error)}`,
        retryAfter: code === 'delivered' ? null : retryAfter(exchange.retryAfter, sentAt(exchange, now)),
    };
}

/** The result of an attempt that ended before a response. An unforeseen error counts as one on our side, not the receiver's. */
export function resultOfError(error: unknown): AttemptResult {
    const detail = error instanceof CodedError ? error.message : `The attempt failed on this side${codeNote(error)}`;
    return { code: codeOfFailure(error), status: null, detail, retryAfter: null };
}

function codeOfFailure(error: unknown): OutcomeCode {
    if (error instanceof AttemptFailure || error instanceof ConnectionFailure || error instanceof ProxyFailure) {
        return error.code;
    }

    if (error instanceof UnmakeableMessage) {
        return 'invalid_message';
    }

    // A setting that breaks a rule is an error of the exporter, and so is a sealed text that was altered. Where another text cannot be unsealed, it
    // may be that this worker's key ring lacks a key.
    const isItsOwn = error instanceof AlteredText || (error instanceof ScanwireError && error.code === 'INVALID_INPUT');
    return isItsOwn ? 'invalid_exporter' : 'interrupted';
}

function failureOf({ error, unsent }: Exchange, { host }: URL): AttemptFailure {
    if (error instanceof AttemptFailure && error.code === 'timeout') {
        return unsent
            ? new AttemptFailure('timeout', `${host} did not take the whole message in time`)
            : new AttemptFailure('headers_timeout', `${host} did not answer in time`);
    }

    if ((error instanceof AttemptFailure || error instanceof ConnectionFailure) && error.code === 'interrupted') {
        return new AttemptFailure('interrupted', error.message);
    }

    const code = codeOfError(error, 'connection_reset');
    const what = isClientCertificateRefused(error) ? 'refused the client certificate' : (NO_RESPONSE[code] ?? 'broke off');
    return new AttemptFailure(code, `${host} ${what}${codeNote(error)}`);
}

const NO_RESPONSE: Readonly<Partial<Record<OutcomeCode, string>>> = {
    connection_reset: 'closed the connection without an answer',
    protocol_error: 'did not answer in HTTP/1.1',
    tls_client_cert_required: 'demands a client certificate',
    tls_failed: 'broke off the TLS connection',
    invalid_exporter: 'was not called: the message cannot be sent as it is',
    interrupted: 'was given up on this side',
};

function bodyNote(error: unknown): string {
    if (error === null) {
        return '';
    }

    return error instanceof ResponseTooLong
        ? `; its body was cut off after ${error.maxBytes} bytes`
        : '; its body broke off or took too long';
}

/** The origin that a redirect leads to. The rest of a Location may repeat secrets that were sent. */
function redirectTarget(location: string | undefined, url: URL): string {
    const target = location !== undefined && URL.canParse(location, url.href) ? new URL(location, url) : null;
    const known = target !== null && /^https?:$/.test(target.protocol) && target.hostname.length <= 100;
    return known ? `, a redirect to ${target.origin}; redirects are not followed` : '; redirects are not followed';
}

const REDIRECTS: ReadonlySet<number> = new Set([300, 301, 302, 303, 305, 306, 307, 308]);

/** The outcome that a status stands for. Any 2xx is success; a redirect is not followed, so it is a failure. */
export function codeOfStatus(status: number): OutcomeCode {
    if (isSuccess(status)) {
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

/** Error codes of Node, OpenSSL and undici with one meaning wherever they occur, in addition to those of making and securing a connection. */
const CODES = byErrorCode<OutcomeCode>({
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
});

/**
 * Names of undici's errors for a response that is no HTTP, an upgrade that nobody asked for, and a response to no request. None of them has a
 * code of its own.
 */
const NOT_HTTP = /^(HTTPParserError: |SocketError: bad (upgrade|response)$)/;

/** The outcome that an error stands for; `otherwise` for one that is in no table. */
export function codeOfError(error: unknown, otherwise: OutcomeCode): OutcomeCode {
    if (NOT_HTTP.test(String(error))) {
        return 'protocol_error';
    }

    return CODES.get(errorCode(error)) ?? connectionCode(error, otherwise);
}

const MAX_RETRY_AFTER = 24 * 60 * 60 * 1000;

const MONTH = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
/** The three date formats of RFC 9110, 5.6.7: the usual one, RFC 850's and that of C's `asctime`. */
const DATES: readonly RegExp[] = [
    new RegExp(`^[A-Z][a-z]{2}, \\d{2} (${MONTH}) \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$`),
    new RegExp(`^[A-Z][a-z]{5,8}, \\d{2}-(${MONTH})-\\d{2} \\d{2}:\\d{2}:\\d{2} GMT$`),
    new RegExp(`^[A-Z][a-z]{2} (${MONTH}) [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}$`),
];

/**
 * A receiver's `Retry-After` in milliseconds from `now`, at most 24 hours. Null for anything but one value of whole seconds or
 * one HTTP date; a date that has passed is 0.
 */
export function retryAfter(value: string | readonly string[] | undefined, now: Date): number | null {
    if (typeof value !== 'string') {
        return null;
    }

    const text = value.trim();
    const delay = /^\d{1,15}$/.test(text) ? Number(text) * 1000 : dateOf(text) - now.getTime();
    return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MAX_RETRY_AFTER) : null;
}

/** When the response was made, by the receiver's own clock. A `Retry-After` date was reckoned by that clock, and ours may differ. */
function sentAt({ date = '' }: Exchange, now: Date): Date {
    const time = dateOf(date.trim());
    return Number.isNaN(time) ? now : new Date(time);
}

function dateOf(text: string): number {
    const format = DATES.findIndex((pattern) => pattern.test(text));
    return format === -1 ? Number.NaN : Date.parse(format === 2 ? `${text} GMT` : text);
}
