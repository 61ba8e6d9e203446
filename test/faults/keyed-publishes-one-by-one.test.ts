/** Publishes with idempotency keys share statements, so that many at once are handed out at once; a key that is refused or locked is at nobody else's cost. */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { within } from '../../lib/within.ts';
import { migratedMemory, migratedPool } from '../support/migrated-database.ts';
import { recordingProcess } from '../support/recording-process.ts';
import { INVESTIGATION } from '../support/simulated-deployment.ts';

const KIND = 'idr_investigation_created';
const AT_ONCE = 50;

const postgresPool = (t: Test): Promise<pg.Pool> => migratedPool(t, { max: 6 });

async function embeddedStores(t: Test): Promise<WebhookStores> {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    return postgresWebhooks({ pool });
}

const STORES: Readonly<Record<string, (t: Test) => Promise<WebhookStores>>> = {
    memory: async () => memoryWebhooks(),
    PGlite: embeddedStores,
    PostgreSQL: async (t) => postgresWebhooks({ pool: await postgresPool(t), notify: false }),
};

/** A host with one exporter to which nothing is sent, and what its acceptances were. */
async function host(t: Test, stores: WebhookStores) {
    const statements: { readonly events: number; readonly handsOut: boolean }[] = [];
    const deliveries: WebhookStores['deliveries'] = {
        ...stores.deliveries,
        accept(newEvents, options) {
            statements.push({ events: newEvents.length, handsOut: options?.handOut !== undefined });
            return stores.deliveries.accept(newEvents, options);
        },
        dispatch: async () => ({ handedOut: [], waitsFor: [] }),
    };
    // What is handed out stays in flight: nobody takes the jobs.
    const queue = { ...memoryQueue(), add: async () => {} };
    const self = recordingProcess(t, { ...stores, deliveries }, { queue, window: 1_000, sleep });
    const { exporter } = await self.exporters.create({ url: 'https://receiver.example/' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    await self.start();
    // Who chooses what is read once.
    await self.publish(KIND, { ...INVESTIGATION, title: 'first' });
    statements.length = 0;
    const publish = (title: string, idempotencyKey: string) => self.publish(KIND, { ...INVESTIGATION, title }, { idempotencyKey });
    return { ...self, publish, statements };
}

const names = Array.from({ length: AT_ONCE }, (_, index) => `event ${index}`);

for (const [name, open] of Object.entries(STORES)) {
    t.test(`on ${name}`, async (t) => {
        const { publish, statements, deliveries } = await host(t, await open(t));
        const published = await Promise.all(names.map((one) => publish(one, one)));
        t.equal(new Set(published.map(({ eventId }) => eventId)).size, AT_ONCE);
        t.ok(statements.length <= 4, `by ${statements.length} statements`);
        t.ok(
            statements.every(({ handsOut }) => handsOut),
            'which hand out at once',
        );

        // One key stands for another event, and one comes twice.
        const mixed = [...names.slice(0, 20), 'changed', ...names.map((one) => `new ${one}`), 'new event 3'];
        statements.length = 0;
        const settled = await Promise.allSettled(mixed.map((one) => publish(one, one === 'changed' ? 'event 30' : one)));
        const refused = settled.flatMap((one, index) => (one.status === 'rejected' ? [[index, one.reason.code, one.reason.field]] : []));
        t.strictSame(refused, [[20, 'CONFLICT', 'idempotencyKey']], 'it fails alone');
        const ids = settled.map((one) => (one.status === 'fulfilled' ? one.value.eventId : null));
        t.strictSame(
            ids.slice(0, 20),
            published.slice(0, 20).map(({ eventId }) => eventId),
            'what was there is answered',
        );
        t.equal(ids.at(-1), ids[24], 'and what comes twice is accepted once');
        t.ok(statements.length <= 2 + 2 * 8, `by ${statements.length} statements`);
        t.equal((await deliveries.list({ limit: 500 })).length, 1 + 2 * AT_ONCE);
    });
}

t.test('a key that an open transaction has is waited for by nobody else', async (t) => {
    const pool = await postgresPool(t);
    const { publish, publishAll, statements } = await host(t, postgresWebhooks({ pool, notify: false }));
    const tx = await pool.connect();
    await tx.query('begin');
    const body = { ...INVESTIGATION, title: 'held' };
    const [first] = await publishAll([{ kind: KIND, body, idempotencyKey: 'held' }], { tx });
    const waiting = [publish('a', 'a'), publish('b', 'b'), publish('held', 'held')];
    for (let round = 0; round < 5; round += 1) {
        const others = Promise.all(names.map((one) => publish(one, `${one} of ${round}`)));
        await within(others, { timeout: 3_000, late: () => new Error('They wait for the transaction') });
    }
    const isOpen = await Promise.race([Promise.all(waiting).then(() => false), Promise.resolve(true)]);
    t.ok(isOpen);
    t.notOk(statements.at(-1)?.handsOut === false, 'and others hand out meanwhile');
    await tx.query('commit');
    tx.release();
    t.equal((await Promise.all(waiting)).at(-1)?.eventId, first?.eventId);
});
