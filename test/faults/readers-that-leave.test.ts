import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import pg from 'pg';
import t, { type Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { type PoolLike, patiently } from '../../adapters/postgres/database.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { certificate } from '../support/certificates.ts';
import { collect } from '../support/collect.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

/*
 * The client of a listing leaves while the database is slow: its statement went on, with a place among the readers and a connection of the pool, until
 * it had ended or 4.5 s were over.
 */

const LEFT = new Error('The client has left');

/** A pool as an application may have it, what its connections do on the server, and a connection that keeps all of them waiting. */
async function slow(t: Test, options: pg.PoolConfig = {}) {
    const database = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: database.url, application_name: 'leaving', ...options });
    const [beside, observer] = [new pg.Client({ connectionString: database.url }), new pg.Client({ connectionString: database.url })];
    await Promise.all([beside.connect(), observer.connect()]);
    // A server process may end after its connection, and after the drop.
    pool.on('error', () => {});
    t.teardown(async () => {
        await Promise.all([beside.end(), observer.end()]);
        await pool.end();
        await database.drop();
    });
    return {
        url: database.url,
        pool,
        lock: () => beside.query('begin; lock table scanwire.hosts, scanwire.workspaces in access exclusive mode'),
        unlock: () => beside.query('rollback'),

        /** Statements that run, or wait for a lock, by the process that does. */
        async running(): Promise<readonly number[]> {
            const sql = "select pid from pg_stat_activity where application_name = 'leaving' and state = 'active' order by pid";
            return (await observer.query<{ pid: number }>(sql)).rows.map(({ pid }) => pid);
        },
    };
}

/** Milliseconds until the pool has a connection back, beyond the 90 that this machine takes, busy as it is, to wait for 50 and for 40. */
async function beyond90(pool: pg.Pool): Promise<number> {
    const released = once(pool, 'release').then(() => performance.now());
    const waited = sleep(50)
        .then(() => sleep(40))
        .then(() => performance.now());
    return (await released) - (await waited);
}

/** Every way in which a listing is read. */
const listings = (pool: PoolLike) => {
    const { hosts } = postgresInventory({ pool });
    return {
        rows: (signal: AbortSignal) => collect(hosts.list([1], { signal })),
        texts: (signal: AbortSignal) => collect(present(hosts.listText)([1], { signal })),
        search: (signal: AbortSignal) => collect(present(hosts.select)([1], { where: { search: 'nowhere' } }, { signal })),
        changes: (signal: AbortSignal) => collect(present(hosts.select)([1], { where: { updated_since: new Date(0) } }, { signal })),
    };
};

t.test('a listing whose client has left gives its connection back at once, and leaves nothing running', async (t) => {
    const { pool, lock, unlock, running } = await slow(t, { max: 1 });
    for (const [name, listing] of Object.entries(listings(pool))) {
        const times: number[] = [];
        // The machine may be busy for one of them.
        for (let round = 0; round < 4; round += 1) {
            await lock();
            const leaving = new AbortController();
            const read = listing(leaving.signal);
            await until(async () => (await running()).length === 1);
            leaving.abort(LEFT);
            const [, time] = await Promise.all([t.rejects(read, LEFT, name), beyond90(pool)]);
            times.push(time);
            await until(async () => (await running()).length === 0, 1_000);
            await unlock();
        }
        t.ok(Math.min(...times) <= 10, `${name}: after 90 ms and ${times.map(Math.round)}, at most 10`);
    }
});

t.test('many that leave together give all of them back, and nobody else is disturbed', async (t) => {
    const { pool, lock, unlock, running } = await slow(t, { max: 12 });
    const { rows, texts, search } = listings(pool);
    // They stay, on connections of the same pool.
    const staying = new AbortController();
    await lock();
    const kept = [rows(staying.signal), search(staying.signal)];
    await until(async () => (await running()).length === 2);
    const pids = await running();

    const leaving = new AbortController();
    // Ten have a connection; the others wait for one.
    const left = Array.from({ length: 30 }, (_, index) => [rows, texts, search][index % 3]?.(leaving.signal));
    await until(async () => (await running()).length === 12);
    leaving.abort(LEFT);
    await Promise.all(left.map((read) => t.rejects(async () => await read, LEFT)));
    await until(async () => (await running()).length === 2, 1_000);
    t.strictSame(await running(), pids, 'those that stay go on');
    await until(() => pool.waitingCount === 0);

    await unlock();
    t.strictSame(await Promise.all(kept), [[], []]);
    t.strictSame(await rows(new AbortController().signal), []);
});

