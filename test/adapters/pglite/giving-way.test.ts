import { PGlite } from '@electric-sql/pglite';
import t, { type Test } from 'tap';
import { givingWay } from '../../../adapters/pglite/giving-way.ts';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { findTemplate, readTemplate } from '../../../adapters/pglite/template.ts';
import { inTurn } from '../../../lib/giving-way.ts';

/** Works for seconds, and writes all the time. */
const LONG = 'create table long as select n from generate_series(1, 2000000) as n';

t.test('cuts a statement off when others have waited for it for 50 ms', async (t) => {
    const { database, run, waited } = await inThisThread(t);
    t.equal(await run('vacuum filled', { othersWait: false }), 'done');
    await run('delete from filled where n % 2 = 0');
    t.equal(await run('vacuum filled', { othersWait: true }), '57014');
    t.ok(waited() >= 50 && waited() < 60, `after ${waited()} ms`);
    t.equal(await run('analyze filled', { othersWait: true }), '57014');
    t.equal(await run('select', { othersWait: true }), 'done', 'one that is short is over before');
    t.equal(await run('vacuum filled', { othersWait: false }), 'done');

    const { FS, HEAPU8, _QueryCancelPending = 0 } = database.Module as unknown as Memory;
    HEAPU8[_QueryCancelPending] = 1;
    t.equal(await run('select', { othersWait: true }), 'done');
    t.equal(HEAPU8[_QueryCancelPending], 0, 'what has ended before it looked leaves nothing to the next');

    const other = { Module: { FS, HEAPU8 } } as unknown as PGlite;
    let now = 0;
    const never = givingWay(other, { look: () => true, now: () => (now += 2) });
    await never(async () => void (await database.exec('delete from filled where n % 3 = 0')));
    t.ok(now > 50, 'a PGlite that does not say where the flags are cuts nothing off');
});

t.test('answers others while something that gives way is to be done, and cuts nothing off of theirs', async (t) => {
    const database = await openMemoryDatabase();
    const long = inTurn(database, LONG);
    t.same((await database.query('select 1 as n')).rows, [{ n: 1 }]);
    t.equal(await long, false);
    t.equal(await inTurn(database, 'create table short (n integer)'), true);
    await t.rejects(inTurn(database, 'create table short (n integer)'), { code: '42P07' });

    const [made] = await Promise.all([
        database.query(`create table made as select n, repeat('x', 500) as filler from generate_series(1, 20000) as n`),
        database.query('select'),
    ]);
    t.equal(made.rowCount, 20_000);

    const last = inTurn(database, LONG);
    await database.query('select');
    await database.end();
    t.equal(await last, false);
});

interface Memory {
    readonly FS: object;
    readonly HEAPU8: Uint8Array;
    readonly _QueryCancelPending?: number;
}

/** A database whose files are read in the thread of the test, and time that goes by with each look at it. */
async function inThisThread(t: Test) {
    const template = new Blob([await readTemplate(findTemplate() ?? '')]);
    // So little that it reads and writes as it goes on.
    const database = await PGlite.create({ loadDataDir: template, postgresqlconf: ['shared_buffers=1MB', 'wal_buffers=64kB'] });
    t.teardown(() => database.close());
    await database.exec(`create table filled as select n, repeat('x', 500) as filler from generate_series(1, 20000) as n`);
    await database.exec('create index on filled (n)');
    let time = 0;
    let since = 0;
    let wait = false;
    const cutOff = givingWay(database, {
        look() {
            since = time;
            return wait;
        },
        now() {
            time += 1;
            return time;
        },
    });

    return {
        database,
        /** Since it was seen that others wait. */
        waited: () => time - since,

        async run(statement: string, { othersWait = false } = {}): Promise<string> {
            wait = othersWait;
            try {
                await cutOff(async () => void (await database.exec(statement)));
                return 'done';
            } catch (error) {
                return String((error as { code?: unknown }).code);
            }
        },
    };
}
