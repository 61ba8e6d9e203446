import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import Joi from 'joi';
import pg from 'pg';
import { redisQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { migrate, postgresWebhooks } from 'scanwire/postgres';
import { egressGuard, httpSender, webhooks } from 'scanwire/webhooks';
import { serveSender } from './sender-server.ts';

/**
 * Sends what is published to one exporter, and events with `noise`, which is how many bytes, to the exporters beside it, whose URLs are given as JSON. One name server, which knows
 * the one exporter's receiver by the name that follows, or the machine's. So many deliveries to the last of them are due for a retry at the start.
 */
const [url = '', at = '', neighbourUrls = '[]', nameServer = '', name = '', retries = '0'] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: at, max: 10 });
await migrate(pool);
const guard = egressGuard({ allow: ['127.0.0.0/8'] });
const { publish, exporters, deliveries, start, work } = webhooks({
    ...postgresWebhooks({ pool }),
    queue: redisQueue({ url: process.env.REDIS_URL ?? '', prefix: `bench-${randomBytes(6).toString('hex')}` }),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    guard,
    sender: httpSender({ guard, ...(nameServer !== '' && { nameServers: [nameServer] }) }),
    kinds: [{ name: 'noise', schema: Joi.object().unknown(), types: () => ['investigation_legacy'] }],
});
await start();
await work(['default']);
const { exporter } = await exporters.create({ url: name === '' ? url : url.replace('127.0.0.1', name) });
await exporters.start(exporter.id);
await Promise.all(
    (JSON.parse(neighbourUrls) as string[]).map(async (neighbour) => {
        const { exporter } = await exporters.create({ url: neighbour, legacy: true });
        await pool.query(`update scanwire.exporters set state = 'running' where id = $1`, [exporter.id]);
    }),
);
await pool.query(
    `with tried as (
        insert into scanwire.events (id, kind, body, created_at)
        select gen_random_uuid(), 'noise', '{}', now() from generate_series(1, $1::integer)
        returning id
    )
    insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, attempts, round)
    select tried.id, e.id, now(), 2, e.collector, 1, 1
    from tried
    cross join (select * from scanwire.exporters where type = 'investigation_legacy' order by seq desc limit 1) e`,
    [Number(retries)],
);
// Retries come to be one by one; what so many at once leave the database to clear up and to write would come at some time during the measurement.
await pool.query('vacuum analyze');
await pool.query('checkpoint');

serveSender({
    async publish({ noise, ...event }) {
        if (noise === undefined) {
            await publish<string>('idr_investigation_created', event, { rules: 'library' });
        } else {
            await publish('noise', { text: 'x'.repeat(Number(noise)) });
        }
    },

    async recorded() {
        while ((await deliveries.list({ exporterId: exporter.id, limit: 300 })).some(({ finishedAt }) => finishedAt === null)) {
            await sleep(20);
        }
    },
});
