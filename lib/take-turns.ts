import { setImmediate } from 'node:timers/promises';

/** Work that never waits keeps the process to itself; after so many milliseconds others get a turn. */
const TURN_MS = 2;

/** To be called between two steps of long work: null while its turn lasts, else a promise that resolves when others had theirs. */
export function takeTurns(): () => Promise<void> | null {
    let startedAt = performance.now();

    return () => {
        if (performance.now() - startedAt < TURN_MS) {
            return null;
        }

        return setImmediate().then(() => {
            startedAt = performance.now();
        });
    };
}
