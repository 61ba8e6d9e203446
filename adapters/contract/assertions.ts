import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** Asserts that the object is there and has these fields; it may have others as well. */
export function assertFields<T extends object>(actual: T | null | undefined, expected: Partial<T>): void {
    assert.deepEqual({ ...actual }, { ...actual, ...expected });
}

/** The value, which must be there. */
export function present<T>(value: T | null | undefined, what = 'the value'): T {
    assert.ok(value !== undefined && value !== null, `${what} is there`);
    return value;
}

/** The one element of a list. */
export function only<T>(list: readonly T[]): T {
    assert.equal(list.length, 1, `Expected one element, there are ${list.length}`);
    return list[0] as T;
}

/** The ids of rows, in their order. */
export function ids<Id>(rows: readonly { readonly id: Id }[]): Id[] {
    return rows.map(({ id }) => id);
}

/**
 * Resolves when the condition holds. Looks again and again instead of sleeping for a guessed time; only a broken one runs into the
 * deadline.
 *
 * @param deadline Milliseconds.
 */
export async function until(condition: () => boolean | Promise<boolean>, deadline = 60_000): Promise<void> {
    const end = Date.now() + deadline;
    while (!(await condition())) {
        if (Date.now() > end) {
            throw new Error(`Gave up after ${deadline} ms waiting for: ${condition}`);
        }
        await wait(5);
    }
}

/** So many results of the same call, all under way at once. */
export async function inParallel<T>(count: number, run: (index: number) => Promise<T>): Promise<readonly T[]> {
    return await Promise.all(Array.from({ length: count }, (_, index) => run(index)));
}

/** What comes of a call; null where it is refused, with whatever error. */
export async function unlessRefused<T>(called: Promise<T>): Promise<T | null> {
    return await called.catch(() => null);
}

/** The work, and whether it has ended, well or badly. */
export function underWay<T>(result: Promise<T>): { readonly result: Promise<T>; ended(): boolean } {
    let ended = false;
    const end = (): void => {
        ended = true;
    };
    result.then(end, end);
    return { result, ended: () => ended };
}
