import type { PGlite } from '@electric-sql/pglite';
import type { Executor } from '../../lib/transaction.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';

/** A transaction of the application, in which an event is accepted, and which ends later. */
export interface HostTransaction {
    readonly tx: Executor;
    /** Commits it, or rolls it back. Once it has ended, nothing happens. */
    end(commits: boolean): Promise<void>;
}

/** Stores whose `accept` can join transactions that are open while others work: each is prepared as soon as it has its statement. */
export interface TransactionalDeliveries {
    readonly deliveries: DeliveryStore;
    readonly begin: () => HostTransaction;
}

/** Room for transactions that are open at once. */
export const MAX_OPEN = 50;

interface Open extends HostTransaction {
    readonly name: string;
    /** That it has a statement, and waits for its end. */
    prepared: boolean;
    ended: boolean;
}

/**
 * The database has a single session, in which a transaction that is open would be everybody's. What is prepared for a commit in two
 * phases is not: its rows are invisible and its locks are held until its end, whatever the session does meanwhile. A statement that
 * waits for such a lock would wait for ever, so nothing may remove exporters then.
 */
export function withTransactions(deliveries: DeliveryStore, database: PGlite): TransactionalDeliveries {
    const byTx = new Map<Executor, Open>();
    let count = 0;

    function begin(): HostTransaction {
        count += 1;
        const name = `host-${count}`;
        const tx: Executor = {
            query: async (text, values) => {
                const { rows, affectedRows } = await database.query(text, values);
                return { rows: rows as never[], rowCount: affectedRows ?? null };
            },
        };
        const open: Open = {
            name,
            tx,
            prepared: false,
            ended: false,
            async end(commits) {
                const waits = open.prepared && !open.ended;
                open.ended = true;
                if (waits) {
                    await database.exec(`${commits ? 'commit' : 'rollback'} prepared '${name}'`);
                }
            },
        };
        byTx.set(tx, open);
        return open;
    }

    return {
        begin,
        deliveries: {
            ...deliveries,
            async accept(newEvents, options) {
                const open = options?.tx === undefined ? undefined : byTx.get(options.tx);
                if (open === undefined) {
                    return await deliveries.accept(newEvents, options);
                }

                await database.exec('begin');
                try {
                    const accepted = await deliveries.accept(newEvents, options);
                    // Its process may have gone before the statement was here.
                    await database.exec(open.ended ? 'rollback' : `prepare transaction '${open.name}'`);
                    open.prepared = !open.ended;
                    return accepted;
                } catch (error) {
                    await database.exec('rollback');
                    throw error;
                }
            },
        },
    };
}

/** Rolls back what is still open. */
export async function rollBackAll(database: PGlite): Promise<void> {
    const { rows } = await database.query<{ gid: string }>('select gid from pg_prepared_xacts');
    for (const { gid } of rows) {
        await database.exec(`rollback prepared '${gid}'`);
    }
}
