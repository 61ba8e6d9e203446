import type { Lifecycle, Request } from '@hapi/hapi';
import { ScanwireError } from '../../lib/errors.ts';
import { within } from '../../lib/within.ts';
import { orUnavailable, type StoreFailure } from '../errors.ts';

/** When the first byte of an answer, or a 503, is due: all that a request asks for in a row ends in less than 10 s. In milliseconds since it came in. */
const DUE = 9_000;
/** Until then a store that is asked gives up in time by itself: none of ours waits for longer than 9.5 s for one answer. */
const EARLY = 400;

/** When requests came in, by a clock that is never set: that of `request.info.received` may be. */
const arrivals = new WeakMap<Request, number>();

/** Notes when a request came in. */
export const noteArrival: Lifecycle.Method = (request, h) => {
    arrivals.set(request, performance.now());
    return h.continue;
};

/** How a store is asked. */
interface Asking {
    /** Whether it may ask several times, or let who asks wait for a turn for any time. Then the request has a timer from the beginning. */
    readonly mayQueue?: boolean;
}

/**
 * What `ask` resolves to, as {@link orUnavailable} does, and a 503 as well when it has not by the time that the answer is due, the checks of key and licence and what was asked
 * before included. Most requests need no timer for that.
 */
export async function inTime<T>(
    request: Request,
    failure: StoreFailure,
    ask: () => T | Promise<T>,
    { mayQueue = false }: Asking = {},
): Promise<T> {
    return await orUnavailable(request, failure, () => {
        const now = performance.now();
        const left = DUE - (now - (arrivals.get(request) ?? now));
        if (left > DUE - EARLY && !mayQueue) {
            return ask();
        }
        if (left <= 0) {
            throw late();
        }
        return within(Promise.resolve(ask()), { timeout: left, late });
    });
}

function late(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The store has not answered all that was asked within ${DUE} ms of the request`);
}
