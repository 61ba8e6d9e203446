import pg from 'pg';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { migrate } from '../../adapters/postgres/index.ts';
import { migrations } from '../../adapters/postgres/migrate.ts';
import { testDatabase } from '../support/test-database.ts';

t.test('a migration that waits for a transaction over the inventory leaves deliveries to everybody', async (t) => {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {});
    t.after(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool, { steps: migrations.slice(0, 3) });

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

/** The tables whose locks are waited for. */
async function waitingFor(pool: pg.Pool): Promise<readonly string[]> {
    const { rows } = await pool.query<{ name: string }>(
        `select relation::regclass::text as name from pg_locks
         where not granted and relation is not null and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows.map(({ name }) => name.replace('scanwire.', ''));
}
