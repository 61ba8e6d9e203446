import { CodedError } from '../coded-error.ts';
import type { OutcomeCode } from './outcome.ts';

/** Why an attempt got no answer. The message becomes `Outcome.detail`, so it holds nothing that the receiver or a user wrote. */
export class AttemptFailure extends CodedError<OutcomeCode> {
    override readonly name = 'AttemptFailure';
}
