import type { Executor } from '../../lib/executor.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';

/** Server gone, going, starting or without room: classes 08 and 53 and the shutdown codes of class 57. */
const UNAVAILABLE_STATE = /^(08|53|57P0)/;
const SYSTEM_ERROR = /^(E[A-Z]{3,}|EAI_AGAIN)$/;
/** `pg` gives these no code. */
const DRIVER_MESSAGE =
    /connection terminated|timeout exceeded when trying to connect|after calling end on the pool|not queryable|is closed/i;

/** The executor with what says that the database cannot be reached turned into ScanwireError `UNAVAILABLE`. */
export function reachable(executor: Executor): Executor {
    return {
        async query(text, values) {
            try {
                return await executor.query(text, values);
            } catch (error) {
                throw isUnreachable(error) ? new ScanwireError('UNAVAILABLE', 'the database cannot be reached', { cause: error }) : error;
            }
        },
    };
}

function isUnreachable(error: unknown): boolean {
    if (!(error instanceof Error)) {
        return false;
    }
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    return UNAVAILABLE_STATE.test(code) || SYSTEM_ERROR.test(code) || (code === '' && DRIVER_MESSAGE.test(error.message));
}
