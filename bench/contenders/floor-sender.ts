import { createHmac, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { Pool } from 'undici';
import type { HostOptions } from '../senders.ts';
import { serve, textOf } from './http.ts';
import { investigation } from './investigation.ts';
import { type Burst, publishMany } from './sender-server.ts';

/**
 * The floor: what the parts of a delivery cost that is kept. One prepared statement stores event and delivery, a BullMQ job carries the
 * body, its worker POSTs it, and one prepared statement finishes the delivery. Nothing is checked, claimed, vetted, batched or retried.
 *
 * `POST /` takes an event as it is, `POST /burst?count=N` stores so many by one statement a call, `GET /recorded` waits until all is finished.
 */
const [url = '', database = '', options = '{}'] = process.argv.slice(2);
const { paused = false } = JSON.parse(options) as HostOptions;
const { origin, pathname } = new URL(url);
const receiver = new Pool(origin, { connections: 50 });
const pool = new pg.Pool({ connectionString: database, max: 10 });
await pool.query(`create table events (id uuid primary key, body text, created_at timestamptz default now());
    create table deliveries (id uuid primary key, event_id uuid, state text, created_at timestamptz default now(), finished_at timestamptz);
    create index on deliveries (created_at) where state = 'queued';
    create table attempts (id bigserial primary key, delivery_id uuid, outcome jsonb, at timestamptz default now())`);

const ACCEPT = `with accepted as (insert into events (id, body) values (gen_random_uuid(), $1) returning id)
    insert into deliveries (id, event_id, state) select gen_random_uuid(), id, 'queued' from accepted returning id`;
const ACCEPT_MANY = `with accepted as (insert into events (id, body) select gen_random_uuid(), b.body from unnest($1::text[]) b (body) returning id)
    insert into deliveries (id, event_id, state) select gen_random_uuid(), id, 'queued' from accepted returning id`;
const FINISH = `with finished as (
        update deliveries set state = 'delivered', finished_at = now() where id = $1 and state = 'queued' returning id
    )
    insert into attempts (delivery_id, outcome) select id, '{}'::jsonb from finished`;

interface Job {
    readonly body: string;
    /** Of the delivery. */
    readonly id: string;
}

const connect = (): Redis => new Redis(process.env.REDIS_URL ?? '', { maxRetriesPerRequest: null });
const name = `floor-${randomUUID()}`;
const queue = new Queue<Job>(name, { connection: connect() });
const worker = new Worker<Job>(name, ({ data }) => deliver(data), { connection: connect(), concurrency: 50 });
if (paused) {
    await queue.pause();
}
let unfinished = 0;
const jobs = new EventEmitter();
worker.on('completed', () => {
    unfinished -= 1;
    if (unfinished === 0) {
        jobs.emit('done');
    }
});

async function accept(request: IncomingMessage): Promise<void> {
    const body = await textOf(request);
    const { rows } = await pool.query<{ id: string }>({ name: 'accept', text: ACCEPT, values: [body] });
    unfinished += 1;
    await queue.add('send', { body, id: rows[0]?.id as string }, { removeOnComplete: true });
}

async function acceptMany(count: number): Promise<void> {
    const bodies = Array.from({ length: count }, () => JSON.stringify(investigation()));
    const { rows } = await pool.query<{ id: string }>({ name: 'accept many', text: ACCEPT_MANY, values: [bodies] });
    unfinished += count;
    const jobs = rows.map(({ id }, index) => ({
        name: 'send',
        data: { body: bodies[index] as string, id },
        opts: { removeOnComplete: true },
    }));
    await queue.addBulk(jobs);
}

async function deliver({ body, id }: Job): Promise<void> {
    const signature = createHmac('sha256', 'secret').update(body).digest('base64');
    const headers = { 'content-type': 'application/json', 'x-signature': signature };
    const response = await receiver.request({ method: 'POST', path: pathname, headers, body });
    await response.body.dump();
    await pool.query({ name: 'finish', text: FINISH, values: [id] });
}

async function recorded(): Promise<void> {
    if (unfinished > 0) {
        await once(jobs, 'done');
    }
}

async function answer(request: IncomingMessage): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://sender');
    if (pathname === '/burst') {
        await publishMany(Number(searchParams.get('count')), acceptMany, JSON.parse(await textOf(request)) as Burst);
    } else {
        await (request.method === 'POST' ? accept(request) : recorded());
    }
}

serve(
    createServer((request, response) => {
        answer(request).then(
            () => response.writeHead(202).end(),
            (error) => response.writeHead(500).end(String(error)),
        );
    }),
);
process.once('SIGTERM', () => process.exit(0));
