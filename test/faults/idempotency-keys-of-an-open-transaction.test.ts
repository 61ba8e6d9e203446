/** A transaction of the application that has published with idempotency keys keeps whoever repeats these publishes waiting, and nobody else. */
import type pg from 'pg';
import t, { type Test } from 'tap';
import { within } from '../../lib/within.ts';
import { investigation } from '../support/investigation.ts';
import { orderedHost } from '../support/ordered-host.ts';

const KIND = 'idr_investigation_created';
/** The transaction of the application takes one of them. */
const CONNECTIONS = 4;
const KEYS = Array.from({ length: 20 }, (_, index) => `job ${index}`);
/** Far below what a statement is waited for. */
const AT_ONCE = { timeout: 3_000 };

async function host(t: Test) {
    const { engine, pool, watching } = await orderedHost(t, CONNECTIONS);
    const publish = (idempotencyKey: string, tx?: pg.PoolClient): Promise<string> => {
        const published = engine.publish(KIND, investigation, { idempotencyKey, ...(tx !== undefined && { tx }) });
        // It may be refused while others are waited for.
        published.catch(() => undefined);
        return published.then(({ eventId }) => eventId);
    };

    return {
        engine,
        publish,

        async waitingForLocks(): Promise<number> {
            const { rows } = await watching.query(
                'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted',
            );
            return rows.length;
        },

        /** Runs while a transaction has published with the keys; resolves with its events. */
        async whileOpen(run: (tx: pg.PoolClient) => Promise<void>): Promise<readonly string[]> {
            const tx = await pool.connect();
            await tx.query('begin');
            try {
                const ids: string[] = [];
                for (const key of KEYS) {
                    ids.push(await publish(key, tx));
                }
                await run(tx);
                return ids;
            } finally {
                await tx.query('commit');
                tx.release();
            }
        },
    };
}

t.test('few connections wait, however many keys a transaction has', async (t) => {
    const { engine, publish, waitingForLocks, whileOpen } = await host(t);
    const repeated: Promise<string>[] = [];
    const ids = await whileOpen(async () => {
        for (let round = 0; round < 10; round += 1) {
            // Whoever has heard nothing comes again.
            repeated.push(...KEYS.map((key) => publish(key)));
            await within(engine.publish(KIND, investigation), AT_ONCE);
            await within(publish(`other ${round}`), AT_ONCE);
            await within(engine.publish(KIND, investigation, { orderKey: 'a' }), AT_ONCE);
            await within(engine.deliveries.list({ limit: 1 }), AT_ONCE);
            t.ok((await waitingForLocks()) <= 3, 'two of them wait, and one list for a moment');
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    });
    const answers = await within(Promise.all(repeated), AT_ONCE);
    t.strictSame(answers, Array.from({ length: 10 }, () => ids).flat(), 'each gets the event of the transaction');
});

t.test('a key that nobody has is not behind those that a transaction has', async (t) => {
    const { publish, whileOpen } = await host(t);
    const repeated: Promise<string>[] = [];
    await whileOpen(async () => {
        const others = Array.from({ length: 40 }, (_, index) => `other ${index}`);
        // They come in the same moment, and share statements.
        repeated.push(...KEYS.map((key) => publish(key)));
        await within(Promise.all(others.map((key) => publish(key))), AT_ONCE);
    });
    await within(Promise.all(repeated), AT_ONCE);
});
