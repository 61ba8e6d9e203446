import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { postgresQueue } from '../../../adapters/bullmq/index.ts';
import { until } from '../../../adapters/contract/assertions.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../lib/webhooks/dispatching/delivery-queue.ts';
import { freePort } from '../../support/free-port.ts';
import { OldPool } from '../../support/old-pool.ts';
import { testDatabase } from '../../support/test-database.ts';

const job = (collector = 'default', attempt = 1): DeliveryJob => ({
    collector,
    deliveryId: randomUUID(),
    attempt,
    singleAttempt: false,
    reservation: null,
});

const RESERVATION = { token: 'a', beginBy: 1, generation: 0, attemptSinceReplay: 1, settings: 0 };

async function opened(t: Test, options: pg.PoolConfig = {}): Promise<{ pool: pg.Pool; queue: DeliveryQueue; url: string }> {
    const database = await testDatabase();
    const pool = new pg.Pool({ connectionString: database.url, ...options });
    pool.on('error', () => {});
    const queue = postgresQueue({ pool });
    t.teardown(async () => {
        await queue.close();
        await pool.end();
        await database.drop();
    });
    return { pool, queue, url: database.url };
}

function noting(seen: string[]): (job: DeliveryJob) => Promise<void> {
    return async ({ deliveryId }) => {
        seen.push(deliveryId);
    };
}

t.test('hands a job to the worker of its collector and keeps none afterwards', async (t) => {
    const { pool, queue } = await opened(t);
    await queue.ready();
    const [home, emea]: [string[], string[]] = [[], []];
    const workers = [
        await queue.work('default', noting(home), { concurrency: 2 }),
        await queue.work('emea', noting(emea), { concurrency: 2 }),
    ];
    const jobs = [job('default'), job('emea')];
    await queue.add([...jobs, ...jobs]);
    await until(() => home.length + emea.length === 2);
    t.same([home, emea], [[jobs[0]?.deliveryId], [jobs[1]?.deliveryId]]);
    await Promise.all(workers.map((worker) => worker.close()));
    const { rows } = await pool.query('SELECT count(*)::int AS jobs FROM bullmq.job');
    t.same(rows, [{ jobs: 0 }]);
});

t.test('wakes an idle worker at once', async (t) => {
    const { queue } = await opened(t);
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work('default', noting(seen), { concurrency: 1 });
    t.teardown(() => worker.close());
    for (const added of [job(), job(), job()]) {
        await queue.add([added]);
        await until(() => seen.includes(added.deliveryId));
    }
});

t.test("leaves the search_path of the host's sessions alone, and its pool open", async (t) => {
    const { pool, queue } = await opened(t, { max: 1, options: '-c search_path=mine' });
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work('default', noting(seen), { concurrency: 1 });
    await queue.add([job()]);
    await until(() => seen.length === 1);
    t.same((await pool.query('SHOW search_path')).rows, [{ search_path: 'mine' }]);
    await worker.close();
    await queue.close();
    t.same((await pool.query('SELECT 1 AS one')).rows, [{ one: 1 }]);
});

t.test('serves more collectors than it has connections', async (t) => {
    const { queue } = await opened(t, { max: 1 });
    await queue.ready();
    const seen: string[] = [];
    const names = Array.from({ length: 8 }, (_, index) => `c${index}`);
    const workers = await Promise.all(names.map((name) => queue.work(name, noting(seen), { concurrency: 1 })));
    await queue.add(names.map((name) => job(name)));
    await until(() => seen.length === names.length);
    await Promise.all(workers.map((worker) => worker.close()));
});

t.test('migrates when several start together', async (t) => {
    const { pool, queue } = await opened(t);
    const others = [postgresQueue({ pool }), postgresQueue({ pool })];
    await Promise.all([queue, ...others].map((each) => each.ready()));
    await Promise.all(others.map((each) => each.close()));
    const { rows } = await pool.query('SELECT count(*) > 0 AS migrated FROM bullmq.migration');
    t.same(rows, [{ migrated: true }]);
});

t.test('starts a worker before the schema is there', async (t) => {
    const { queue } = await opened(t);
    const seen: string[] = [];
    const worker = await queue.work('default', noting(seen), { concurrency: 1 });
    const added = job();
    await queue.add([added]);
    await until(() => seen.includes(added.deliveryId));
    await worker.close();
});

