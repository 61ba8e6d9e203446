import { CodedError } from '../coded-error.ts';
import type { ConnectionCode } from './connection-code.ts';

/** Why there is no connection. The message may be shown: it holds nothing that the other side wrote. */
export class ConnectionFailure extends CodedError<ConnectionCode> {
    override readonly name = 'ConnectionFailure';
}
