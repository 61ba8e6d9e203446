import { setImmediate } from 'node:timers/promises';
import type { RowText } from './row-text.ts';

/** After this long, other requests get a turn: a source that never waits would otherwise keep the process to itself. */
const TURN_MS = 2;
/** A store may give batches of any size; this many rows become text at once. */
const ROWS_PER_TEXT = 500;

/** The index of a collection without rows. */
export const EMPTY_INDEX = '[]';

/**
 * The JSON array of all rows, in pieces: one text per batch. Ending it early ends the reading that `read` begins; a failure of
 * the reading is its failure.
 */
export async function* indexText(read: () => AsyncIterable<readonly object[]>, rowText: RowText): AsyncGenerator<string, void, undefined> {
    let separator = '[';
    let turnStarted = performance.now();
    for await (const batch of read()) {
        for (let start = 0; start < batch.length; start += ROWS_PER_TEXT) {
            yield separator + rowText(batch.slice(start, start + ROWS_PER_TEXT));
            separator = ',';
            if (performance.now() - turnStarted >= TURN_MS) {
                await setImmediate();
                turnStarted = performance.now();
            }
        }
    }

    yield separator === '[' ? EMPTY_INDEX : ']';
}

/**
 * The rest of a reading with its first piece put back in front. Ending it ends the reading even when nothing was taken from
 * it, as with a HEAD request; a generator that was never started would not do that.
 */
export function withFirst<T>(first: IteratorResult<T, void>, rest: AsyncGenerator<T, void, undefined>): AsyncIterable<T> {
    let waiting: IteratorResult<T, void> | null = first;
    const iterator: AsyncIterator<T, void> = {
        async next() {
            const result = waiting ?? (await rest.next());
            waiting = null;
            return result;
        },
        return: () => rest.return(),
    };
    return { [Symbol.asyncIterator]: () => iterator };
}
