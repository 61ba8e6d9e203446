import { once } from 'node:events';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import t, { type Test } from 'tap';
import { type EmbeddedDatabase, openEmbeddedDatabase, openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { GIVES_WAY } from '../../../lib/giving-way.ts';
import { cutOff, maintained } from './maintained.ts';

const FREEZE_AGE = 1_000;

t.test('freezes what is old, catalogs and the databases beside its own included', async (t) => {
    const { database, statements, round } = await underWatch(t, await openMemoryDatabase());
    await database.query('create table kept (n integer, filler text)');
    await database.query(`insert into kept select n, repeat('x', 10) from generate_series(1, 1000) as n`);
    await round();
    t.same(statements, [], 'nothing is old');

    const before = await oldestTransaction(database);
    await makeTransactions(database, FREEZE_AGE + 1);
    t.ok(Object.values(await ages(database)).every((age) => age > FREEZE_AGE));
    await round();
    const after = await ages(database);
    t.same(Object.keys(after).sort(), ['postgres', 'template0', 'template1']);
    t.ok(
        Object.values(after).every((age) => age < 200),
        JSON.stringify(after),
    );
    t.same(await oldTables(database), []);
    await database.query('checkpoint');
    t.ok((await oldestTransaction(database)) > before + FREEZE_AGE, 'PostgreSQL knows how far it may go on');
    t.same((await database.query('select count(*)::integer from kept')).rows, [{ count: 1_000 }]);

    await round();
    t.same(statements, [], 'nothing is old any more');
});

t.test('counts anew where nothing is old any more', async (t) => {
    const { database, round, statements } = await underWatch(t, await openMemoryDatabase());
    await makeTransactions(database, FREEZE_AGE + 1);
    await database.query('vacuum (freeze, skip_database_stats)');
    await round();
    t.same(statements, ['vacuum (only_database_stats)']);
    t.ok(((await ages(database)).postgres ?? Number.NaN) < 200);
});

t.test('gives way to others and to imports until it is urgent', async (t) => {
    let working = true;
    const { database, statements, round } = await underWatch(t, await openMemoryDatabase(), {
        atWork: async () => working,
        othersWait: () => true,
    });
    await database.query('create table kept (n integer, filler text)');
    await database.query(`insert into kept select n, repeat('x', 1000) from generate_series(1, 9000) as n`);
    await makeTransactions(database, FREEZE_AGE + 1);
    const frozen = (): string[] => statements.filter((text) => text.includes('freeze') && text.includes('public.kept'));

    await round();
    t.same(frozen(), [], 'not beside an import');
    working = false;
    const freeze = 'vacuum (freeze, skip_database_stats, index_cleanup off, truncate off) public.kept';
    for (const rest of [0, 1, 2, 4]) {
        for (let resting = 1; resting < rest; resting += 1) {
            await round();
            t.same(frozen(), [], `rests for ${rest} rounds`);
        }
        await round();
        t.same(frozen(), [`${freeze}: cut off`]);
    }

    working = true;
    await makeTransactions(database, 3 * FREEZE_AGE);
    for (let rest = 1; rest <= 8; rest += 1) {
        await round();
    }
    t.same(frozen(), [freeze]);
    t.same(await oldTables(database), []);
});

t.test('leaves the rest to the next round once much was written', async (t) => {
    const { database, statements, round } = await underWatch(t, await openMemoryDatabase());
    await makeTransactions(database, FREEZE_AGE + 1);
    await round({ written: 72 });
    t.equal(statements.length, 1);
    await round();
    t.same(await oldTables(database), []);
});

t.test('says once that a database beside its own is not frozen', async (t) => {
    const folder = t.testdir();
    await (await openEmbeddedDatabase({ folder })).end();
    const beside = await PGlite.create({ dataDir: join(folder, 'database'), database: 'template1' });
    await beside.exec('create table of_others (n integer); insert into of_others values (1)');
    await beside.close();

    const { database, round } = await underWatch(t, await openEmbeddedDatabase({ folder, ticker: () => () => {} }));
    await makeTransactions(database, FREEZE_AGE + 1);
    const warned = once(process, 'warning');
    await round();
    const [warning] = (await warned) as [Error & { code?: string }];
    t.equal(warning.code, 'SCANWIRE_FREEZE');
    t.match(warning.message, /^The database template1 beside that of scanwire has rows that are not frozen/);
    const after = await ages(database);
    t.ok((after.template1 ?? 0) > FREEZE_AGE);
    t.ok((after.template0 ?? Number.NaN) < FREEZE_AGE && (after.postgres ?? Number.NaN) < FREEZE_AGE, JSON.stringify(after));

    const other = ({ message }: Error): void => void t.fail(message);
    process.once('warning', other);
    await round();
    process.removeListener('warning', other);
});

t.test('leaves a cluster all of whose databases open', async (t) => {
    const folder = t.testdir();
    const database = await openEmbeddedDatabase({ folder, ticker: () => () => {} });
    const { round, end } = await underWatch(t, database);
    await makeTransactions(database, FREEZE_AGE + 1);
    await round();
    await end();
    for (const name of ['template0', 'template1', 'postgres']) {
        const opened = await PGlite.create({ dataDir: join(folder, 'database'), database: name });
        await opened.exec('vacuum (freeze)');
        t.match((await opened.query('select count(*)::integer as count from pg_proc')).rows, [{ count: Number }]);
        await opened.close();
    }
});

interface Watched {
    readonly atWork?: () => Promise<boolean>;
    readonly othersWait?: (statement: string) => boolean;
}

/** A database whose freezing goes by rounds, with the vacuums of the last one. */
async function underWatch(t: Test, database: EmbeddedDatabase, { atWork, othersWait = () => false }: Watched = {}) {
    const statements: string[] = [];
    let toWrite = 0;
    const maintenance = await maintained(
        async (text, values) => {
            const statement = text.replace(GIVES_WAY, '');
            if (text.startsWith(GIVES_WAY) && othersWait(text)) {
                statements.push(`${statement}: cut off`);
                throw cutOff();
            }
            if (statement.startsWith('vacuum')) {
                statements.push(statement);
                for (; toWrite > 0; toWrite -= 9) {
                    await database.query(`select pg_logical_emit_message(false, 'written', repeat('x', 9437184))`);
                }
            }
            return await database.query(text, values);
        },
        { freezeAge: FREEZE_AGE, ...(atWork !== undefined && { atWork }) },
    );
    async function end(): Promise<void> {
        await maintenance.end();
        await database.end();
    }
    t.teardown(end);

    return {
        database,
        statements,
        end,

        /** @param written How many megabytes are written beside its first vacuum. */
        async round({ written = 0 }: { readonly written?: number } = {}): Promise<void> {
            statements.length = 0;
            toWrite = written;
            maintenance.tick();
            (await maintenance.pause())();
        },
    };
}

async function makeTransactions(database: EmbeddedDatabase, count: number): Promise<void> {
    await database.query(`do $$ begin for i in 1..${count} loop perform pg_current_xact_id(); commit; end loop; end $$`);
}

async function ages(database: EmbeddedDatabase): Promise<Record<string, number>> {
    const { rows } = await database.query<{ name: string; age: number }>('select datname as name, age(datfrozenxid) from pg_database');
    return Object.fromEntries(rows.map(({ name, age }) => [name, age]));
}

async function oldTables(database: EmbeddedDatabase): Promise<unknown[]> {
    const { rows } = await database.query('select relname from pg_class where relfrozenxid <> $1 and age(relfrozenxid) > $2', [
        '0',
        FREEZE_AGE,
    ]);
    return rows;
}

/** The oldest id that the cluster has not forgotten. */
async function oldestTransaction(database: EmbeddedDatabase): Promise<number> {
    const { rows } = await database.query<{ oldest: string }>('select oldest_xid::text as oldest from pg_control_checkpoint()');
    return Number(rows[0]?.oldest);
}
