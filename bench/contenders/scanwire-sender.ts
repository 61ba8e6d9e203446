import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { redisQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { memoryQueue } from 'scanwire/memory';
import { openEmbeddedDatabase } from 'scanwire/pglite';
import { migrate, postgresWebhooks } from 'scanwire/postgres';
import { plugin } from 'scanwire/webhook-exporter';
import { webhookTracing } from 'scanwire/webhooks';
import type { HostOptions } from '../senders.ts';
import { now } from './http.ts';
import { investigation } from './investigation.ts';
import { publishMany, serveSender } from './sender-server.ts';

/**
 * The whole way of a delivery through scanwire in one process: accept, dispatch, claim, sign, POST, record. On PostgreSQL and Redis,
 * or embedded; with no option but what it cannot do without, unless it is told otherwise. Of several exporters, each has a path of its own.
 * Processes on the same database are one deployment.
 */
const [url = '', store = '', at = '', count = '1', options = '{}'] = process.argv.slice(2);
const {
    window,
    orderKeys = 0,
    owners = 0,
    idempotencyKeys = false,
    settings,
    paused = false,
    watched = [],
    options: besides,
    notices = false,
} = JSON.parse(options) as HostOptions;
const pool = store === 'embedded' ? await openEmbeddedDatabase({ folder: at }) : new pg.Pool({ connectionString: at, max: 10 });
await migrate(pool);
const deployment = createHash('sha256').update(at).digest();
const queue =
    store === 'embedded'
        ? memoryQueue()
        : redisQueue({ url: process.env.REDIS_URL ?? '', prefix: `bench-${deployment.toString('hex', 0, 6)}` });
const watching = watched.length === 0 ? null : await import('./watched.ts');
if (watched.includes('spans')) {
    watching?.recordSpans();
}
const server = hapiServer();
await server.register({
    plugin,
    options: {
        stores: postgresWebhooks({ pool }),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: deployment } }),
        egress: { allow: ['127.0.0.0/8'] },
        ...(window !== undefined && { window }),
        ...besides,
        ...(watched.includes('spans') && { tracing: await webhookTracing() }),
    },
});
if (watched.includes('metrics')) {
    await watching?.scrapeMetrics(server);
}
await server.initialize();
const { publish, publishAll, exporters, deliveries } = server.plugins['webhook-exporter'];

/** So many are started at once, each with its test: as many as there are connections. */
const STARTED_AT_ONCE = 10;

const ownerOf = (index: number) => (owners === 0 ? {} : { owner: `owner ${index % owners}` });

async function startExporter(index: number): Promise<void> {
    const given = { ...settings, ...ownerOf(index), ...(orderKeys > 0 && { ordered: true }) };
    const { exporter } = await exporters.create({ url: new URL(String(index), url).href, ...given });
    await exporters.start(exporter.id);
    if (paused) {
        await exporters.pause(exporter.id);
    }
}

for (let before = 0; before < Number(count); before += STARTED_AT_ONCE) {
    const length = Math.min(STARTED_AT_ONCE, Number(count) - before);
    await Promise.all(Array.from({ length }, (_, index) => startExporter(before + index + 1)));
}
if (notices) {
    const kinds = ['exporter_failing', 'exporter_stopped', 'exporter_recovered'];
    const { exporter } = await exporters.create({ url: new URL('notices', url).href, kinds });
    await exporters.start(exporter.id);
}

/** Of the host's own: at 50 a second, more transactions stay open than the engine has connections, and it would wait for them. */
const host = new pg.Pool({ connectionString: at, max: 50 });

/** More than are on their way at once. An index gives the newest; a search for unfinished ones would walk the table. */
const NEWEST = Math.min(1_000, Math.max(300, Number(count)));
/** A text to the compiler: events come from whoever measures. */
const KIND: string = 'idr_investigation_created';

let published = 0;

function namesOfNext() {
    published += 1;
    return {
        ...ownerOf(published),
        ...(orderKeys > 0 && { orderKey: `key ${published % orderKeys}` }),
        ...(idempotencyKeys && { idempotencyKey: randomUUID() }),
    };
}

async function publishOne(event: Record<string, unknown>): Promise<void> {
    await publish(KIND, event, namesOfNext());
}

async function publishTogether(size: number): Promise<void> {
    await publishAll(Array.from({ length: size }, () => ({ kind: KIND, body: investigation(), ...namesOfNext() })));
}

serveSender({
    publish: publishOne,

    burst: (events, how) => publishMany(events, how.perCall === undefined ? () => publishOne(investigation()) : publishTogether, how),

    async publishInTransaction(event, open) {
        const client = await host.connect();
        try {
            await client.query('begin');
            if (event !== null) {
                await publish(KIND, event, { tx: client });
            }
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
