import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import t, { type Test } from 'tap';
import { type DatabaseThread, startDatabaseThread } from '../../../adapters/pglite/database-thread.ts';
import { findTemplate } from '../../../adapters/pglite/template.ts';
import { query, readReply, startup } from '../../../adapters/pglite/wire.ts';

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
