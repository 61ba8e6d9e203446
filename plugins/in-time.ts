import type { Lifecycle, Request } from '@hapi/hapi';
import { ScanwireError } from '../lib/errors.ts';
import { within } from '../lib/within.ts';
import type { Begun } from './streamed-answers.ts';

/** Milliseconds after the arrival of a request by which the first byte of its answer, or a 503, is due. Everything that it asks the store for, one after the other, is over in less than 10 s. */
const DUE = 9_000;
/** Promises one behind the other within which a store in memory has given a row: as often is looked whether an answer is there at once. */
const TURNS = 4;

/** When requests came in, by a monotonic clock: the one of `request.info.received` may be set meanwhile. */
const arrivals = new WeakMap<Request, number>();

/** Notes when a request came in; for `onPreAuth` of a route. */
export const noteArrival: Lifecycle.Method = (request, h) => {
    arrivals.set(request, performance.now());
    return h.continue;
};

/**
 * What `ask` resolves to. The time counts from the arrival of the request, with the checks of key and licence and all that was asked before. What is there
 * at once, as of a store in memory, needs no timer.
 *
 * @throws ScanwireError `UNAVAILABLE` when it has not resolved by the time that the answer is due.
 */
export async function inTime<T>(request: Request, ask: () => T | Promise<T>): Promise<T> {
    const now = performance.now();
    const left = DUE - (now - (arrivals.get(request) ?? now));
    if (left <= 0) {
        throw late();
    }

    const answer = Promise.resolve(ask());
    let isThere = false;
    const note = (): void => {
        isThere = true;
    };
    answer.then(note, note);
    for (let turns = 0; turns < TURNS && !isThere; turns += 1) {
        await Promise.resolve();
    }
    return isThere ? await answer : await within(answer, { timeout: left, late });
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
