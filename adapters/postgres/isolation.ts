import type { Executor } from '../../lib/transaction.ts';

/** By pool, as the first of its connections has said. */
const known = new WeakMap<object, boolean>();

/**
 * Whether transactions of a pool begin at another level than read committed, as its database, its role or its application has set. A statement that has
 * waited for a lock does not see then what the one before it committed, and what it was to find stays where it is. It must be in a transaction that says
 * its level. Sessions are left as they are, since the application's own statements may need what is set there.
 *
 * @param client A connection of the pool, which is asked once for all of them.
 */
export async function beginsOtherwise(pool: object, client: Executor): Promise<boolean> {
    const before = known.get(pool);
    if (before !== undefined) {
        return before;
    }

    const { rows } = await client.query<{ level: string }>(`select current_setting('default_transaction_isolation') as level`);
    const otherwise = (rows[0]?.level ?? READ_COMMITTED) !== READ_COMMITTED;
    known.set(pool, otherwise);
    return otherwise;
}

const READ_COMMITTED = 'read committed';
