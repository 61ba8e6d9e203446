/** A transaction of the application that has published with an order key keeps whoever publishes with that key waiting, and nobody else. */
import type pg from 'pg';
import t, { type Test } from 'tap';
import type { PublishOptions } from '../../lib/webhooks/events/unrouted-event.ts';
import { within } from '../../lib/within.ts';
import { investigation } from '../support/investigation.ts';
import { orderedHost } from '../support/ordered-host.ts';

const KIND = 'idr_investigation_created';
/** The transaction of the application takes one of them. */
const CONNECTIONS = 4;
/** Far below what a statement is waited for. */
const AT_ONCE = { timeout: 3_000 };

/** A host with an ordered exporter to which nothing is sent. */
async function host(t: Test) {
    const { engine, pool, watching } = await orderedHost(t, CONNECTIONS);
    const published: string[] = [];
    async function publish(name: string, options: PublishOptions): Promise<void> {
        await engine.publish(KIND, { ...investigation, title: name }, options);
        published.push(name);
    }

    async function inTransaction(run: (tx: pg.PoolClient) => Promise<void>): Promise<void> {
        const tx = await pool.connect();
        await tx.query('begin');
        try {
            await run(tx);
        } finally {
            await tx.query('commit');
            tx.release();
        }
    }

    return {
        publish,
        published,

        /** Names of the events of a key, in the order in which they were accepted. */
        async inOrder(key: string): Promise<readonly string[]> {
            const { rows } = await watching.query<{ title: string }>(
                `select v.body::json->>'title' as title
                from scanwire.deliveries d join scanwire.events v on v.id = d.event_id where d.order_key = $1 order by d.seq`,
                [key],
            );
            return rows.map(({ title }) => title);
        },

        async waitingForLocks(): Promise<number> {
            const { rows } = await watching.query(
                'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted and l.locktype = $1',
                ['advisory'],
            );
            return rows.length;
        },

        /** Runs while a transaction has published with these keys. */
        whileOpen: (keys: readonly string[], run: () => Promise<void>) =>
            inTransaction(async (tx) => {
                for (const orderKey of keys) {
                    await publish(`${orderKey} of the transaction`, { orderKey, tx });
                }
                await run();
            }),

        /** The same with all of them in one call. */
        whileOpenTogether: (keys: readonly string[], run: () => Promise<void>) =>
            inTransaction(async (tx) => {
                await engine.publishAll(
                    keys.map((orderKey) => ({ kind: KIND, body: investigation, orderKey })),
                    { tx },
                );
                await run();
            }),
    };
}

/** What is published meanwhile, each event by a call of its own. */
function calls({ publish }: Pick<Awaited<ReturnType<typeof host>>, 'publish'>, key: string, count: number, idempotent = false) {
    return Array.from({ length: count }, (_, index) => {
        const name = `${key} ${index}`;
        return publish(name, { orderKey: key, ...(idempotent && index % 3 === 1 && { idempotencyKey: name }) });
    });
}

t.test('publishes of other keys go on, whatever key a transaction has', async (t) => {
    const own = await host(t);
    const waiting: Promise<void>[] = [];
    await own.whileOpen(['a'], async () => {
        waiting.push(...calls(own, 'a', 2));
        await new Promise((resolve) => setTimeout(resolve, 100));
        // Those of the key and those of others come in the same moment, and again.
        for (let round = 0; round < 3; round += 1) {
            waiting.push(...calls(own, 'a', 2));
            const others = Array.from({ length: 60 }, (_, index) => calls(own, `other ${index}`, 2)).flat();
            await within(Promise.all(others), AT_ONCE);
            t.ok((await own.waitingForLocks()) <= 1, 'one connection waits');
        }
        t.notOk(
            own.published.some((name) => /^a \d/.test(name)),
            'those of the key wait',
        );
    });
    await within(Promise.all(waiting), AT_ONCE);
    t.strictSame(await own.inOrder('a'), ['a of the transaction', ...[0, 1, 0, 1, 0, 1, 0, 1].map((index) => `a ${index}`)]);
});

t.test('few connections wait, however many keys a transaction has', async (t) => {
    const own = await host(t);
    const keys = Array.from({ length: 20 }, (_, index) => `key ${index}`);
    const waiting: Promise<void>[] = [];
    await own.whileOpen(keys, async () => {
        waiting.push(...keys.flatMap((key) => calls(own, key, 5, true)));
        for (let round = 0; round < 10; round += 1) {
            await within(Promise.all(calls(own, `other ${round}`, 3, true)), AT_ONCE);
            t.ok((await own.waitingForLocks()) <= 2, 'two of them wait');
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    });
    await within(Promise.all(waiting), AT_ONCE);
    for (const key of keys) {
        t.strictSame(await own.inOrder(key), [`${key} of the transaction`, ...[0, 1, 2, 3, 4].map((index) => `${key} ${index}`)]);
    }
});

t.test('behind a transaction that has all keys few connections wait, and nobody without a key', async (t) => {
    const own = await host(t);
    const keys = Array.from({ length: 120 }, (_, index) => `key ${index}`);
    const waiting: Promise<void>[] = [];
    await own.whileOpenTogether(keys, async () => {
        waiting.push(...['a', 'b', 'c'].flatMap((key) => calls(own, key, 5, true)));
        for (let round = 0; round < 10; round += 1) {
            await within(own.publish(`without ${round}`, {}), AT_ONCE);
            t.ok((await own.waitingForLocks()) <= 2, 'two of them wait');
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        t.equal(own.published.length, 10);
    });
    await within(Promise.all(waiting), AT_ONCE);
    t.equal(own.published.length, 25);
});
