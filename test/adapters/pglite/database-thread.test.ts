import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { PGlite } from '@electric-sql/pglite';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { type DatabaseThread, startDatabaseThread } from '../../../adapters/pglite/database-thread.ts';
import { sharedSession } from '../../../adapters/pglite/shared-session.ts';
import { findTemplate, readTemplate } from '../../../adapters/pglite/template.ts';
import { query, readReply, startup } from '../../../adapters/pglite/wire.ts';

/** Messages of the extended protocol. */
const SYNC = Buffer.from('S\0\0\0\x04', 'latin1');
const FLUSH = Buffer.from('H\0\0\0\x04', 'latin1');
const PARSE_COMPLETE = Buffer.from('1\0\0\0\x04', 'latin1');

function parse(sql: string): Buffer {
    const body = Buffer.from(`\0${sql}\0\0\0`);
    const head = Buffer.from('P\0\0\0\0', 'latin1');
    head.writeUInt32BE(4 + body.length, 1);
    return Buffer.concat([head, body]);
}

/** A connection that the session has greeted. */
async function connected(t: Test): Promise<{ thread: DatabaseThread; connection: Duplex }> {
    const thread = await startDatabaseThread({ dataDir: null, template: findTemplate() });
    const connection = thread.connect();
    t.teardown(async () => {
        connection.destroy();
        await thread.close();
    });
    connection.write(startup({ user: 'postgres', database: 'postgres' }));
    t.equal(readReply((await once(connection, 'data'))[0] as Buffer).state, 'I');
    t.notOk(thread.busy(connection));
    return { thread, connection };
}

t.test('answers a request that comes in pieces, and several that come in one', async (t) => {
    const { thread, connection } = await connected(t);
    const request = query('select 42 as answer');
    for (const [start, end] of [
        [0, 3],
        [3, 10],
        [10, request.length],
    ] as const) {
        connection.write(request.subarray(start, end));
        t.ok(thread.busy(connection));
    }

    const [answer] = (await once(connection, 'data')) as [Buffer];
    t.match([...readReply(answer).tags], ['SELECT 1']);
    t.match(answer.toString('latin1'), /42/);
    t.notOk(thread.busy(connection));

    connection.write(Buffer.concat([query('begin'), query('create table kept ()'), query('commit').subarray(0, 4)]));
    const [both] = (await once(connection, 'data')) as [Buffer];
    t.match([...readReply(both).tags], ['BEGIN', 'CREATE TABLE']);
    connection.write(query('commit').subarray(4));
    const [last] = (await once(connection, 'data')) as [Buffer];
    t.match(readReply(last), { state: 'I', tags: new Set(['COMMIT']) });
    t.notOk(thread.busy(connection));
});

t.test('is idle when a connection with half a request has gone', async (t) => {
    const { thread, connection } = await connected(t);
    connection.write(query('select 1').subarray(0, 4));
    t.ok(thread.busy(connection));
    const idle = thread.idle();
    connection.destroy();
    await idle;
});

t.test('rolls back what a connection that has gone left open', async (t) => {
    const { thread, connection } = await connected(t);
    connection.write(query('begin; create table left_open ()'));
    t.match(readReply((await once(connection, 'data'))[0] as Buffer), { state: 'T' });
    const other = thread.connect();
    other.write(startup({ user: 'postgres', database: 'postgres' }));
    await once(other, 'data');
    connection.destroy();
    other.write(query(`select count(*) || ' tables' from pg_class where relname = 'left_open'`));
    const [answer] = (await once(other, 'data')) as [Buffer];
    t.match(readReply(answer), { state: 'I' });
    t.match(answer.toString('latin1'), '0 tables');
    other.destroy();
});

t.test('keeps the session for a batch whose answer is wanted before its end', async (t) => {
    const { thread, connection } = await connected(t);
    connection.write(Buffer.concat([parse('select 42'), FLUSH]));
    const [parsed] = (await once(connection, 'data')) as [Buffer];
    t.strictSame(parsed, PARSE_COMPLETE);
    t.ok(thread.busy(connection));
    connection.write(SYNC);
    t.match(readReply((await once(connection, 'data'))[0] as Buffer), { state: 'I' });
    t.notOk(thread.busy(connection));
});

t.test('ends with no transaction open', async (t) => {
    const database = await PGlite.create({ loadDataDir: new Blob([await readTemplate(findTemplate() ?? '')]) });
    t.teardown(() => database.close());
    const execute = async (bytes: Buffer): Promise<Buffer> => Buffer.from(await database.execProtocolRaw(bytes, { syncToFs: false }));
    const states: (string | undefined)[] = [];
    const session = await sharedSession({ execute, send: (_connection, _bytes, answered) => states.push(answered?.state) });
    session.receive(1, startup({ user: 'postgres', database: 'postgres' }));
    session.receive(1, query('begin'));
    await until(() => states.length === 2);
    t.strictSame(states, ['I', 'T']);
    await session.drain();
    t.match(readReply(await execute(query('select 1'))), { state: 'I' });
});
