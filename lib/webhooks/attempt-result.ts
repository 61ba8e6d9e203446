import { ConnectionFailure } from '../egress/connection-failure.ts';
import { errorCode } from '../error-code.ts';
import { AttemptFailure } from './attempt-failure.ts';
import { AnswerTooLong, type Exchange } from './exchange.ts';
import type { Outcome } from './outcome.ts';
import { codeOfError, codeOfStatus } from './outcome-code.ts';
import { retryAfter } from './retry-after.ts';

/** What an attempt came to, without what was measured on the way. */
export type AttemptResult = Pick<Outcome, 'code' | 'status' | 'detail' | 'retryAfter'>;

/** The result of an exchange: by its status, if there was one, and else by what ended it. `now` is for a `Retry-After` date. */
export function answered({ status, location, retryAfter: hint, error, unsent }: Exchange, url: URL, now: Date): AttemptResult {
    if (status === null) {
        return unanswered(error, unsent, url);
    }

    const code = codeOfStatus(status);
    const target = code === 'redirect_refused' ? redirectTarget(location, url) : '';
    return {
        code,
        status,
        detail: `answered ${status}${target}${bodyNote(error)}`,
        retryAfter: code === 'delivered' ? null : retryAfter(hint, now),
    };
}

function unanswered(error: unknown, unsent: boolean, url: URL): AttemptResult {
    if (error instanceof AttemptFailure && error.code === 'timeout') {
        return unsent
            ? failed(new AttemptFailure('timeout', `${url.host} did not take the whole message in time`))
            : failed(new AttemptFailure('headers_timeout', `${url.host} did not answer in time`));
    }

    const code = codeOfError(error, 'exchange');
    return failed(new AttemptFailure(code, `${url.host} ${NO_ANSWER[code] ?? 'broke off'}${reason(error)}`));
}

const NO_ANSWER: Readonly<Partial<Record<Outcome['code'], string>>> = {
    connection_reset: 'closed the connection without an answer',
    protocol_error: 'did not answer in HTTP/1.1',
    tls_client_cert_required: 'demands a client certificate',
    tls_failed: 'broke off the TLS connection',
    invalid_exporter: 'was not called: the message cannot be sent as it is',
    interrupted: 'was given up on this side',
};

/** The result of an attempt that ended before an answer; an error that nobody foresaw is our own fault, not the receiver's. */
export function failed(error: unknown): AttemptResult {
    const failure =
        error instanceof AttemptFailure || error instanceof ConnectionFailure
            ? error
            : new AttemptFailure('interrupted', `the attempt failed on this side${reason(error)}`);
    return { code: failure.code, status: null, detail: failure.message, retryAfter: null };
}

function reason(error: unknown): string {
    const code = errorCode(error);
    return code === '' ? '' : ` (${code})`;
}

function bodyNote(error: unknown): string {
    if (error === null) {
        return '';
    }

    return error instanceof AnswerTooLong
        ? `; its body was cut off after ${error.message.replace('more than ', '')}`
        : '; its body broke off or took too long';
}

/** Only where it leads to: the rest of a Location may repeat what the receiver was sent. */
function redirectTarget(location: string | undefined, url: URL): string {
    const target = location !== undefined && URL.canParse(location, url.href) ? new URL(location, url) : null;
    const known = target !== null && /^https?:$/.test(target.protocol) && target.hostname.length <= 100;
    return known ? `, a redirect to ${target.origin}; redirects are not followed` : '; redirects are not followed';
}
