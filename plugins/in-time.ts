import type { Lifecycle, Request } from '@hapi/hapi';
import { DueTimes } from '../lib/due-times.ts';
import { ScanwireError } from '../lib/errors.ts';
import { type Eventual, isComing } from '../lib/eventual.ts';
import type { Begun } from './streamed-answers.ts';

/** Milliseconds after the arrival of a request by which the first byte of its answer, or a 503, is due. Everything that it asks the store for, one after the other, is over in less than 10 s. */
const DUE = 9_000;

/** What is asked for in all requests of the process. */
const dueTimes = new DueTimes();

/** When a request came in, by a monotonic clock: the one of `request.info.received` may be set meanwhile. What is kept by the request itself is found sooner than in a map. */
interface Noted {
    scanwireArrival?: number;
}

/** Notes when a request came in; for `onPreAuth` of a route. */
export const noteArrival: Lifecycle.Method = (request, h) => {
    arrived(request);
    return h.continue;
};

/** Notes that a request came in just now. */
export function arrived(request: Request): void {
    (request.plugins as Noted).scanwireArrival = performance.now();
}

/**
 * What `ask` resolves to. The time counts from the arrival of the request, with the checks of key and licence and all that was asked before.
 *
 * @param grace Milliseconds for who waits for answers that are due themselves: so many more than these have, and so many from now on at least.
 * @throws ScanwireError `UNAVAILABLE` when it has not resolved by the time that the answer is due.
 */
export function inTime<T>(request: Request, ask: () => Eventual<T>, grace = 0): Eventual<T> {
    const now = performance.now();
    const due = Math.max(((request.plugins as Noted).scanwireArrival ?? now) + DUE, now) + grace;
    if (due <= now) {
        throw late();
    }

    const answer = ask();
    return isComing(answer) ? dueTimes.within(Promise.resolve(answer), due, late) : answer;
}

/** The same for a sequence. What begins too late is ended: nobody would read it. */
export async function begunInTime<T>(request: Request, begin: () => Promise<Begun<T>>): Promise<Begun<T>> {
    let begun: Promise<Begun<T>> | undefined;
    try {
        return await inTime(request, () => {
            begun = begin();
            return begun;
        });
    } catch (error) {
        begun?.then(({ all }) => all[Symbol.asyncIterator]().return?.()).catch(() => undefined);
        throw error;
    }
}

function late(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The store has not answered all that was asked within ${DUE} ms of the request`);
}
