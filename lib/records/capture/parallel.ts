import { setMaxListeners } from 'node:events';
import { timeSlice } from '../../clock.ts';
import { wakeUps } from '../../within.ts';

/** How many tasks run, and for how long. */
export interface ParallelOptions {
    /** Tasks at the same time, results that nobody has taken yet included. */
    readonly concurrency: number;
    /** Ends the iteration with its reason. */
    readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a task for each item of a source, several at the same time, and yields the results as they come in. An item is taken from the
 * source only when there is room for it, and others have a turn between results. Where the iteration is left early, or a task fails,
 * the signal of the tasks is aborted and their end awaited.
 *
 * By hand, since the libraries for this (p-map, streaming-iterables) do not abort the tasks in flight when the iteration is left.
 *
 * @throws What the source throws, after the results of the tasks in flight; what a task throws, and the signal's reason, after the
 * tasks in flight have ended and the results that there are have been taken.
 */
export async function* parallel<Item, Result>(
    source: Iterable<Item> | AsyncIterable<Item>,
    task: (item: Item, signal: AbortSignal) => Promise<Result>,
    { concurrency, signal }: ParallelOptions,
): AsyncGenerator<Result, void, undefined> {
    signal?.throwIfAborted();
    const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const yieldIfDue = timeSlice();
    const results: Result[] = [];
    const failures: unknown[] = [];
    let inFlight = 0;
    let isAsking = false;
    let isEnded = false;
    const { wake, change } = wakeUps();

    const end = (...reasons: readonly unknown[]): void => {
        isEnded = true;
        failures.push(...reasons);
        wake();
    };
    const abort = (reason: unknown): void => {
        end(reason);
        stop.abort(reason);
    };
    const start = async (item: Item): Promise<void> => {
        inFlight += 1;
        try {
            results.push(await task(item, stop.signal));
        } catch (error) {
            abort(error);
        }

        inFlight -= 1;
        wake();
    };
    const fill = async (): Promise<void> => {
        isAsking = true;
        try {
            while (!isEnded && inFlight + results.length < concurrency) {
                const { done, value } = await iterator.next();
                isEnded ||= done === true;
                if (!isEnded) {
                    void start(value);
                }
            }
        } catch (error) {
            end(error);
        }

        isAsking = false;
        wake();
    };

    signal?.addEventListener('abort', () => abort(signal.reason), { signal: stop.signal });
    try {
        while (!isEnded || inFlight > 0 || results.length > 0) {
            void (isAsking || fill());
            await yieldIfDue();
            if (results.length > 0) {
                yield results.shift() as Result;
            } else if (!isEnded || inFlight > 0) {
                await change();
            }
        }

        if (failures.length > 0) {
            throw failures[0];
        }
    } finally {
        isEnded = true;
        stop.abort();
        // a source that is just being asked may never answer
        const returned = Promise.resolve(iterator.return?.()).catch(() => undefined);
        await (isAsking ? undefined : returned);
        while (inFlight > 0) {
            await change();
        }
    }
}
