import { printable } from './printable.ts';

/** The same failure again within this time is not said again. */
const QUIET = 10_000;

/** Says on stderr, in one line each, what goes wrong in the background; what repeats is said once in a while. */
export function errorLog(): (error: unknown) => void {
    const saidAt = new Map<string, number>();
    return (error) => {
        const message = error instanceof Error ? error.message : String(error);
        const now = performance.now();
        if (now - (saidAt.get(message) ?? Number.NEGATIVE_INFINITY) < QUIET) {
            return;
        }

        // What was said once and long ago must not fill the memory.
        if (saidAt.size > 1000) {
            saidAt.clear();
        }

        saidAt.set(message, now);
        process.stderr.write(`${new Date().toISOString()} ${printable(message)}\n`);
    };
}
