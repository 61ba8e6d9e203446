import pg from 'pg';
import t from 'tap';
import { patiently, transaction } from '../../adapters/postgres/database.ts';
import { testDatabase } from '../support/test-database.ts';

/** A pool of one connection, and a function that fails with the code so many times before it answers. */
async function failingDatabase(t: { after(run: () => Promise<void>): void }, code: string, times: number) {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    t.after(async () => {
        await pool.end();
        await drop();
    });
    // what a sequence gives is not given again after a rollback
    await pool.query(`create sequence calls; create function fails() returns text language plpgsql as $$
        begin
            if nextval('calls') <= ${times} then
                raise exception 'x' using errcode = '${code}';
            end if;
            return 'done';
        end
    $$`);
    const connection = async () => (await pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
    const calls = async () => Number((await pool.query<{ n: string }>('select last_value as n from calls')).rows[0]?.n);
    return { pool, connection, calls };
}

for (const code of ['40P01', '40001']) {
    t.test(`a statement that was rolled back with ${code} is run again, on the same connection`, async (t) => {
        const { pool, connection } = await failingDatabase(t, code, 2);
        const before = await connection();
        t.same((await patiently(pool).query('select fails() as result')).rows, [{ result: 'done' }]);
        t.equal(await connection(), before);
    });
}

t.test('not for ever', async (t) => {
    const { pool, connection, calls } = await failingDatabase(t, '40P01', 9);
    const before = await connection();
    await t.rejects(patiently(pool).query('select fails()'), { code: 'UNAVAILABLE' });
    t.equal(await calls(), 3);
    t.equal(await connection(), before);
});

t.test('a transaction that deadlocks is rolled back once, on the same connection', async (t) => {
    const { pool, connection, calls } = await failingDatabase(t, '40P01', 1);
    const before = await connection();
    const run = () => transaction(pool, (client) => client.query<{ result: string }>('select fails() as result'));
    await t.rejects(run(), { code: 'UNAVAILABLE' });
    t.equal(await calls(), 1, 'what runs in it may not be run twice');
    t.same((await run()).rows, [{ result: 'done' }]);
    t.equal(await connection(), before);
});

t.test('an error that says nothing of the session keeps the connection, one that ends it does not', async (t) => {
    for (const [code, kept] of [
        ['53200', true],
        ['55P03', true],
        ['57014', true],
        ['57P01', false],
        ['25006', false],
    ] as const) {
        const { pool, connection, calls } = await failingDatabase(t, code, 1);
        const before = await connection();
        await t.rejects(patiently(pool).query('select fails()'), { code: 'UNAVAILABLE' }, code);
        t.equal(await calls(), 1, `${code} is not tried again`);
        t.equal((await connection()) === before, kept, code);
    }
});
