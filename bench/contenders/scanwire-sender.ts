import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { redisQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { memoryQueue } from 'scanwire/memory';
import { openEmbeddedDatabase } from 'scanwire/pglite';
import { migrate, postgresWebhooks } from 'scanwire/postgres';
import { plugin } from 'scanwire/webhook-exporter';
import { now } from './http.ts';
import { serveSender } from './sender-server.ts';

/**
 * The whole way of a delivery through scanwire in one process: accept, dispatch, claim, sign, POST, record. On PostgreSQL and Redis,
 * or embedded; with a window of so many, or with no option but what it cannot do without. Of several exporters, each has a path of its own.
 * With order keys, exporters are ordered and the events have the keys in turn.
 */
const [url = '', store = '', at = '', window = '', count = '1', keys = '0'] = process.argv.slice(2);
const orderKeys = Number(keys);
const pool = store === 'embedded' ? await openEmbeddedDatabase({ folder: at }) : new pg.Pool({ connectionString: at, max: 10 });
await migrate(pool);
const queue =
    store === 'embedded'
        ? memoryQueue()
        : redisQueue({ url: process.env.REDIS_URL ?? '', prefix: `bench-${randomBytes(6).toString('hex')}` });
const server = hapiServer();
await server.register({
    plugin,
    options: {
        stores: postgresWebhooks({ pool }),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        egress: { allow: ['127.0.0.0/8'] },
        ...(window !== '' && { window: Number(window) }),
    },
});
await server.initialize();
const { publish, exporters, deliveries } = server.plugins['webhook-exporter'];
for (let index = 1; index <= Number(count); index += 1) {
    const { exporter } = await exporters.create({ url: new URL(String(index), url).href, ...(orderKeys > 0 && { ordered: true }) });
    await exporters.start(exporter.id);
}

/** Of the host's own: at 50 a second, more transactions stay open than the engine has connections, and it would wait for them. */
const host = new pg.Pool({ connectionString: at, max: 50 });

/** More than are on their way at once. An index gives the newest; a search for unfinished ones would walk the table. */
const NEWEST = 300;

let published = 0;

serveSender({
    async publish(event) {
        published += 1;
        const key = orderKeys === 0 ? {} : { orderKey: `key ${published % orderKeys}` };
        await publish('idr_investigation_created', event, key);
    },

    async publishInTransaction(event, open) {
        const client = await host.connect();
        try {
            await client.query('begin');
            await publish('idr_investigation_created', event, { tx: client });
            await sleep(open);
            await client.query('commit');
            return now();
        } finally {
            client.release();
        }
    },

    async recorded() {
        while ((await deliveries.list({ limit: NEWEST })).some(({ finishedAt }) => finishedAt === null)) {
            await sleep(20);
        }
    },
});
