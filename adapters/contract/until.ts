import { setTimeout as wait } from 'node:timers/promises';

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
