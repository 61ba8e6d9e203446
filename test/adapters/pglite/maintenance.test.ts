import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { type EmbeddedDatabase, openEmbeddedDatabase, openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { GIVES_WAY } from '../../../lib/giving-way.ts';
import { cutOff, maintained } from './maintained.ts';

t.test('clears up in a quiet moment after much was written', async (t) => {
    const ticks: (() => void)[] = [];
    const database = await openEmbeddedDatabase({
        folder: t.testdir(),
        ticker(task) {
            ticks.push(task);
            return () => ticks.splice(0);
        },
    });
    t.after(() => database.end());
    const tick = (): void => ticks[0]?.();

    await database.query('create table busy (n integer, filler text)');
    await database.query(`insert into busy select n, repeat('x', 500) from generate_series(1, 20000) as n`);
    await database.query('delete from busy where n % 2 = 0');
    const before = await lastCheckpoint(database);
    t.equal(await deadRows(database), 10_000);

    tick();
    while ((await deadRows(database)) > 0) {
        // Each question is a turn in which the clearing up goes on.
    }
    while ((await lastCheckpoint(database)) === before) {
        // The same.
    }

    const { rows } = await database.query(`select reltuples::integer as count from pg_class where relname = 'busy'`);
    t.same(rows, [{ count: 10_000 }]);
});

t.test('leaves off between two tables when it is to end', async (t) => {
    const database = await openMemoryDatabase();
    t.teardown(() => database.end());
    const statements: string[] = [];
    let ending: Promise<void> | undefined;
    const { end, tick } = await maintained(async (text, values) => {
        const statement = text.replace(GIVES_WAY, '');
        statements.push(statement);
        ending ??= statement.startsWith('vacuum') ? end() : undefined;
        return await database.query(text, values);
    });
    for (const table of ['one', 'two']) {
        await database.query(`create table ${table} (n integer, filler text)`);
        await database.query(`insert into ${table} select n, repeat('x', 500) from generate_series(1, 10000) as n`);
        await database.query(`delete from ${table}`);
    }

    tick();
    await until(() => ending !== undefined);
    await ending;
    t.equal(statements.filter((text) => text.startsWith('vacuum')).length, 1);
    t.notOk(statements.includes('checkpoint'));
});

t.test('vacuums nothing while something is at work, and what it owes afterwards', async (t) => {
    const database = await openMemoryDatabase();
    t.teardown(() => database.end());
    let working = true;
    const statements: string[] = [];
    const { end, tick } = await maintained(
        async (text, values) => {
            statements.push(text.replace(GIVES_WAY, ''));
            return await database.query(text, values);
        },
        { atWork: async () => working },
    );
    await database.query('create table busy (n integer, filler text)');
    await database.query(`insert into busy select n, repeat('x', 500) from generate_series(1, 10000) as n`);
    await database.query('delete from busy');

    const count = (text: string): number => statements.filter((statement) => statement === text).length;
    tick();
    await until(() => count('checkpoint') === 1);
    t.equal(count('analyze public.busy'), 1);
    t.equal(count('vacuum public.busy'), 0);

    working = false;
    tick();
    await until(() => count('checkpoint') === 2);
    t.equal(count('vacuum public.busy'), 1, 'although little was written since');

    tick();
    await end();
    t.equal(count('checkpoint'), 2, 'nothing is owed any more');
});

t.test('vacuums a table of which a twentieth is dead, and one of less when nobody waits', async (t) => {
    const { database, statements, round } = await underWatch(t);
    await database.query('create table busy (n integer)');
    await database.query('insert into busy select generate_series(1, 20000)');
    const vacuumed = (): boolean => statements.includes('vacuum public.busy');

    await database.query('delete from busy where n <= 800');
    await round({ asked: 1_000 });
    t.notOk(vacuumed());

    await database.query('delete from busy where n <= 2000');
    await round({ asked: 1_000 });
    t.ok(vacuumed());

    await database.query('delete from busy where n <= 2800');
    await round({ asked: 1_000 });
    t.notOk(vacuumed());

    await round({ asked: 0 });
    t.ok(vacuumed());
});

t.test('analyses a table when a tenth of its rows has changed, a large one by fewer of its rows', async (t) => {
    const { database, statements, round } = await underWatch(t);
    await database.query('create table small (n integer); create table large (n integer, filler text)');
    await database.query('insert into small select generate_series(1, 10000)');
    await database.query(`insert into large select n, repeat('x', 500) from generate_series(1, 20000) as n`);
    const analyses = (): string[] => statements.filter((text) => /(^|; )analyze /.test(text)).sort();

    await round({ asked: 1_000 });
    const both = ['analyze public.small', 'set local default_statistics_target = 5; analyze public.large'];
    t.same(analyses(), both);
    t.same((await database.query('show default_statistics_target')).rows, [{ default_statistics_target: '10' }], 'as it is for others');
    const { rows } = await database.query(
        `select array_length(histogram_bounds, 1) as bounds from pg_stats where tablename in ('small', 'large') and attname = 'n' order by tablename`,
    );
    t.same(rows, [{ bounds: 6 }, { bounds: 11 }]);

    await database.query('update small set n = n where n <= 900; update large set n = n where n <= 1900');
    await round({ asked: 1_000 });
    t.same(analyses(), []);

    await database.query('update small set n = n where n <= 101; update large set n = n where n <= 101');
    await round({ asked: 1_000 });
    t.same(analyses(), both);
});

t.test('puts off what is cut off since others wait, longer each time, and never for good', async (t) => {
    let wait = true;
    const { database, statements, round, rounds } = await underWatch(t, () => wait);
    await database.query('create table busy (n integer); create table other (n integer)');
    await database.query('insert into busy select generate_series(1, 20000)');
    await round({ asked: 1_000 });
    t.ok(statements.includes('analyze public.busy: cut off'));
    wait = false;
    t.same(await rounds(1), ['analyze public.busy'], 'nothing was written, so that no checkpoint is due');
    t.same(await rounds(1), []);

    wait = true;
    await database.query('delete from busy where n <= 1100');
    await round({ asked: 1_000 });
    const cut = 'vacuum public.busy: cut off';
    t.ok(statements.includes(cut));
    for (const rest of [1, 2, 4, 8, 16, 32, 64, 64, 64]) {
        t.same(await rounds(rest - 1), [], `rests for ${rest} rounds`);
        t.same(await rounds(1), [cut]);
    }
    wait = false;
    t.same(await rounds(64), ['vacuum public.busy']);
    t.same(await rounds(64), []);
});

t.test('vacuums to the end what was cut off often, when so much is dead that the table grows', async (t) => {
    const { database, rounds, round } = await underWatch(t, (statement) => statement.includes('vacuum'));
    await database.query('create table busy (n integer)');
    await database.query('insert into busy select generate_series(1, 20000)');
    await database.query('delete from busy where n <= 3000');
    await round({ asked: 1_000 });
    const cut = 'vacuum public.busy: cut off';
    t.same(
        await rounds(1 + 2 + 4 + 8 + 16 + 32 + 64),
        Array.from({ length: 7 }, () => cut),
    );
    t.same(await rounds(64), [cut], 'not while less is dead');
    await database.query('delete from busy where n <= 5000');
    t.same(await rounds(63), []);
    t.same(await rounds(1), ['vacuum public.busy', 'analyze public.busy']);
});

t.test('lets no round begin while it is paused', async (t) => {
    const database = await openMemoryDatabase();
    t.teardown(() => database.end());
    let rounds = 0;
    const { pause, end, tick } = await maintained(async (text, values) => {
        rounds += 1;
        return await database.query(text, values);
    });
    const before = rounds;
    const resume = await pause();
    const other = await pause();
    resume();
    tick();
    await end();
    t.equal(rounds, before, 'as long as one of those who paused it has not resumed it');

    other();
    tick();
    await end();
    t.equal(rounds, before + 2, 'and then one looks what was written, and what is old');
});

/** A database whose clearing up goes by rounds, with the statements of the last one. */
async function underWatch(t: Test, othersWait: (statement: string) => boolean = () => false) {
    const database = await openMemoryDatabase();
    const statements: string[] = [];
    let requests = 0;
    const { end, pause, tick } = await maintained(
        async (text, values) => {
            if (text.startsWith(GIVES_WAY) && othersWait(text)) {
                statements.push(`${text.replace(GIVES_WAY, '')}: cut off`);
                throw cutOff();
            }
            const result = await database.query(text, values);
            statements.push(text.replace(GIVES_WAY, ''));
            return result;
        },
        { requests: () => requests },
    );
    t.teardown(async () => {
        await end();
        await database.end();
    });

    return {
        database,
        statements,

        /** What is done when 72 MB were written and so much was asked since the last. */
        async round({ asked }: { asked: number }): Promise<void> {
            for (let written = 0; written < 72; written += 9) {
                await database.query(`select pg_logical_emit_message(false, 'written', repeat('x', 9437184))`);
            }
            statements.length = 0;
            requests += asked;
            tick();
            await until(() => statements.includes('checkpoint'));
        },

        /** What is done with tables in a number of rounds, in which much is asked and nothing was written. */
        async rounds(count: number): Promise<readonly string[]> {
            statements.length = 0;
            for (let round = 0; round < count; round += 1) {
                requests += 1_000;
                tick();
                (await pause())();
            }
            return statements.filter((text) => /(?:^|; )(?:vacuum|analyze) |^checkpoint/.test(text));
        },
    };
}

async function deadRows(database: EmbeddedDatabase): Promise<number> {
    await database.query('select pg_stat_force_next_flush()');
    const { rows } = await database.query<{ count: number }>(
        `select n_dead_tup::integer as count from pg_stat_user_tables where relname = 'busy'`,
    );
    return rows[0]?.count ?? 0;
}

async function lastCheckpoint(database: EmbeddedDatabase): Promise<string> {
    const { rows } = await database.query<{ at: string }>('select checkpoint_lsn::text as at from pg_control_checkpoint()');
    return rows[0]?.at ?? '';
}
