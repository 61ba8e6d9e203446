import { randomBytes, randomUUID } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { patiently } from '../../adapters/postgres/database.ts';
import { postgresStores } from '../../adapters/postgres/index.ts';
import { addressRange } from '../../lib/address-range.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { emitPoisoned } from '../../lib/webhooks/observing/emitted-events.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { collect } from '../support/collect.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

/** A pool as an application may have it, what its connections do on the server, and a connection that can keep all of them waiting. */
async function lockable(t: Test, max?: number) {
    const database = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: database.url, application_name: 'reads', ...(max !== undefined && { max }) });
    const beside = new pg.Client({ connectionString: database.url });
    const observer = new pg.Client({ connectionString: database.url });
    await Promise.all([beside.connect(), observer.connect()]);
    t.teardown(async () => {
        await Promise.all([beside.end(), observer.end()]);
        await pool.end();
        await database.drop();
    });
    return {
        pool,
        lock: () =>
            beside.query(
                'begin; lock table scanwire.exporters, scanwire.deliveries, scanwire.events, scanwire.hosts, scanwire.attempts, scanwire.audit_entries in access exclusive mode',
            ),
        unlock: () => beside.query('rollback'),

        /** Statements that run, or wait for a lock. */
        async running(): Promise<number> {
            const sql = "select 1 from pg_stat_activity where application_name = 'reads' and state = 'active'";
            // In a transaction the server shows again what it has shown before.
            return (await observer.query(sql)).rows.length;
        },
    };
}

t.test('the server ends a statement that nobody waits for any more, and the connection is used again as it was', async (t) => {
    const { pool, lock, unlock, running } = await lockable(t, 1);
    const db = patiently(pool, { statement: 30_000, onServer: 300 });
    const pid = async () => (await db.query('select pg_backend_pid() as pid')).rows[0];
    const before = await pid();
    await lock();
    await t.rejects(db.query('select count(*) from scanwire.deliveries'), {
        code: 'UNAVAILABLE',
        message: 'The database cannot be used now: it has ended a statement that took too long (57014)',
    });
    t.equal(await running(), 0);
    await unlock();
    t.same(await pid(), before);
    t.match((await pool.query('show statement_timeout')).rows, [{ statement_timeout: '0' }], 'nothing of it is left in the session');
});

t.test('requests give up reads and leave none running, while the engine goes on with its own', async (t) => {
    // Each of them has a connection.
    const { pool, lock, unlock, running } = await lockable(t, 20);
    const { audit, inventory, webhooks: stores } = postgresStores({ pool });
    const { exporters, deliveries } = stores;
    const guard = egressGuard({ allow: [] });
    const queue = memoryQueue();
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    const engine = webhooks({ ...stores, queue, keyRing: ring, guard, sender: httpSender({ guard }) });
    t.teardown(async () => {
        await engine.close();
        await queue.close();
    });
    const errors: Error[] = [];
    const id = randomUUID();
    await lock();
    const started = engine.start();
    const emitted = emitPoisoned([id], { deliveries, onEvent: () => {}, onError: (error) => void errors.push(error) });
    // It is judged in the end.
    started.catch(() => undefined);
    await until(async () => (await running()) === 3);

    const reads: readonly (() => Promise<unknown> | undefined)[] = [
        () => exporters.list(),
        () => exporters.summaries?.({}),
        () => deliveries.list({ limit: 1 }),
        () => deliveries.get(id),
        () => deliveries.count({}, 10),
        () => deliveries.attemptLists?.list({ limit: 1 }),
        () => deliveries.attemptLists?.list({ limit: 1, since: new Date(0) }),
        () => deliveries.attemptLists?.count({ exporterId: id }, 10),
        () => deliveries.activity?.([new Date(0), new Date()], { max: 10 }),
        () => audit.list({ limit: 1, actor: 'nobody' }),
        () => inventory.hosts.count?.([1], {}),
        ...[
            { search: 'nowhere' },
            // What has changed is in its order, and all of it may lie elsewhere.
            { address: addressRange('192.0.2.1'), updated_since: new Date(0) },
            // More than are looked up by address, in the order of ids.
            { address: addressRange('10.0.0.0/7') },
            { address: addressRange('10.0.0.0/12') },
        ].map((where) => () => collect(present(inventory.hosts.select)([1], { where, limit: 1 }))),
    ];
    await Promise.all(reads.map((read) => t.rejects(async () => await read(), { code: 'UNAVAILABLE' })));
    t.equal(await running(), 3, 'what the engine has asked for, and nothing else');

    await unlock();
    await t.resolves(started);
    await emitted;
    t.strictSame(errors, []);
});
