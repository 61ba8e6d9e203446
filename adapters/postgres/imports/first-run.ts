import type { Executor } from '../../../lib/transaction.ts';
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

/** So many slices have their statements run with rows for the first times (measured: 0.05, 0.02, 0.04 and 0.02 s of processor time, three times as long as later). */
const FIRST_SLICES = 2;

/** How many slices were begun on each pool. */
const begun = new WeakMap<PoolLike, number>();

/** A slice whose statements need not be in one transaction, and are not the first times on the embedded database. */
export async function slicedAtFirst<T>(pool: PoolLike, lease: Lease, work: (client: Executor) => Promise<T>): Promise<T> {
    const before = begun.get(pool) ?? 0;
    if (pool.embedded !== true || before === FIRST_SLICES) {
        return await slice(pool, lease, work);
    }

    begun.set(pool, before + 1);
    return await work({
        query: <Row>(text: string, values?: unknown[]) => slice(pool, lease, (client) => client.query<Row>(text, values)),
    });
}
