import { CodedError } from './coded-error.ts';

/**
 * Every error that scanwire raises for a reason a caller can act on. The codes are stable; `docs/errors.md` lists them.
 *
 * - `INVALID_INPUT`: a value from outside breaks a rule; `field` names it.
 * - `NOT_FOUND`: the named thing does not exist (or not any more).
 * - `CONFLICT`: the state of the thing forbids the change.
 * - `UNAVAILABLE`: a store or a queue cannot be reached now; trying again later may help.
 * - `MISCONFIGURED`: the options, files or servers given can never work; refused at start.
 * - `UNSEALABLE`: a sealed value was not made by a key of the ring, or was altered.
 */
export type ScanwireErrorCode = 'INVALID_INPUT' | 'NOT_FOUND' | 'CONFLICT' | 'UNAVAILABLE' | 'MISCONFIGURED' | 'UNSEALABLE';

export interface ScanwireErrorDetails {
    /** Path of the offending field as the caller wrote it, for example `actors.users[0].name`. */
    readonly field?: string;
    readonly cause?: unknown;
}

export class ScanwireError extends CodedError<ScanwireErrorCode> {
    override readonly name = 'ScanwireError';
    readonly field: string | undefined;

    /** @param message One sentence that names field and cause, never a secret or a value that may be one. */
    constructor(code: ScanwireErrorCode, message: string, { field, cause }: ScanwireErrorDetails = {}) {
        super(code, message, cause);
        this.field = field;
    }
}
