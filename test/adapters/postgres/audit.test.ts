import t from 'tap';
import { present } from '../../../adapters/contract/assertions.ts';
import { auditStoreContract } from '../../../adapters/contract/index.ts';
import { postgresAudit } from '../../../adapters/postgres/index.ts';
import { tapTest } from '../contract/tap-test.ts';
import { databases } from './databases.ts';

for (const { name, openMigrated } of databases) {
    t.test(`keeps the laws of audit trails on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        auditStoreContract(tapTest(t), () => ({
            store: postgresAudit({ pool }),
            start: async () => {
                await pool.query('truncate scanwire.audit_entries');
            },
            setTime: async (time) => {
                await pool.query(
                    `create or replace function scanwire.now() returns timestamptz language sql volatile as $$
                        select timestamptz '${time.toISOString()}' $$`,
                );
            },
        }));
    });
}

t.test('reads only the entries that go, and those of a page, whatever is kept', async (t) => {
    const { pool, stop } = await present(databases[0]).openMigrated();
    t.after(stop);
    const store = postgresAudit({ pool });
    await pool.query(
        `insert into scanwire.audit_entries (at, actor, operation)
         select now() - n * interval '1 second', 'ada', 'createKey' from generate_series(1, 50000) n`,
    );
    await pool.query('analyze scanwire.audit_entries');
    const rowsRead = async (): Promise<number> => {
        await pool.query('select pg_stat_force_next_flush()').catch(() => {});
        const { rows } = await pool.query<{ read: string }>(
            `select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_user_tables where relname = 'audit_entries'`,
        );
        return Number(rows[0]?.read);
    };
    const before = await rowsRead();
    t.equal(await store.begin({ actor: 'ada', operation: 'createKey', subject: null }, 86_400_000).then(Number), 50_001);
    t.equal((await store.list({ limit: 50 })).length, 50);
    const { rows } = await pool.query<Record<string, string>>(
        `explain select from scanwire.audit_entries e
         where e.at < (select scanwire.now() - interval '1 day') order by e.at, e.id limit 100 for update skip locked`,
    );
    t.match(rows.map((row) => row['QUERY PLAN']).join('\n'), /Index Cond: \(at </);
    t.ok((await rowsRead()) - before < 10_000);
});
