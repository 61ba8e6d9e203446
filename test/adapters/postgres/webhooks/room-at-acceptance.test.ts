import { randomUUID } from 'node:crypto';
import t from 'tap';
import { memoryQueue } from '../../../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { recordingProcess } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

const WINDOW = 10;
/** So many publishes at once, each on a connection of its own. */
const AT_ONCE = 20;

const pool = await migratedPool(t, { max: AT_ONCE + 4 });

/** What is handed out stays in flight: nobody takes the jobs. */
const idleQueue = { ...memoryQueue(), add: async () => {} };

t.test('exceeds a window by no more than one acceptance hands out, however it is published', async (t) => {
    const stores = postgresWebhooks({ pool });
    // Counted is what is handed out at acceptance.
    const deliveries = { ...stores.deliveries, dispatch: async () => ({ handedOut: [], waitsFor: [] }) };
    const self = recordingProcess(t, { ...stores, deliveries }, { window: WINDOW, queue: idleQueue });
    const { exporter } = await self.exporters.create({ url: 'https://receiver.example/' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    await self.start();

    const event = { kind: 'idr_investigation_created', body: { ...INVESTIGATION, title: 'One of many' } } as const;
    const many = (count: number) => self.publishAll(Array.from({ length: count }, () => event));
    const one = (keys: { idempotencyKey?: string; orderKey?: string }) => self.publish(event.kind, event.body, keys);
    const ways = {
        'lists as long as the window': () => many(WINDOW),
        'longer lists': () => many(5 * WINDOW),
        'with idempotency keys': () => one({ idempotencyKey: randomUUID() }),
        'with order keys': () => one({ orderKey: randomUUID() }),
        'one by one': () => one({}),
    };
    const waysInTurn = Object.values(ways);
    const mixed = { 'in all ways': (_: unknown, index: number) => (waysInTurn[index % waysInTurn.length] as () => Promise<unknown>)() };
    let handedOut = 0;
    for (const [name, publish] of Object.entries({ ...ways, ...mixed })) {
        await pool.query('truncate scanwire.deliveries cascade');
        await Promise.all(Array.from({ length: AT_ONCE }, publish));
        const { rows } = await pool.query(`select count(*)::integer from scanwire.deliveries where state = 'queued'`);
        const [{ count }] = rows as [{ count: number }];
        t.ok(count <= 2 * WINDOW, `${name}: ${count} in flight`);
        handedOut += count;
    }
    // None need be of one way: what was accepted beyond the limit may be stored first, and is older than the rest then.
    t.ok(handedOut >= WINDOW, `${handedOut} in all`);
});
