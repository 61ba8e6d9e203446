import { randomBytes } from 'node:crypto';
import { mock } from 'node:test';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { openMemoryDatabase } from '../../adapters/pglite/index.ts';
import { migrate, type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';
import { testDatabase } from '../support/test-database.ts';

const KIND = 'idr_investigation_created';

interface HostOptions {
    readonly pool: PoolLike;
    readonly notify?: boolean;
    /** Replaces methods of the store. */
    readonly change?: (store: DeliveryStore) => Partial<DeliveryStore>;
}

/** A host that sends what it publishes in transactions of its own. */
async function host(t: Test, { pool, notify = true, change = () => ({}) }: HostOptions) {
    const errors: Error[] = [];
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const stores = postgresWebhooks({ pool, notify });
    let looks = 0;
    const counting: DeliveryStore = {
        ...stores.deliveries,
        dispatch: (options) => {
            looks += 1;
            return stores.deliveries.dispatch(options);
        },
    };
    const { publish, exporters, start, work, close } = webhooks({
        ...stores,
        deliveries: { ...counting, ...change(counting) },
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        onError: (error) => errors.push(error),
    });
    const begin = async (): Promise<void> => {
        await start();
        await work(['default']);
    };
    await begin();
    t.teardown(() => close());
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { exporter } = await exporters.create({ url: receiver.url });
    await exporters.start(exporter.id);

    /** Publishes in a transaction that is committed when `beforeCommit` is done. */
    async function published(beforeCommit = async (): Promise<void> => {}) {
        const client = await pool.connect();
        await client.query('begin');
        const event = await publish(KIND, investigation, { tx: client });
        await beforeCommit();
        await client.query('commit');
        client.release();
        return event;
    }
    return { published, receiver, begin, close, errors, looks: () => looks };
}

async function database(t: Test): Promise<pg.Pool> {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => undefined);
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool);
    return pool;
}

/** From now on nothing is polled. */
function withoutPolling(t: Test): void {
    mock.timers.enable({ apis: ['setInterval'] });
    t.teardown(() => mock.timers.reset());
}

t.test('what a host has committed is sent without a poll', async (t) => {
    withoutPolling(t);
    const { published, receiver, begin, close, errors } = await host(t, { pool: await database(t) });
    for (const count of [1, 2, 3]) {
        await published();
        await receiver.received(KIND, count);
    }
    await close();
    await begin();
    await published();
    await receiver.received(KIND, 4);
    t.same(errors, [], 'also after a stop and a start');
});

t.test('so it is on the embedded database', async (t) => {
    withoutPolling(t);
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    const { published, receiver } = await host(t, { pool });
    for (const count of [1, 2, 3]) {
        await published();
        await receiver.received(KIND, count);
    }
    t.equal(receiver.kinds.filter((kind) => kind === KIND).length, 3);
});

t.test('nobody looks before the commit, and wake() makes up for a notification', async (t) => {
    withoutPolling(t);
    const { published, receiver, looks } = await host(t, { pool: await database(t), notify: false });
    await receiver.received('test');
    let before = 0;
    let meanwhile = 0;
    const { wake } = await published(async () => {
        // What was under way is done: a look leads to no other while nobody wakes.
        await until(async () => {
            before = looks();
            await new Promise((resolve) => setImmediate(resolve));
            return before === looks();
        });
        meanwhile = looks();
    });
    t.equal(looks(), meanwhile);
    t.notOk(receiver.kinds.includes(KIND));
    wake();
    await receiver.received(KIND);
});

t.test('a notification that is lost is made good by polling', async (t) => {
    const change = (): Partial<DeliveryStore> => ({ listen: () => ({ ready: Promise.resolve(), close: async () => undefined }) });
    const { published, receiver } = await host(t, { pool: await database(t), change });
    await published();
    await receiver.received(KIND);
    t.ok(receiver.kinds.includes(KIND));
});
