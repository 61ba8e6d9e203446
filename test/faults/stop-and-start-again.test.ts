import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { WebhookStores } from '../../lib/webhooks/options.ts';
import { plugin, type WebhookExporterOptions } from '../../plugins/webhook-exporter/index.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

const KIND = 'idr_investigation_created';
const options = (stores: WebhookStores): WebhookExporterOptions => ({
    stores,
    queue: memoryQueue(),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    egress: { allow: ['127.0.0.0/8'] },
});

t.test('a server that was stopped delivers again once it is started again', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const server = hapiServer();
    await server.register({ plugin, options: options(memoryWebhooks()) });
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const errors: unknown[] = [];
    server.events.on('log', ({ error }) => errors.push(error));
    await server.start();
    const { exporter } = await exporters.create({ url: receiver.url });
    await exporters.start(exporter.id);

    for (const round of [1, 2]) {
        await server.stop();
        const published = await publish(KIND, investigation);
        t.equal((await deliveries.show(published.deliveries[0] ?? '')).state, 'pending', 'nothing is sent meanwhile');
        await server.start();
        await receiver.received(KIND, round);
        await until(async () => (await deliveries.show(published.deliveries[0] ?? '')).state === 'delivered');
        t.equal((await deliveries.show(published.deliveries[0] ?? '')).attempts, 1);
    }
    await server.stop();
    t.strictSame(errors, []);
    t.strictSame(receiver.kinds, ['test', KIND, KIND]);
});

t.test('what is being sent is recorded before a host ends its pool', async (t) => {
    const held: ServerResponse[] = [];
    const receiver = await countingReceiver(t, (response) => held.push(response));
    const database = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: database.url });
    const server = hapiServer();
    // What the host does at a stop comes before what its plugins do.
    server.ext('onPreStop', () => void setTimeout(() => held[0]?.writeHead(204).end(), 300));
    server.ext('onPostStop', () => pool.end());
    await server.register({ plugin, options: options(postgresWebhooks({ pool: pool as PoolLike })) });
    await server.start();
    const { exporters, publish } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url });
    await exporters.start(exporter.id);
    const published = await publish(KIND, investigation);
    await receiver.received(KIND);

    await server.stop();

    const later = new pg.Pool({ connectionString: database.url });
    t.teardown(async () => {
        await later.end();
        await database.drop();
    });
    const { deliveries } = postgresWebhooks({ pool: later as PoolLike });
    t.match(await deliveries.get(published.deliveries[0] ?? ''), { state: 'delivered' });
});
