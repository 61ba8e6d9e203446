import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import t, { type Test } from 'tap';
import { inParallel, only, present, until } from '../../adapters/contract/assertions.ts';
import { forAll, holderOf, sampleEvent, sampleExporter, success } from '../../adapters/contract/webhooks/fixture.ts';
import { migrate, type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { Migration } from '../../adapters/postgres/migrate.ts';
import { claimsPlannedOnce } from '../../adapters/postgres/migrations/0104-claims-planned-once.ts';
import { migrations } from '../../adapters/postgres/migrations/index.ts';
import { BREAKER, HAND_OUT } from '../plans/way.ts';
import { testDatabase } from '../support/test-database.ts';

t.test('a migration that waits for a transaction over the inventory leaves deliveries to everybody', async (t) => {
    const { pool } = await migrated(t, migrations.slice(0, 3));

    const reader = await pool.connect();
    await reader.query('begin');
    await reader.query('select from scanwire.hosts');
    const migrating = migrate(pool);
    try {
        await until(async () => (await waitingFor(pool)).includes('hosts'));
        const client = await pool.connect();
        await client.query(`set lock_timeout = '250ms'`);
        await t.resolves(client.query('select from scanwire.deliveries'), 'while it waits');
        client.release(true);
        // It gives way to whoever stands behind it, and keeps what it was done with.
        await until(async () => (await waitingFor(pool)).length === 0);
        const { rows } = await pool.query('select count(*)::integer as count from scanwire.migration');
        t.ok(rows[0].count > 3, `${rows[0].count} steps are kept`);
        await pool.query('select from scanwire.workspaces');
    } finally {
        await reader.query('commit');
        reader.release();
    }

    t.same(
        await migrating,
        migrations.slice(3).map(({ id }) => id),
    );
});

const RELEASED = upTo('0062-claims-of-sessions');
const INDEX = '0065-listed-2-kind';

function upTo(end: string): readonly Migration[] {
    return migrations.slice(
        0,
        migrations.findIndex(({ id }) => id === end),
    );
}

const idsAfter = (steps: readonly Migration[]): readonly string[] => migrations.slice(steps.length).map(({ id }) => id);

/** A schema of these steps, in a database of its own. */
async function migrated(t: Test, steps: readonly Migration[]) {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {});
    t.after(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool, { steps });
    return { url, pool };
}

/** The same with a delivery that is kept. */
async function kept(t: Test, steps: readonly Migration[]) {
    const { url, pool } = await migrated(t, steps);
    const { exporters, deliveries } = postgresWebhooks({ pool, notify: false });
    await exporters.insert(sampleExporter());
    await deliveries.accept([forAll(sampleEvent())]);
    await pool.query(`update scanwire.deliveries set state = 'exhausted', finished_at = now()`);
    return { url, pool, deliveries };
}

/** A transaction that has written deliveries, for which an index of them has to wait; answers with how to end it. */
async function writing(pool: pg.Pool): Promise<() => Promise<void>> {
    const writer = await pool.connect();
    await writer.query('begin');
    await writer.query('update scanwire.deliveries set priority = priority');
    return async () => {
        await writer.query('commit');
        writer.release();
    };
}

/** The process id of the server's that builds an index, or drops what is left of one, and waits for others; null while there is none. */
async function builder(pool: pg.Pool): Promise<number | null> {
    const { rows } = await pool.query<{ pid: number }>(
        `select pid from pg_stat_activity
         where datname = current_database() and query ~ '^(create|drop) index concurrently' and wait_event_type = 'Lock'`,
    );
    return rows[0]?.pid ?? null;
}

async function invalidIndexes(pool: pg.Pool): Promise<readonly string[]> {
    const { rows } = await pool.query<{ name: string }>('select indexrelid::regclass::text as name from pg_index where not indisvalid');
    return rows.map(({ name }) => name);
}

function migrateElsewhere(url: string): ChildProcess {
    const script = fileURLToPath(new URL('../adapters/postgres/migrate-child.js', import.meta.url));
    return spawn(process.execPath, [script, url], { stdio: ['ignore', 'pipe', 'inherit'] });
}

t.test('no later migration makes an index of a table from before within a transaction', (t) => {
    for (const step of migrations.slice(RELEASED.length)) {
        const sql = 'sql' in step ? step.sql : '';
        const tables = new Set([...sql.matchAll(/create table (scanwire\.\w+)/g)].map(([, table]) => table));
        const indexed = [...sql.matchAll(/create (?:unique )?index.*? on (scanwire\.\w+)/g)].map(([, table]) => table);
        t.same(
            indexed.filter((table) => !tables.has(table)),
            [],
            step.id,
        );
    }
    t.end();
});

