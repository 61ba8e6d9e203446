import { setTimeout as wait } from 'node:timers/promises';

/** Resolves once `condition` holds; the test's own time-out is the limit. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) {
        await wait(10);
    }
}
