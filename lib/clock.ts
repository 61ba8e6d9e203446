import { setImmediate } from 'node:timers/promises';

/** The time now. Passed in, so that schedules, expiry and jitter are tested without sleeping. */
export type Clock = () => Date;

/** The clock of the machine. */
export const systemClock: Clock = () => new Date();

/** Calls `task` every so many milliseconds until the returned function is called. */
export type Ticker = (task: () => void, milliseconds: number) => () => void;

/** The timer of the machine, which keeps no process from ending. */
export const timer: Ticker = (task, milliseconds) => {
    const handle = setInterval(task, milliseconds).unref();
    return () => clearInterval(handle);
};

const SLICE_MS = 2;

/**
 * Work that never waits keeps the event loop to itself; with a time slice it yields every 2 ms.
 *
 * @param now Milliseconds since any moment.
 * @returns To be called between two steps of the work: null while the slice lasts, else a promise that resolves after the event loop
 *     has run and a new slice has begun.
 */
export function timeSlice(now: () => number = () => performance.now()): () => Promise<void> | null {
    let startedAt = now();

    return () => {
        if (now() - startedAt < SLICE_MS) {
            return null;
        }

        return setImmediate().then(() => {
            startedAt = now();
        });
    };
}

/**
 * By how many milliseconds the clock of this process is ahead of another one, less than 0 when it is behind: the least of what may be, since that one was
 * read at some time between question and answer, and the answer may have been long on its way.
 *
 * @param asked By the clock of this process, as `Date.now()` has it, and so `answered`.
 */
export function aheadOf(other: Date, asked: number, answered: number): number {
    const [least, most] = [asked - other.getTime(), answered - other.getTime()];
    return Math.max(least, Math.min(most, 0));
}
