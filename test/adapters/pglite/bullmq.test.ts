import { randomUUID } from 'node:crypto';
import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq';
import pg from 'pg';
import t from 'tap';
import { postgresQueue } from '../../../adapters/bullmq/index.ts';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, postgresStores, transaction } from '../../../adapters/postgres/index.ts';

const JOBS = 60;

/** Sessions of the queue look into its own schema; ours do not notice. */
const onConnect = async (client: pg.ClientBase): Promise<void> => {
    await client.query('set search_path to bullmq');
};

t.test('carries a BullMQ queue while the stores and transactions of ours run', async (t) => {
    const database = await openMemoryDatabase();
    await migrate(database);
    const { inventory } = postgresStores({ pool: database });
    const client = await database.connect();
    await runMigrations(client, 'bullmq');
    client.release();

    const pool = new pg.Pool({ ...database.options, onConnect });
    const connection = pool as unknown as { host: string };
    const queue = new Queue('deliveries', { connection }, createPostgresBackend);
    const done = new Set<string>();
    let finish: () => void = () => {};
    const finished = new Promise<void>((resolve) => {
        finish = resolve;
    });
    const worker = new Worker(
        'deliveries',
        async ({ data, name, timestamp }) => {
            await transaction(database, async (client) => {
                await client.query('update scanwire.workspaces set description = $1 where id = 1', [String(data.n)]);
                await client.query('select 1');
            });
            done.add(`${name} ${data.n}`);
            t.ok(name !== 'delayed' || Date.now() - timestamp >= 200);
            if (done.size === JOBS + 1) {
                finish();
            }
        },
        { connection, concurrency: 10 },
        createPostgresBackend,
    );
    worker.on('error', (error) => t.fail(error.message));

    await queue.add('delayed', { n: 0 }, { delay: 200 });
    const adding = Array.from({ length: JOBS }, (_, n) => queue.add('soon', { n }));
    const hosts = Array.from({ length: 300 }, (_, n) => ({ address: `10.0.${n >> 8}.${n & 255}` }));
    const summary = await inventory.importHosts('default', each(hosts));
    await Promise.all([...adding, finished]);

    t.equal(summary.hosts.new, hosts.length);
    t.equal(done.size, JOBS + 1);
    t.same((await database.query('show search_path')).rows, [{ search_path: 'public' }]);
    await worker.close();
    t.match(await queue.getJobCounts('completed', 'failed'), { completed: JOBS + 1, failed: 0 });
    await queue.close();
    await pool.end();
    await database.end();
});

t.test('can be ended while a worker still listens', async (t) => {
    const database = await openMemoryDatabase();
    const client = await database.connect();
    await runMigrations(client, 'bullmq');
    client.release();
    const pool = new pg.Pool({ ...database.options, onConnect });
    pool.on('error', () => {});
    const worker = new Worker('idle', async () => {}, { connection: pool as unknown as { host: string } }, createPostgresBackend);
    worker.on('error', () => {});
    await worker.waitUntilReady();
    await database.end();
    await t.rejects(pool.query('select 1'), { code: 'UNAVAILABLE' });
    await worker.close(true);
    await pool.end();
});

async function* each<T>(values: readonly T[]): AsyncGenerator<T> {
    yield* values;
}

t.test('takes few jobs of a queue one by one, and many by one statement', async (t) => {
    const database = await openMemoryDatabase();
    const statements: string[] = [];
    class CountedPool extends pg.Pool {
        override query(...args: unknown[]): never {
            statements.push(String(args[0]));
            return super.query(...(args as [string])) as never;
        }
    }
    const pool = new CountedPool({ ...database.options });
    const queue = postgresQueue({ pool });
    t.teardown(async () => {
        await queue.close();
        await pool.end();
        await database.end();
    });
    const job = () => ({ collector: 'default', deliveryId: randomUUID(), attempt: 1, singleAttempt: false, reservation: null });
    await queue.add([job()]);
    for (const [count, adding] of [
        [1, 1],
        [3, 3],
        [4, 1],
    ] as const) {
        statements.length = 0;
        await queue.add(Array.from({ length: count }, job));
        t.equal(statements.filter((text) => /add_/.test(text)).length, adding, `${count} jobs`);
        t.equal(statements.filter((text) => /add_jobs_bulk/.test(text)).length, count === 4 ? 1 : 0);
    }
});