t.test('a statement that ends soon keeps its connection', async (t) => {
    const { pool } = await slow(t, { max: 1 });
    const db = patiently(pool);
    const pid = async () => (await db.query('select pg_backend_pid() as pid')).rows[0];
    const before = await pid();
    const leaving = new AbortController();
    // Once the statement is on its way.
    pool.once('acquire', () => setImmediate(() => leaving.abort(LEFT)));
    const reading = db.query('select pg_sleep(0.01)', [], leaving.signal);
    t.equal((await reading).rowCount, 1);
    t.same(await pid(), before);
    await t.rejects(db.query('select 1', [], leaving.signal), LEFT);
    t.same(await pid(), before, 'what was not begun costs none');
});

t.test('it is waited for where the server cannot be asked to end it', async (t) => {
    const { pool, lock, unlock, running } = await slow(t, { max: 1 });
    const plain: PoolLike = { query: () => Promise.reject(new Error('Not asked')), connect: () => pool.connect() };
    const away = new pg.Pool({ host: '127.0.0.1', port: 1 });
    // Clients of the pool as they are, and another way to its server, which is blocked.
    const blocked: PoolLike = Object.assign(Object.create(away), { connect: () => pool.connect() });
    for (const other of [plain, blocked] as const) {
        await lock();
        const leaving = new AbortController();
        const reading = patiently(other).query('select count(*)::integer as hosts from scanwire.hosts', [], leaving.signal);
        await until(async () => (await running()).length === 1);
        leaving.abort(LEFT);
        // Longer than the server is given to be asked.
        await sleep(200);
        t.equal((await running()).length, 1);
        await unlock();
        t.same((await reading).rows, [{ hosts: 0 }]);
    }
    await away.end();
});

/** What ends TLS in front of a server, and counts the cancel requests that came through it. */
async function tlsInFront(t: Test, { hostname, port }: URL): Promise<{ readonly port: number; cancels(): number }> {
    const credentials = await certificate({ name: 'localhost' });
    const sockets = new Set<Socket>();
    let cancels = 0;
    const server = createServer((socket) => {
        sockets.add(socket.on('error', () => {}));
        socket.once('data', () => {
            socket.write('S');
            const secure = new TLSSocket(socket, { isServer: true, ...credentials }).on('error', () => {});
            const behind = connect(Number(port), hostname).on('error', () => {});
            sockets.add(behind);
            secure.once('data', (head: Buffer) => {
                cancels += head.readInt32BE(4) === CANCEL ? 1 : 0;
            });
            secure.pipe(behind).pipe(secure);
            secure.on('close', () => behind.destroy());
            behind.on('close', () => secure.destroy());
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.close();
        for (const socket of sockets) {
            socket.destroy();
        }
    });
    return { port: (server.address() as AddressInfo).port, cancels: () => cancels };
}

/** The code of a cancel request. */
const CANCEL = 80_877_102;

t.test('the request that ends it goes the way of the connection, over TLS', async (t) => {
    const { url, lock, unlock, running } = await slow(t);
    const front = await tlsInFront(t, new URL(url));
    const through = new URL(url);
    through.port = String(front.port);
    const secured = new pg.Pool({
        connectionString: through.href,
        application_name: 'leaving',
        max: 1,
        ssl: { rejectUnauthorized: false },
    });
    secured.on('error', () => {});
    t.teardown(() => secured.end());
    await lock();
    const leaving = new AbortController();
    const read = listings(secured).rows(leaving.signal);
    await until(async () => (await running()).length === 1);
    leaving.abort(LEFT);
    await t.rejects(read, LEFT);
    await until(async () => (await running()).length === 0, 1_000);
    t.equal(front.cancels(), 1);
    await unlock();
});
