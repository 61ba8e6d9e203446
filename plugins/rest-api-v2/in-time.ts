import type { Lifecycle, Request } from '@hapi/hapi';
import { ScanwireError } from '../../lib/errors.ts';
import { within } from '../../lib/within.ts';
import { orUnavailable, type StoreFailure } from '../errors.ts';

/** Milliseconds after the arrival of a request by which the first byte of its answer, or a 503, is due. Everything that it asks the store for, one after the other, is over in less than 10 s. */
const DUE = 9_000;
/** Milliseconds after the arrival within which a single question needs no timer: each of our stores gives up by itself after 9.5 s at the latest. */
const EARLY = 400;

/** When requests came in, by a monotonic clock: the one of `request.info.received` may be set meanwhile. */
const arrivals = new WeakMap<Request, number>();

/** Notes when a request came in. */
export const noteArrival: Lifecycle.Method = (request, h) => {
    arrivals.set(request, performance.now());
    return h.continue;
};

/** How a store is asked. */
interface Asking {
    /** Whether the store is asked several times, or may let the request wait for its turn for any length of time. Such a request has a timer from the beginning. */
    readonly mayQueue?: boolean;
}

/**
 * What `ask` resolves to; failures are answered as by {@link orUnavailable}. When `ask` has not resolved by the time that the answer is due, that is a 503 as well. The time
 * counts from the arrival of the request, with the checks of key and licence and all that was asked before. Most requests need no timer for this.
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
