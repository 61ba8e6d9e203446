import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { postgresRecords } from '../../../adapters/postgres/index.ts';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { migratedPool } from '../../support/migrated-database.ts';

const pool = await migratedPool(t, { max: 10, options: '-c default_transaction_isolation=repeatable\\ read' });

function manyRecords(count: number): HttpsRecord[] {
    return Array.from({ length: count }, (_, index) => ({ data: '', host: `host${index}.example`, ip: '192.0.2.7', port: 443 }));
}

t.test('stores no record without what it says about the inventory', async (t) => {
    const store = postgresRecords({ pool });
    await t.rejects(store.add(manyRecords(3), { enrich: { workspace: 'no text of PostgreSQL: \0' } }));
    t.same(await store.list({ limit: 10 }), []);
});

t.test('stores nothing where the boundary of the workspace is none', async (t) => {
    await pool.query(`insert into scanwire.workspaces (name, boundary, limit_to_network) values ('office', 'the office', true)`);
    const store = postgresRecords({ pool });
    await t.rejects(store.add(manyRecords(3), { enrich: { workspace: 'office' } }), { code: 'CONFLICT', field: 'boundary' });
    t.same(await store.list({ limit: 10 }), []);
});

t.test('takes the same records from several at once, whatever isolation the database starts with', async (t) => {
    const stores = Array.from({ length: 4 }, () => postgresRecords({ pool }));
    const added = await Promise.all(stores.map((store) => store.add(manyRecords(400), { enrich: { workspace: 'default' } })));
    t.equal(added.flat().filter(({ isNew }) => isNew).length, 400);
    t.equal(new Set(added.flat().map(({ id }) => id)).size, 400);
});

t.test('takes the lock of the table before that of the workspace, as processes of the version before do', async (t) => {
    const other = await pool.connect();
    await other.query('begin isolation level read committed');
    await other.query("select pg_advisory_xact_lock(hashtextextended('scanwire.records', 0))");
    const adding = postgresRecords({ pool }).add(manyRecords(2), { enrich: { workspace: 'default' } });
    await until(
        async () =>
            (
                await pool.query(
                    `select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted and l.locktype = 'advisory'`,
                )
            ).rows.length > 0,
    );
    await other.query(`set local lock_timeout = '250ms'`);
    await t.resolves(other.query(`select from scanwire.workspaces where name = 'default' for no key update`));
    await other.query('rollback');
    other.release();
    t.equal((await adding).length, 2);
});

t.test('goes on beyond 32 bits, as nothing that clients read as an id of the specification does', async (t) => {
    const last = 2 ** 32;
    await pool.query(`select setval('scanwire.records_id_seq', $1)`, [last]);
    const store = postgresRecords({ pool });
    const added = await store.add(manyRecords(402).slice(400));
    t.same(
        added.map(({ id, isNew }) => [id, isNew]),
        [
            [last + 1, true],
            [last + 2, true],
        ],
    );
    t.match(await store.list({ after: last, limit: 10 }), [{ id: last + 1 }, { id: last + 2 }]);
    const { rows } = await pool.query(
        `select sequencename from pg_sequences where schemaname = 'scanwire' and data_type <> 'bigint'::regtype`,
    );
    t.same(
        rows.map(({ sequencename }) => sequencename).toSorted(),
        ['hosts', 'notes', 'services', 'sessions', 'vulns', 'workspaces'].map((table) => `${table}_id_seq`),
    );
});
