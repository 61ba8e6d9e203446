import { randomUUID } from 'node:crypto';
import t from 'tap';
import { patiently, transaction } from '../../adapters/postgres/database.ts';
import { migrate, postgresInventory, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { prepared } from '../../adapters/postgres/prepared.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { importCounts } from '../../lib/inventory/import-counts.ts';
import { databases, type OpenDatabase } from '../adapters/postgres/databases.ts';
import { each, manyHosts } from '../adapters/postgres/imports/imported.ts';

type Pool = OpenDatabase['pool'];

const COUNT = prepared('select * from counts()');

/** A function that counts how often it was run. */
const COUNTS = `create sequence runs; create function counts() returns table (n bigint) language sql as $$ select nextval('runs') $$`;

/** By every connection of the embedded database, and by one of PostgreSQL: they are asked for on the one that came back last. */
async function kept(pool: Pool): Promise<string[]> {
    const { rows } = await pool.query<{ name: string }>(`select name from pg_prepared_statements where name like 'scanwire%' order by 1`);
    return rows.map(({ name }) => name);
}

for (const { name, open } of databases) {
    t.test(`prepared statements on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        await pool.query(COUNTS);
        const db = patiently(pool);
        const run = async () => (await db.query<{ n: string }>(COUNT)).rows;

        t.test('are kept under one name, and the others under none', async (t) => {
            t.same([await run(), await run()], [[{ n: '1' }], [{ n: '2' }]]);
            await db.query('select 1 as one');
            t.match(await kept(pool), [/^scanwire_[0-9a-f]{32}$/]);
        });

        t.test('that are gone are prepared again, once', async (t) => {
            const [before] = await kept(pool);
            await pool.query('deallocate all');
            t.same(await run(), [{ n: '3' }], 'what failed has not counted');
            t.same(await run(), [{ n: '4' }]);
            t.same(await kept(pool), [`${before}_1`]);
        });

        t.test('whose result has changed are run all the same, and where they are lost again and again nothing is kept', async (t) => {
            await pool.query(`drop function counts(); create function counts() returns table (n bigint, more text) language sql
                as $$ select nextval('runs'), 'more' $$`);
            t.same(await run(), [{ n: '5', more: 'more' }]);
            await pool.query('deallocate all');
            t.same(await run(), [{ n: '6', more: 'more' }]);
            t.same(await kept(pool), []);
        });

        t.test('an error of the statement itself is not tried again', async (t) => {
            const fails = prepared('select 1 / $1::integer as one');
            await t.rejects(db.query(fails, [0]), { code: '22012' });
            t.same((await db.query(fails, [1])).rows, [{ one: 1 }]);
        });
    });

    t.test(`several connections to ${name} keep the same statement`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        await pool.query(COUNTS);
        const db = patiently(pool);
        const runs = Array.from({ length: 8 }, () => db.query<{ n: string }>(COUNT));
        t.same((await Promise.all(runs)).map(({ rows }) => Number(rows[0]?.n)).toSorted(), [1, 2, 3, 4, 5, 6, 7, 8]);
        t.match(await kept(pool), [/^scanwire_[0-9a-f]{32}$/]);
    });

    t.test(
        `an import into ${name} prepares what it runs for each slice, again where that is gone, and not at all if told so`,
        async (t) => {
            const { pool, stop } = await open();
            t.after(stop);
            await migrate(pool);
            const hosts = manyHosts(300).map((host): HostInput => ({ ...host, services: [{ port: 22, proto: 'tcp', state: 'open' }] }));
            await postgresInventory({ pool, prepare: false }).importHosts('none', each(hosts));
            t.same(await kept(pool), []);

            const store = postgresInventory({ pool });
            // One connection does one after the other.
            Object.assign(pool.options, { max: 1 });
            const told: Promise<string[]>[] = [];
            const onProgress = (): void => {
                told.push(kept(pool));
                told.push(pool.query('deallocate all').then(() => []));
            };
            const imported = await store.importHosts('default', each(hosts), { onProgress });
            t.match(imported, { hosts: importCounts({ new: 300 }), services: importCounts({ new: 300 }) });
            const [first, , second] = await Promise.all(told);
            t.equal(first?.length, 2);
            t.match(second, [/_1$/, /_1$/]);
        },
    );

    t.test(`a store on ${name} prepares on its pool, never for a transaction of the application, and not at all if told so`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        await migrate(pool);
        const accept = { event: { id: randomUUID(), kind: 'kind', body: '{}' }, recipients: { types: [] } };
        await transaction(pool, (tx) => postgresWebhooks({ pool, notify: false }).deliveries.accept([accept], { tx }));
        await postgresWebhooks({ pool, prepare: false }).deliveries.now();
        await postgresInventory({ pool, prepare: false }).hosts.get([1], 1);
        t.same(await kept(pool), []);
        await postgresWebhooks({ pool }).deliveries.now();
        t.equal((await kept(pool)).length, 1);
        await postgresInventory({ pool }).hosts.get([1], 1);
        t.equal((await kept(pool)).length, 2);
    });
}
