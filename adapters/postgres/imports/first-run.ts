import type { PoolLike } from '../database.ts';
import type { Lease } from './import-lease.ts';
import { slice } from './import-slices.ts';

/** A statement with parameters by which it finds nothing, and does nothing. */
export type IdleStatement = readonly [text: string, values: readonly unknown[]];

/** What was run on each pool. */
const known = new WeakMap<PoolLike, Set<string>>();

/**
 * Runs each of those statements once, in a transaction of its own. The first time in a process one takes the embedded database several times as long as later:
 * it looks up all that it names, and its planner is compiled as it is needed (measured: 0.03 to 0.12 s of processor time each). A slice of several would hold
 * everybody up for the sum. On a server nobody waits.
 */
export async function runAhead(pool: PoolLike, lease: Lease, statements: readonly IdleStatement[]): Promise<void> {
    if (pool.embedded !== true) {
        return;
    }

    const done = known.get(pool) ?? new Set();
    known.set(pool, done);
    for (const [text, values] of statements) {
        if (!done.has(text)) {
            await slice(pool, lease, (client) => client.query(text, [...values]));
            done.add(text);
        }
    }
}
