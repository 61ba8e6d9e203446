import { setMaxListeners } from 'node:events';
import { timeSlice } from '../../clock.ts';

export interface AtOnceOptions {
    /** Most pieces of work under way at once, results that nobody has taken yet included. */
    readonly most: number;
    /** Ends the iteration with its reason. */
    readonly signal?: AbortSignal | undefined;
}

/**
 * Works on what a source gives, several pieces at once, and gives the results as they come in. An item is taken from the source only
 * when there is room for it, and others have a turn between results. Where the iteration is left early, or the work fails, the signal
 * of the work is aborted and its end awaited.
 *
 * @throws What the source throws, after the results of what was under way; what the work throws, and the signal's reason, after what
 * is under way has ended and the results that there are have been taken.
 */
export async function* atOnce<Item, Result>(
    source: Iterable<Item> | AsyncIterable<Item>,
    work: (item: Item, signal: AbortSignal) => Promise<Result>,
    { most, signal }: AtOnceOptions,
): AsyncGenerator<Result, void, undefined> {
    const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const yieldIfDue = timeSlice();
    const results: Result[] = [];
    const failures: unknown[] = [];
    let underWay = 0;
    let asking = false;
    let ended = false;
    let wake = (): void => {};

    const end = (failure?: { readonly error: unknown }): void => {
        ended = true;
        failures.push(...(failure === undefined ? [] : [failure.error]));
        wake();
    };

    const start = async (item: Item): Promise<void> => {
        underWay += 1;
        try {
            results.push(await work(item, stop.signal));
        } catch (error) {
            end({ error });
            stop.abort(error);
        }

        underWay -= 1;
        wake();
    };

    const ask = async (): Promise<void> => {
        asking = true;
        try {
            while (!ended && underWay + results.length < most) {
                const next = await iterator.next();
                if (next.done === true) {
                    end();
                } else if (!ended) {
                    void start(next.value);
                }
            }
        } catch (error) {
            end({ error });
        }

        asking = false;
        wake();
    };

    const woken = (): Promise<void> =>
        new Promise((resolve) => {
            wake = resolve;
        });
    const onAbort = (): void => {
        end({ error: signal?.reason });
        stop.abort(signal?.reason);
    };

    signal?.throwIfAborted();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
        while (!ended || underWay > 0 || results.length > 0) {
            if (!asking) {
                void ask();
            }

            const pause = yieldIfDue();
            if (pause !== null) {
                await pause;
            }

            if (results.length > 0) {
                yield results.shift() as Result;
            } else if (!ended || underWay > 0) {
                await woken();
            }
        }

        if (failures.length > 0) {
            throw failures[0];
        }
    } finally {
        signal?.removeEventListener('abort', onAbort);
        ended = true;
        stop.abort();
        // a source that is just being asked may never answer
        const returned = Promise.resolve(iterator.return?.()).catch(() => undefined);
        await (asking ? undefined : returned);
        while (underWay > 0) {
            await woken();
        }
    }
}
