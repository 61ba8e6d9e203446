import type { ConnectionCode } from './connection-code.ts';

/** Why there is no connection. The message may be shown: it holds nothing that the other side wrote. */
export class ConnectionFailure extends Error {
    override readonly name = 'ConnectionFailure';
    readonly code: ConnectionCode;

    constructor(code: ConnectionCode, message: string, cause?: unknown) {
        super(message, cause === undefined ? undefined : { cause });
        this.code = code;
    }
}
