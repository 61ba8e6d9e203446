import pg from 'pg';
import t from 'tap';
import { transaction as ofStores } from '../../../adapters/postgres/database.ts';
import { isUniqueViolation, storeError } from '../../../adapters/postgres/database-errors.ts';
import { transaction } from '../../../adapters/postgres/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { testDatabase } from '../../support/test-database.ts';
import { databases } from './databases.ts';

const withCode = (code: string): Error => Object.assign(new Error('password of scanner'), { code });

t.test('takes errors of connection, server and driver for UNAVAILABLE, and repeats none of their text', async (t) => {
    const errors = ['ECONNREFUSED', 'ECONNRESET', '57P01', '08006', '53300', '28P01', '3D000', '40P01'].map(withCode);
    for (const error of [
        ...errors,
        new Error('Connection terminated unexpectedly'),
        new Error('timeout exceeded when trying to connect'),
    ]) {
        const mapped = storeError(error);
        t.ok(mapped instanceof ScanwireError);
        t.match(mapped, { code: 'UNAVAILABLE', cause: error });
        t.notMatch(mapped, { message: /scanner|terminated|exceeded/ });
    }
});

t.test('says in words what a wrong DATABASE_URL comes to', async (t) => {
    t.match(storeError(withCode('3D000')), { message: 'The database cannot be used now: the server has no database of this name (3D000)' });
    t.match(storeError(withCode('57P02')), { message: 'The database cannot be used now (57P02)' });
});

t.test('leaves errors of a statement, and our own, as they are', async (t) => {
    for (const error of [withCode('42601'), withCode('23505'), new Error('other'), new ScanwireError('NOT_FOUND', 'x'), 'text']) {
        t.equal(storeError(error), error);
    }
});

t.test('knows a unique violation', async (t) => {
    t.same([withCode('23505'), withCode('23503'), null].map(isUniqueViolation), [true, false, false]);
});

for (const { name, open } of databases) {
    t.test(`transactions on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        await pool.query('create table counted (n integer)');
        const numbers = async (): Promise<number[]> =>
            (await pool.query<{ n: number }>('select n from counted order by n')).rows.map(({ n }) => n);

        t.test('keep what was done when the function resolves', async (t) => {
            const result = await transaction(pool, async (client) => {
                await client.query('insert into counted values (1)');
                return 'done';
            });
            t.same([result, await numbers()], ['done', [1]]);
        });

        t.test('undo everything when the function rejects', async (t) => {
            const failing = transaction(pool, async (client) => {
                await client.query('insert into counted values (2)');
                throw new Error('no');
            });
            await t.rejects(failing, { message: 'no' });
            t.same(await numbers(), [1]);
        });

        t.test('undo everything when a statement fails', async (t) => {
            const failing = transaction(pool, async (client) => {
                await client.query('insert into counted values (3)');
                await client.query('select 1 / 0');
            });
            await t.rejects(failing, { code: '22012' });
            t.same(await numbers(), [1]);
        });

        for (const [whose, begin] of Object.entries({ 'of the application': transaction, 'of the stores': ofStores })) {
            t.test(`reject when the function has caught what a statement failed at, ${whose}`, async (t) => {
                const caught = begin(pool, async (client) => {
                    await client.query('insert into counted values (4)');
                    await client.query('select 1 / 0').catch(() => {});
                    await client.query('select').catch(() => {});
                    return 'done';
                });
                await t.rejects(caught, {
                    name: 'ScanwireError',
                    code: 'MISCONFIGURED',
                    message: /was rolled back, since one of its statements had failed \(22012\): nothing of it is stored; .* savepoint/,
                    cause: { code: '22012' },
                });
                t.same(await numbers(), [1]);
            });
        }

        t.test('keep what was done beside what failed behind a savepoint', async (t) => {
            const result = await transaction(pool, async (client) => {
                await client.query('insert into counted values (5)');
                await client.query('savepoint before');
                await client.query('select 1 / 0').catch(() => client.query('rollback to savepoint before'));
                return 'done';
            });
            t.same([result, await numbers()], ['done', [1, 5]]);
        });
    });
}

t.test('reports a connection lost within a transaction as UNAVAILABLE and drops it', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {});
    const lost = transaction(pool, async (client) => {
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        await pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
        await client.query('select 1');
    });
    await t.rejects(lost, { code: 'UNAVAILABLE' });
    t.equal(pool.totalCount, 1);
    t.equal(await transaction(pool, async () => 'again'), 'again');
    await pool.end();
});
