import pg from 'pg';
import t from 'tap';
import { migrate, postgresRecords } from '../../../adapters/postgres/index.ts';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { testDatabase } from '../../support/test-database.ts';

const { url, drop } = await testDatabase();
const pool = new pg.Pool({ connectionString: url, max: 10, options: '-c default_transaction_isolation=repeatable\\ read' });
pool.on('error', () => {}); // the pool has ended before its connections have
await migrate(pool);
t.teardown(async () => {
    await pool.end();
    await drop();
});

function manyRecords(count: number): HttpsRecord[] {
    return Array.from({ length: count }, (_, index) => ({ data: '', host: `host${index}.example`, ip: '192.0.2.7', port: 443 }));
}

t.test('stores no record without what it says about the inventory', async (t) => {
    const store = postgresRecords({ pool });
    await t.rejects(store.add(manyRecords(3), { enrich: { workspace: 'no text of PostgreSQL: \0' } }));
    t.same(await store.list({ limit: 10 }), []);
});

t.test('takes the same records from several at once, whatever isolation the database starts with', async (t) => {
    const stores = Array.from({ length: 4 }, () => postgresRecords({ pool }));
    const added = await Promise.all(stores.map((store) => store.add(manyRecords(400), { enrich: { workspace: 'default' } })));
    t.equal(added.flat().filter(({ isNew }) => isNew).length, 400);
    t.equal(new Set(added.flat().map(({ id }) => id)).size, 400);
});
