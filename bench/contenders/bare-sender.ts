import { createHmac, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';
import { investigation } from './investigation.ts';
import { serveSender } from './sender-server.ts';

/**
 * The peer: what one would write in an afternoon with BullMQ and undici. The body is in the job; nothing is stored, nothing is claimed, no
 * address is vetted.
 */
const [url = ''] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const receiver = new Pool(origin, { connections: 50 });
const redisUrl = process.env.REDIS_URL ?? '';
const name = `bare-${randomUUID()}`;
const queue = new Queue<Job>(name, { connection: new Redis(redisUrl, { maxRetriesPerRequest: 1 }) });
const PER_CALL = 100;

interface Job {
    readonly body: string;
}

let unfinished = 0;
const jobs = new EventEmitter();
const worker = new Worker<Job>(name, ({ data }) => deliver(data), {
    connection: new Redis(redisUrl, { maxRetriesPerRequest: null }),
    concurrency: 200,
});
worker.on('completed', () => {
    unfinished -= 1;
    if (unfinished === 0) {
        jobs.emit('done');
    }
});

async function deliver({ body }: Job): Promise<void> {
    const signature = createHmac('sha256', 'secret').update(body).digest('base64');
    const headers = { 'content-type': 'application/json; charset=UTF-8', 'x-vendor-signature': signature };
    const response = await receiver.request({ method: 'POST', path: pathname, headers, body });
    await response.body.dump();
}

const event = (data: Job) => ({ name: 'event', data, opts: { removeOnComplete: true, jobId: randomUUID() } });

serveSender({
    async publish(published) {
        const { name, data, opts } = event({ body: JSON.stringify(published) });
        unfinished += 1;
        await queue.add(name, data, opts);
    },

    async burst(count) {
        for (let added = 0; added < count; added += PER_CALL) {
            const length = Math.min(PER_CALL, count - added);
            unfinished += length;
            await queue.addBulk(Array.from({ length }, () => event({ body: JSON.stringify(investigation()) })));
        }
    },

    async recorded() {
        if (unfinished > 0) {
            await once(jobs, 'done');
        }
    },
});