t.test('survives the loss of every connection', async (t) => {
    const { pool, queue } = await opened(t);
    await queue.ready();
    const seen: string[] = [];
    const worker = await queue.work('default', noting(seen), { concurrency: 2 });
    t.teardown(() => worker.close());
    const [before, after] = [job(), job()];
    await queue.add([before]);
    await until(() => seen.includes(before.deliveryId));
    await pool.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    await until(() =>
        queue.add([after]).then(
            () => true,
            () => false,
        ),
    );
    await until(() => seen.includes(after.deliveryId));
});

t.test('hands over no claim after a connection was lost', async (t) => {
    const { pool, queue } = await opened(t);
    await queue.ready();
    // What a process hands out to its own worker needs no server.
    const other = postgresQueue({ pool });
    t.teardown(() => other.close());
    const seen: DeliveryJob[] = [];
    let open = (): void => {};
    const worker = await queue.work(
        'default',
        (one) => {
            seen.push(one);
            return seen.length === 2 ? new Promise<void>((resolve) => (open = resolve)) : Promise.resolve();
        },
        { concurrency: 1 },
    );
    t.teardown(() => worker.close());
    await other.add([{ ...job(), reservation: RESERVATION }]);
    await until(() => seen.length === 1);
    t.strictSame(seen[0]?.reservation, RESERVATION);

    // It has no claim, so that the next one waits for its end in the server.
    await other.add([job()]);
    await until(() => seen.length === 2);
    await other.add([{ ...job(), reservation: RESERVATION }]);
    await pool.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    open();
    await until(() => seen.length === 3);
    t.equal(seen[2]?.reservation, null);
});

t.test('reports what a handler throws and drops the job', async (t) => {
    const { pool, queue } = await opened(t);
    const errors: Error[] = [];
    const failing = async (): Promise<void> => {
        throw new Error('broken handler');
    };
    const worker = await queue.work('default', failing, { concurrency: 1, onError: (error) => errors.push(error) });
    await queue.add([job()]);
    await until(() => errors.some(({ message }) => message === 'broken handler'));
    await worker.close();
    const { rows } = await pool.query('SELECT count(*)::int AS jobs FROM bullmq.job');
    t.same(rows, [{ jobs: 0 }]);
});

t.test('is unavailable where no PostgreSQL listens, and closes', async (t) => {
    const pool = new pg.Pool({ host: '127.0.0.1', port: await freePort(), user: 'postgres', password: 'hunter2' });
    const queue = postgresQueue({ pool });
    await t.rejects(queue.ready(), {
        code: 'UNAVAILABLE',
        message: 'PostgreSQL cannot be reached: nothing listens at its address (ECONNREFUSED)',
    });
    await t.rejects(queue.add([job()]), { code: 'UNAVAILABLE' });
    const worker = await queue.work('default', async () => {}, { concurrency: 1 });
    await worker.close();
    await queue.close();
    await pool.end();
});

t.test('refuses a pg whose pools do not prepare their sessions', async (t) => {
    const database = await testDatabase();
    const pool = new OldPool({ connectionString: database.url });
    const queue = postgresQueue({ pool });
    t.teardown(async () => {
        await queue.close();
        await pool.end();
        await database.drop();
    });
    await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: /^The pg package is too old for the queue/ });
});

t.test('refuses what can never work', async (t) => {
    const none = 'postgresQueue options: pool must be a pool of node-postgres or the embedded database, and no client';
    const client = new pg.Client({ connectionString: 'postgres://127.0.0.1:1/none' });
    for (const given of [
        {},
        undefined,
        null,
        'postgres://127.0.0.1/none',
        client,
        Object.assign(client, { options: {}, Client: pg.Client }),
    ]) {
        t.throws(() => postgresQueue({ pool: given as unknown as pg.Pool }), { code: 'MISCONFIGURED', field: 'pool', message: none });
    }
    t.throws(() => postgresQueue(client as unknown as { pool: pg.Pool }), { code: 'MISCONFIGURED' });
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, database: 'no_such_database' });
    t.throws(() => postgresQueue({ pool, connections: 0 }), { code: 'MISCONFIGURED', field: 'connections' });
    await pool.end();
    const url = new URL(process.env.DATABASE_URL ?? '');
    url.pathname = '/no_such_database';
    const missing = new pg.Pool({ connectionString: url.href });
    const queue = postgresQueue({ pool: missing });
    await t.rejects(queue.ready(), { code: 'MISCONFIGURED', message: /no_such_database/ });
    await queue.close();
    await missing.end();
});
