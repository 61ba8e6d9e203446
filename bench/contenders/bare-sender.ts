import { createHmac, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { Pool } from 'undici';
import { investigation } from './investigation.ts';
import { serveSender } from './sender-server.ts';

/**
 * The peer: what one would write in an afternoon with BullMQ and undici. The body is in the job, nothing is claimed, no address is
 * vetted. Nothing is stored either, unless a database is given: then two statements do, one for what is accepted, one for the outcome.
 */
const [url = '', database = ''] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const receiver = new Pool(origin, { connections: 50 });
const redisUrl = process.env.REDIS_URL ?? '';
const name = `bare-${randomUUID()}`;
const queue = new Queue<Job>(name, { connection: new Redis(redisUrl, { maxRetriesPerRequest: 1 }) });
const rows = database === '' ? null : new pg.Pool({ connectionString: database, max: 10 });
await rows?.query(`create table events (id uuid primary key, body text, created_at timestamptz default now());
    create table deliveries (id uuid primary key, event_id uuid, state text, created_at timestamptz default now(), finished_at timestamptz);
    create index on deliveries (created_at) where state = 'queued';
    create table attempts (id bigserial primary key, delivery_id uuid, outcome json, at timestamptz default now())`);

const ACCEPT = `with accepted as (insert into events (id, body) values (gen_random_uuid(), $1) returning id)
    insert into deliveries (id, event_id, state) select gen_random_uuid(), id, 'queued' from accepted returning id`;
const FINISH = `with finished as (
        update deliveries set state = 'delivered', finished_at = now() where id = $1 and state = 'queued' returning id
    )
    insert into attempts (delivery_id, outcome) select id, '{}' from finished`;
const PER_CALL = 100;

interface Job {
    readonly body: string;
    /** Of the row, where there is one. */
    readonly id?: string;
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

async function deliver({ body, id }: Job): Promise<void> {
    const signature = createHmac('sha256', 'secret').update(body).digest('base64');
    const headers = { 'content-type': 'application/json; charset=UTF-8', 'x-vendor-signature': signature };
    const response = await receiver.request({ method: 'POST', path: pathname, headers, body });
    await response.body.dump();
    await rows?.query({ name: 'finish', text: FINISH, values: [id] });
}

const event = (data: Job) => ({ name: 'event', data, opts: { removeOnComplete: true, jobId: randomUUID() } });

serveSender({
    async publish(published) {
        const body = JSON.stringify(published);
        const accepted = await rows?.query<{ id: string }>({ name: 'accept', text: ACCEPT, values: [body] });
        const { name, data, opts } = event({ body, ...accepted?.rows[0] });
        unfinished += 1;
        await queue.add(name, data, opts);
    },

    ...(rows === null && {
        async burst(count) {
            for (let added = 0; added < count; added += PER_CALL) {
                const length = Math.min(PER_CALL, count - added);
                unfinished += length;
                await queue.addBulk(Array.from({ length }, () => event({ body: JSON.stringify(investigation()) })));
            }
        },
    }),

    async recorded() {
        if (unfinished > 0) {
            await once(jobs, 'done');
        }
    },
});
