import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { server as hapiServer } from '@hapi/hapi';
import { Pool } from 'pg';
import { postgresQueue, redisQueue } from '../adapters/bullmq/index.ts';
import { openEmbeddedDatabase } from '../adapters/pglite/index.ts';
import { migrate, type PoolLike, postgresWebhooks } from '../adapters/postgres/index.ts';
import { keyRing } from '../lib/keys/key-ring.ts';
import type { DeliveryQueue } from '../lib/webhooks/queue.ts';
import { plugin } from '../plugins/webhook-exporter/index.ts';
import { investigation } from './investigation.ts';

/**
 * The whole way of a delivery through scanwire in one process: accept, dispatch, claim, sign, POST, record. Prints deliveries
 * per second from the first `publish` to the last recorded outcome.
 */
const [mode = 'embedded', url = '', countText = '0'] = process.argv.slice(2);
const count = Number(countText);
const { pool, queue, end }: Stores = mode === 'embedded' ? await embedded() : await servers();
const stores = postgresWebhooks({ pool });
const server = hapiServer();
await server.register({
    plugin,
    options: {
        stores,
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        egress: { allow: ['127.0.0.0/8'] },
        window: 200,
    },
});
await server.initialize();
const { publish, exporters } = server.plugins['webhook-exporter'];
const { exporter } = await exporters.create({ url });
await exporters.start(exporter.id);

const started = performance.now();
for (let published = 0; published < count; published += 100) {
    await Promise.all(
        Array.from({ length: Math.min(100, count - published) }, () => publish('idr_investigation_created', investigation())),
    );
}

const accepted = (performance.now() - started) / 1000;
while ((await unfinished()) > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
}

const seconds = (performance.now() - started) / 1000;
await server.stop();
await end();
process.stdout.write(
    `${JSON.stringify({ perSecond: count / seconds, acceptedPerSecond: count / accepted, peakMiB: process.resourceUsage().maxRSS / 1024 })}\n`,
);
process.exit(0);

async function unfinished(): Promise<number> {
    const { rows } = await pool.query(`select 1 from scanwire.deliveries where state in ('pending', 'queued', 'sending') limit 1`);
    return rows.length;
}

interface Stores {
    readonly pool: PoolLike;
    readonly queue: DeliveryQueue;
    end(): Promise<void>;
}

async function embedded(): Promise<Stores> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const pool = await openEmbeddedDatabase({ folder });
    await migrate(pool);
    const queue = postgresQueue({ pool });
    return {
        pool,
        queue,
        async end() {
            await queue.close();
            await pool.end();
            await rm(folder, { recursive: true });
        },
    };
}

async function servers(): Promise<Stores> {
    const admin = new Pool({ connectionString: process.env.DATABASE_URL, max: 1 });
    const database = `scanwire_bench_${randomBytes(6).toString('hex')}`;
    await admin.query(`create database ${database}`);
    const at = new URL(process.env.DATABASE_URL ?? '');
    at.pathname = `/${database}`;
    const pool = new Pool({ connectionString: at.href, max: 10 });
    await migrate(pool);
    const queue = redisQueue({ url: process.env.REDIS_URL ?? '', prefix: database });
    return {
        pool,
        queue,
        async end() {
            await queue.close();
            await pool.end();
            await admin.query(`drop database ${database}`);
            await admin.end();
        },
    };
}
