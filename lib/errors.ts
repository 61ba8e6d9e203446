/** An error with a code for programs and one sentence for people. */
export abstract class CodedError<Code extends string> extends Error {
    readonly code: Code;

    constructor(code: Code, message: string, cause?: unknown) {
        super(message, cause === undefined ? undefined : { cause });
        this.code = code;
    }
}

/**
 * Every error that scanwire raises for a reason a caller can act on. The codes are stable; `docs/errors.md` lists them.
 *
 * - `INVALID_INPUT`: a value from outside breaks a rule; `field` names it.
 * - `NOT_FOUND`: the named thing does not exist (or not any more).
 * - `CONFLICT`: the state of the thing forbids the change.
 * - `UNAVAILABLE`: a store or a queue cannot be reached now; trying again later may help.
 * - `MISCONFIGURED`: options, files or servers can never work; refused at start, or by the first call that shows it.
 * - `UNSEALABLE`: a sealed value was not made by a key of the ring, or was altered.
 * - `UNVERIFIED`: a received message is not proven to come from whoever has the secret, now and for the first time; `field` names the header.
 */
export type ScanwireErrorCode = 'INVALID_INPUT' | 'NOT_FOUND' | 'CONFLICT' | 'UNAVAILABLE' | 'MISCONFIGURED' | 'UNSEALABLE' | 'UNVERIFIED';

/** What an error says besides its code and its sentence. */
export interface ScanwireErrorDetails {
    /** Path of the offending field as the caller wrote it, for example `actors.users[0].name`. */
    readonly field?: string;
    readonly cause?: unknown;
    readonly problems?: readonly Problem[];
}

/** One of several things that are wrong with a file. */
export interface Problem {
    /** From 1. */
    readonly line: number;
    readonly field?: string;
    /** A sentence that names line, field and cause. */
    readonly message: string;
}

/** An error with one of the codes of {@link ScanwireErrorCode}. */
export class ScanwireError extends CodedError<ScanwireErrorCode> {
    override readonly name = 'ScanwireError';
    readonly field: string | undefined;
    /** Of a file of which several lines may be bad: the first 100 of them. */
    readonly problems: readonly Problem[] | undefined;

    /** @param message One sentence that names field and cause, never a secret or a value that may be one. */
    constructor(code: ScanwireErrorCode, message: string, { field, cause, problems }: ScanwireErrorDetails = {}) {
        super(code, message, cause);
        this.field = field;
        this.problems = problems;
    }
}

/**
 * The error's own code if it looks like one, else an empty text: codes may be shown, messages may not. Node makes codes of OpenSSL's
 * texts, and some of those have a slash: `ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE`.
 */
export function errorCode(error: unknown): string {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_/]{1,60}$/.test(code) ? code : '';
}

/** The error's code as a note behind a sentence, ` (ECONNRESET)`; empty for an error without one. */
export function codeNote(error: unknown): string {
    const code = errorCode(error);
    return code === '' ? '' : ` (${code})`;
}
