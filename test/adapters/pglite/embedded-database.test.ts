import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import t from 'tap';
import { type EmbeddedDatabase, openEmbeddedDatabase, openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { unpackTemplate } from '../../../adapters/pglite/template.ts';
import { migrate, postgresInventory, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';

async function* none(): AsyncGenerator<HostInput> {}

t.test('unpacks an archive as PGlite makes it into a folder that PGlite opens', async (t) => {
    const made = await PGlite.create();
    await made.exec('create table kept as select 42 as answer; checkpoint');
    const archive = join(t.testdir({}), 'template.tar.br');
    await writeFile(
        archive,
        brotliCompressSync(await (await made.dumpDataDir('none')).arrayBuffer(), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
    );
    await made.close();

    const folder = join(t.testdirName, 'database');
    await unpackTemplate(archive, folder);
    t.equal(statSync(folder).mode & 0o777, 0o700);
    t.equal(statSync(join(folder, 'PG_VERSION')).mode & 0o777, 0o600);
    t.ok(existsSync(join(folder, 'pg_notify')));

    const database = await PGlite.create(folder);
    t.same((await database.query('select answer from kept')).rows, [{ answer: 42 }]);
    await database.close();
});

t.test('leaves a folder alone that is there already', async (t) => {
    const folder = t.testdir({ 'template.tar.br': brotliCompressSync(''), database: {} });
    await t.rejects(unpackTemplate(join(folder, 'template.tar.br'), join(folder, 'database')), { code: 'EEXIST' });
});

t.test('a new file of the log is not filled with zeros while somebody waits', async (t) => {
    const folder = t.testdir({});
    const database = await openEmbeddedDatabase({ folder });
    t.after(() => database.end());
    const log = join(folder, 'database', 'pg_wal');
    const files = () => readdirSync(log).filter((name) => /^[0-9A-F]{24}$/.test(name));
    const before = files();
    await database.query('select pg_switch_wal()');
    await database.query('create table first_in_its_file ()');
    const [made = ''] = files().filter((name) => !before.includes(name));
    const { size, blocks } = statSync(join(log, made));
    t.equal(size, 16 * 1_048_576);
    t.ok(blocks * 512 < size / 4, `${blocks * 512} bytes of it are written`);
});

t.test('the session that all clients share', async (t) => {
    const database = await openMemoryDatabase();
    t.after(() => database.end());
    await database.query('create table kept (n integer)');
    t.beforeEach(() => database.query('truncate kept'));

    t.test('answers with the types of node-postgres', async (t) => {
        const server = new pg.Pool({ connectionString: process.env.DATABASE_URL });
        t.after(() => server.end());
        const text = `select $1::timestamptz as time, 9007199254740993::int8 as large, 1::int4 as small, 1.5::float8 as float, 1.50::numeric as number,
            $2::jsonb as json, $3::bytea as bytes, true as flag, $4::uuid as id, null::text as nothing, '10.0.0.1'::inet as address,
            array[1, 2] as list, 'é'::text as text`;
        const values = [new Date('2026-11-21T09:30:00.123Z'), { a: [1] }, Buffer.from([0, 255]), '7b6e4fbc-9d6f-4c5a-9b57-0f6bb2f2a111'];
        const [ours, theirs] = await Promise.all([database.query(text, values), server.query(text, values)]);
        t.same(ours.rows, theirs.rows);
        t.match(ours.rows, [{ time: Date, large: '9007199254740993', bytes: Buffer }]);
        t.equal(ours.rowCount, theirs.rowCount);
    });

    t.test('counts rows as node-postgres does', async (t) => {
        const inserted = await database.query('insert into kept values (1), (2), (3)');
        const updated = await database.query('update kept set n = n + 1 where n > $1', [1]);
        const created = await database.query('create table if not exists other ()');
        t.same([inserted.rowCount, updated.rowCount, created.rowCount], [3, 2, null]);
    });

    t.test('reports errors with the code of PostgreSQL, and goes on', async (t) => {
        await t.rejects(database.query('select 1 / 0'), { code: '22012' });
        await t.rejects(database.query('select $1::integer', ['x']), { code: '22P02' });
        await t.rejects(database.query('copy kept from stdin'), { code: '0A000' });
        t.same((await database.query('select 1 as one')).rows, [{ one: 1 }]);
    });

    t.test('belongs to the client that has a transaction open until it ends', async (t) => {
        const client = await database.connect();
        await client.query('start transaction');
        const order: string[] = [];
        const waiting = database.query('select count(*)::integer as count from kept').then(({ rows }) => {
            order.push('other');
            return rows;
        });
        await client.query('insert into kept values (1)');
        await client.query('insert into kept values (2)');
        (await database.connect()).release();
        order.push('commit');
        await client.query('commit');
        t.same([await waiting, order], [[{ count: 2 }], ['commit', 'other']]);
        client.release();
    });

    t.test('refuses every statement of a transaction after one that failed, up to the rollback', async (t) => {
        const client = await database.connect();
        await client.query('begin');
        await client.query('insert into kept values (1)');
        await t.rejects(client.query('select 1 / 0'), { code: '22012' });
        await t.rejects(client.query('select 1'), { code: '25P02' });
        await client.query('commit');
        client.release();
        t.same((await database.query('select from kept')).rowCount, 0);
    });

    for (const [how, destroy] of [
        ['given back', false],
        ['dropped', true],
    ] as const) {
        t.test(`rolls back the transaction of a client that is ${how}`, async (t) => {
            const client = await database.connect();
            await client.query('begin');
            await client.query('insert into kept values (1)');
            client.release(destroy);
            t.same((await database.query('select from kept')).rowCount, 0);
            await database.query('insert into kept values (2)');
            t.same((await database.query('select from kept')).rowCount, 1);
        });
    }

    t.test('has a search_path for each client', async (t) => {
        const [one, two] = [await database.connect(), await database.connect()];
        const path = async (client: { query: EmbeddedDatabase['query'] }): Promise<string> =>
            (await client.query<{ search_path: string }>('show search_path')).rows[0]?.search_path ?? '';
        const before = await path(two);
        await one.query(`set search_path to pg_catalog, "o'clock"`);
        t.same([await path(one), await path(two), await path(database)], [`pg_catalog, "o'clock"`, before, before]);
        await one.query('begin');
        await one.query('set local search_path to nowhere');
        await one.query('rollback');
        t.equal(await path(one), `pg_catalog, "o'clock"`);
        one.release(true);
        two.release();
    });

    t.test('leads a pool made from its options to the same database', async (t) => {
        const onConnect = async (client: pg.ClientBase): Promise<void> => {
            await client.query('set search_path to pg_catalog');
        };
        const other = new pg.Pool({ ...database.options, onConnect });
        t.same((await other.query('show search_path')).rows, [{ search_path: 'pg_catalog' }]);
        await other.end();
        t.same((await database.query('select 1 as one')).rows, [{ one: 1 }]);
    });

    t.test('passes notifications to those who listen to their channel', async (t) => {
        const heard: string[] = [];
        const clients = await Promise.all(['a', 'b', 'none'].map((channel) => listener(channel, heard)));
        await database.query(`notify a, '1'`);
        await database.query('select pg_notify($1, $2)', ['b', '2']);
        await clients[0]?.query(`notify "None", '3'`);
        await clients[0]?.query(`notify a, '4'`);
        t.same(heard, ['a: a 1', 'b: b 2', 'a: a 4']);

        // The session has a single list of channels: one client that leaves a channel must not deafen another.
        clients.push(await listener('a', heard, 'second'));
        await clients[0]?.query('unlisten a');
        await clients[1]?.query('unlisten *');
        await database.query(`notify a, '5'`);
        await database.query(`notify b, '6'`);
        await Promise.all(clients.map((client) => client.query('select 1')));
        t.same(heard.slice(3), ['second: a 5']);
        for (const client of clients) {
            client.release(true);
        }
    });

    t.test('delivers what was notified in a transaction when it is committed', async (t) => {
        const heard: string[] = [];
        const ears = await listener('a', heard);
        const client = await database.connect();
        await client.query('begin');
        await client.query('notify a');
        await client.query('select 1');
        t.same(heard, []);
        await client.query('commit');
        await client.query('select 1');
        t.same(heard, ['a: a ']);
        client.release();
        ears.release(true);
    });

    t.test('serves more statements at once than it has connections', async (t) => {
        const answers = await Promise.all(Array.from({ length: 500 }, (_, n) => database.query('select $1::integer as n', [n])));
        t.same(
            answers.map(({ rows }) => rows[0]?.n),
            answers.map((_, n) => n),
        );
    });

    t.test('tells when nobody uses it, nor goes on with another statement', async (t) => {
        await database.othersFirst(60_000);
        const done: number[] = [];
        const chain = async (): Promise<void> => {
            for (let statement = 0; statement < 5; statement += 1) {
                await database.query('select');
                done.push(statement);
            }
        };
        const asked = chain();
        await database.othersFirst(60_000);
        t.equal(done.length, 5);
        await asked;

        const client = await database.connect();
        await client.query('begin');
        let isFree = false;
        const free = database.othersFirst(60_000).then(() => (isFree = true));
        await database.othersFirst(20);
        t.notOk(isFree, 'a transaction is open, and no longer waited for than asked');
        await client.query('commit');
        client.release();
        await free;
    });

    async function listener(channel: string, heard: string[], name = channel): ReturnType<EmbeddedDatabase['connect']> {
        const client = await database.connect();
        client.on('notification', ({ channel, payload }) => heard.push(`${name}: ${channel} ${payload}`));
        await client.query(`listen ${channel}`);
        return client;
    }
});

t.test('a database that is ended finishes what it was asked, and refuses the rest with UNAVAILABLE', async (t) => {
    const database = await openMemoryDatabase();
    const idle = await database.connect();
    await idle.query('listen a');
    const client = await database.connect();
    await client.query('begin');
    const pending = database.query('select 1 as one');
    const ended = database.end();

    await t.rejects(database.query('select 2'), { code: 'UNAVAILABLE', message: 'The embedded database is closed' });
    await client.query('commit');
    t.same((await pending).rows, [{ one: 1 }]);
    await ended;
    await database.end();
    await t.rejects(database.connect(), { code: 'UNAVAILABLE' });
    await t.rejects(idle.query('select 1'));
});

t.test('a database whose thread dies rejects everything with UNAVAILABLE', async (t) => {
    const database = await openMemoryDatabase();
    const clients = [await database.connect(), await database.connect(), await database.connect()];
    // Behind another statement this form is not caught, and ends PGlite.
    const sql = 'create table doomed (); copy doomed from stdin';
    const answers = clients.map((client, index) => {
        client.on('error', () => {});
        return client.query(index === 0 ? sql : 'select 1');
    });
    for (const answer of answers) {
        await t.rejects(answer, { code: 'UNAVAILABLE', message: /has stopped/ });
    }

    await t.rejects(database.query('select 4'), { code: 'UNAVAILABLE', message: /has stopped/ });
    for (const client of clients) {
        client.release(true);
    }

    await database.end();
});

t.test('a folder', async (t) => {
    const folder = join(t.testdir(), 'new', 'data');

    t.test('is made for its owner only and holds the database from then on', async (t) => {
        const database = await openEmbeddedDatabase({ folder });
        await database.query('create table kept as select 42 as answer');
        t.equal(statSync(folder).mode & 0o777, 0o700);
        t.match(readdirSync(folder).toSorted(), ['database', 'database.lock', /^database\.lock\.[0-9a-f]{8}$/]);
        const settings = await database.query('show shared_buffers');
        t.same(settings.rows, [{ shared_buffers: '16MB' }]);

        const second = openEmbeddedDatabase({ folder });
        await t.rejects(second, { code: 'MISCONFIGURED', message: new RegExp(`${folder} is in use by process ${process.pid};`) });
        await database.end();
        t.same(readdirSync(folder), ['database']);
    });

    t.test('ends leases of imports that were at work when it was open before', async (t) => {
        const before = await openEmbeddedDatabase({ folder });
        await migrate(before);
        await before.query(`update scanwire.workspaces set import_id = gen_random_uuid(), import_until = 'infinity', hosts_until = 0`);
        await before.end();

        const database = await openEmbeddedDatabase({ folder });
        await postgresInventory({ pool: database }).importHosts('default', none());
        t.same((await database.query('select import_id from scanwire.workspaces')).rows, [{ import_id: null }]);
        await database.end();
    });

    t.test('knows that the sessions of those who had it open before have ended, whatever they called themselves', async (t) => {
        const folder = join(t.testdir(), 'data');
        const before = await openEmbeddedDatabase({ folder });
        await migrate(before);
        const { deliveries } = postgresWebhooks({ pool: before });
        await deliveries.keepAlive({ id: randomUUID(), process: 'of another container', slots: {} }, 60_000);
        t.equal((await deliveries.sessions()).length, 1);
        await before.end();

        const after = await openEmbeddedDatabase({ folder });
        t.teardown(() => after.end());
        const { deliveries: found } = postgresWebhooks({ pool: after });
        t.strictSame(await found.sessions(), []);
        t.match(await found.sessions({ silent: true }), [{ process: 'ended' }]);
    });

    t.test('gives back what was stored, and forgets a first start that was cut off elsewhere', async (t) => {
        mkdirSync(join(folder, 'database.new'));
        const database = await openEmbeddedDatabase({ folder });
        t.same((await database.query('select answer from kept')).rows, [{ answer: 42 }]);
        await database.end();
    });

    t.test('that cannot be used is given back when the database is closed again', async (t) => {
        const unusable = join(t.testdir(), 'data');
        const before = await openEmbeddedDatabase({ folder: unusable });
        await before.query('create schema scanwire');
        await before.query('create table scanwire.workspaces (import_id integer, import_until integer)');
        await before.end();
        let isClosed = false;
        process.once('worker', (thread) => {
            thread.once('exit', () => {
                isClosed = true;
            });
        });
        await t.rejects(openEmbeddedDatabase({ folder: unusable }), { code: '22P02' });
        t.ok(isClosed);
        t.notOk(existsSync(join(unusable, 'database.lock')));
    });

    t.test('that holds no database is refused, and can be opened when it is mended', async (t) => {
        const broken = t.testdir({ database: { PG_VERSION: '7\n' } });
        chmodSync(broken, 0o700);
        await t.rejects(openEmbeddedDatabase({ folder: broken }), { code: 'MISCONFIGURED', message: /Cannot open the embedded database/ });
        t.notOk(existsSync(join(broken, 'database.lock')));
    });

    t.test('is named in the options', async (t) => {
        const options = {} as { folder: string };
        await t.rejects(openEmbeddedDatabase(options), {
            code: 'MISCONFIGURED',
            message: 'openEmbeddedDatabase options: folder is required',
        });
        writeFileSync(join(folder, 'file'), '');
        await t.rejects(openEmbeddedDatabase({ folder: join(folder, 'file') }), { code: 'MISCONFIGURED', field: 'folder' });
    });
});
