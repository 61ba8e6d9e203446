import t from 'tap';
import { type EmbeddedDatabase, openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';

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
