import { setTimeout as wait } from 'node:timers/promises';

/** Resolves when the condition holds. Looks again and again instead of sleeping for a guessed time; only a broken one runs into the deadline. */
export async function until(what: string, condition: () => boolean | Promise<boolean>, deadline: number): Promise<void> {
    const end = Date.now() + deadline;
    while (!(await condition())) {
        if (Date.now() > end) {
            throw new Error(`gave up waiting for ${what}`);
        }
        await wait(5);
    }
}
