import { createHmac, randomUUID } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';
import { investigation } from './investigation.ts';

/**
 * The peer: what one would write in an afternoon with BullMQ and undici. The body is in the job, nothing is stored, nothing
 * is claimed, no address is vetted. Prints deliveries per second.
 */
const [url = '', countText = '0'] = process.argv.slice(2);
const count = Number(countText);
const redisUrl = process.env.REDIS_URL ?? '';
const name = `bare-${randomUUID()}`;
const producer = new Redis(redisUrl, { maxRetriesPerRequest: 1 });
const consumer = new Redis(redisUrl, { maxRetriesPerRequest: null });
const queue = new Queue(name, { connection: producer });
const pool = new Pool(new URL(url).origin, { connections: 50 });

const started = performance.now();
for (let added = 0; added < count; added += 100) {
    const jobs = Array.from({ length: Math.min(100, count - added) }, () => ({
        name: 'event',
        data: investigation(),
        opts: { removeOnComplete: true, jobId: randomUUID() },
    }));
    await queue.addBulk(jobs);
}

let completed = 0;
await new Promise<void>((resolve) => {
    const worker = new Worker(name, (job) => deliver(job.data), { connection: consumer, concurrency: 200 });
    worker.on('completed', () => {
        completed += 1;
        if (completed === count) {
            resolve();
        }
    });
});
const seconds = (performance.now() - started) / 1000;
await queue.obliterate({ force: true });
process.stdout.write(`${JSON.stringify({ perSecond: count / seconds, peakMiB: process.resourceUsage().maxRSS / 1024 })}\n`);
process.exit(0);

async function deliver(data: unknown): Promise<void> {
    const body = Buffer.from(JSON.stringify(data));
    const signature = createHmac('sha256', 'secret').update(body).digest('base64');
    const response = await pool.request({
        method: 'POST',
        path: new URL(url).pathname,
        headers: { 'content-type': 'application/json; charset=UTF-8', 'x-vendor-signature': signature },
        body,
    });
    await response.body.dump();
}