t.test('deliveries are accepted, claimed and finished while an index of them is built', async (t) => {
    const { pool, deliveries } = await kept(t, upTo(INDEX));
    const end = await writing(pool);
    const migrating = migrate(pool);
    await until(async () => (await builder(pool)) !== null);

    const { deliveryId, token: reservation } = holderOf(
        only(only(await deliveries.accept([forAll(sampleEvent())], { handOut: HAND_OUT })).handedOut),
    );
    // What a claim of today asks for, which a later migration makes.
    await pool.query(claimsPlannedOnce.sql);
    const claim = only(await deliveries.claim([{ deliveryId, token: randomUUID(), duration: 30_000, reservation }], null));
    await pool.query('drop function scanwire.claimed_messages');
    await deliveries.recordOutcomes([success(present(claim))], BREAKER);
    t.match(await deliveries.get(deliveryId), { state: 'delivered' });
    t.not(await builder(pool), null, 'all that while it waits');

    await end();
    t.same(await migrating, idsAfter(upTo(INDEX)));
    t.same(await invalidIndexes(pool), []);
});

t.test('an index whose building broke off is built again', async (t) => {
    const { pool } = await kept(t, upTo(INDEX));
    const end = await writing(pool);
    const migrating = migrate(pool);
    const refused = t.rejects(migrating, { code: 'UNAVAILABLE' });
    await until(async () => (await builder(pool)) !== null);
    await pool.query('select pg_terminate_backend($1)', [await builder(pool)]);
    await refused;
    t.same(await invalidIndexes(pool), ['scanwire.deliveries_kind']);

    const mending = migrate(pool);
    await until(async () => (await builder(pool)) !== null);
    await end();
    t.same(await mending, idsAfter(upTo(INDEX)));
    t.same(await invalidIndexes(pool), []);
});

t.test('an index that was built for a process that died meanwhile is kept', async (t) => {
    const { url, pool } = await kept(t, upTo(INDEX));
    const end = await writing(pool);
    const child = migrateElsewhere(url);
    await until(async () => (await builder(pool)) !== null);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const index = async () => (await pool.query(`select 'scanwire.deliveries_kind'::regclass::oid as oid`)).rows;
    const left = await index();

    const migrating = migrate(pool);
    await end();
    t.same(await migrating, idsAfter(upTo(INDEX)));
    t.same(await index(), left);
    t.same(await invalidIndexes(pool), []);
});

t.test('three processes that start together migrate kept deliveries once', async (t) => {
    const { url, pool } = await kept(t, RELEASED);
    const outputs = await inParallel(3, async () => JSON.parse(await text(present(migrateElsewhere(url).stdout))));
    t.same(outputs.flat().sort(), idsAfter(RELEASED));
    t.same(await invalidIndexes(pool), []);
});

t.test('an index gives way to a process of an earlier version, which waits in a transaction, and is built behind it', async (t) => {
    const { pool } = await kept(t, upTo(INDEX));
    const end = await writing(pool);
    const migrating = migrate(pool);
    await until(async () => (await builder(pool)) !== null);
    const earlier = await pool.connect();
    // It is the building that finds the two waiting for each other.
    await earlier.query(`set deadlock_timeout = '1h'; begin`);
    const waiting = earlier.query('select pg_advisory_xact_lock(1935892846, 2003399269)');
    await until(async () => (await waitingFor(pool, 'advisory')).length > 0);
    await end();
    await waiting;
    await earlier.query('rollback');
    earlier.release(true);
    t.same(await migrating, idsAfter(upTo(INDEX)));
    t.same(await invalidIndexes(pool), []);
});

t.test('an index that another process has built meanwhile is not built once more', async (t) => {
    const { pool } = await kept(t, upTo(INDEX));
    let connections = 0;
    const late = {
        query: pool.query.bind(pool) as PoolLike['query'],
        async connect() {
            connections += 1;
            if (connections === 2) {
                t.same(await migrate(pool), idsAfter(upTo(INDEX)));
            }
            return await pool.connect();
        },
    };
    t.same(await migrate(late), []);
});

/** The tables, or what else there are locks of, whose locks are waited for. */
async function waitingFor(pool: pg.Pool, type = 'relation'): Promise<readonly string[]> {
    const { rows } = await pool.query<{ name: string }>(
        `select coalesce(relation::regclass::text, locktype) as name from pg_locks
         where not granted and locktype = $1 and database = (select oid from pg_database where datname = current_database())`,
        [type],
    );
    return rows.map(({ name }) => name.replace('scanwire.', ''));
}
