import type { OutcomeCode } from './outcome.ts';

/** Why an attempt got no answer. The message becomes `Outcome.detail`, so it holds nothing that the receiver or a user wrote. */
export class AttemptFailure extends Error {
    override readonly name = 'AttemptFailure';
    readonly code: OutcomeCode;

    constructor(code: OutcomeCode, message: string, cause?: unknown) {
        super(message, cause === undefined ? undefined : { cause });
        this.code = code;
    }
}
