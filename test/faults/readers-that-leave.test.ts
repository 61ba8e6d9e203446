import { EventEmitter, once } from 'node:events';
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
import { beyond90, slow } from '../support/slow-database.ts';

/*
 * The client of a listing leaves while the database is slow: its statement went on, with a place among the readers and a connection of the pool, until
 * it had ended or 4.5 s were over.
 */

const LEFT = new Error('The client has left');

/** Every way in which a listing is read, and its rows are counted. */
const listings = (
    pool: PoolLike,
): Readonly<Record<'rows' | 'texts' | 'search' | 'count' | 'changes', (signal: AbortSignal) => Promise<unknown>>> => {
    const { hosts } = postgresInventory({ pool });
    return {
        rows: (signal: AbortSignal) => collect(hosts.list([1], { signal })),
        texts: (signal: AbortSignal) => collect(present(hosts.listText)([1], { signal })),
        search: (signal: AbortSignal) => collect(present(hosts.select)([1], { where: { search: 'nowhere' } }, { signal })),
        count: (signal: AbortSignal) => present(hosts.count)([1], { state: 'alive' }, { signal }),
        changes: (signal: AbortSignal) => collect(present(hosts.select)([1], { where: { updated_since: new Date(0) } }, { signal })),
    };
};

t.test('a listing whose client has left gives its connection back at once, and leaves nothing running', async (t) => {
    const { pool, lock, unlock, running, blocked } = await slow(t, { max: 1 });
    for (const [name, listing] of Object.entries(listings(pool))) {
        const times: number[] = [];
        // The machine may be busy for one of them.
        for (let round = 0; round < 4; round += 1) {
            await lock();
            const leaving = new AbortController();
            const read = listing(leaving.signal);
            await until(async () => (await blocked()).length === 1);
            leaving.abort(LEFT);
            const [, time] = await Promise.all([t.rejects(read, LEFT, name), beyond90(pool)]);
            times.push(time);
            await until(async () => (await running()).length === 0);
            await unlock();
        }
        t.ok(Math.min(...times) <= 10, `${name}: after 90 ms and ${times.map(Math.round)}, at most 10`);
    }
});

t.test('many that leave together give all of them back, and nobody else is disturbed', async (t) => {
    const { pool, lock, unlock, blocked } = await slow(t, { max: 12 });
    const { rows, texts, search } = listings(pool);
    // They stay, on connections of the same pool.
    const staying = new AbortController();
    await lock();
    const kept = [rows(staying.signal), search(staying.signal)];
    await until(async () => (await blocked()).length === 2);
    const pids = await blocked();

    const leaving = new AbortController();
    // Ten have a connection; the others wait for one.
    const left = Array.from({ length: 30 }, (_, index) => [rows, texts, search][index % 3]?.(leaving.signal));
    await until(async () => (await blocked()).length === 12);
    leaving.abort(LEFT);
    await Promise.all(left.map((read) => t.rejects(async () => await read, LEFT)));
    await until(async () => (await blocked()).length === 2);
    t.strictSame(await blocked(), pids, 'those that stay go on');
    await until(() => pool.waitingCount === 0);

    await unlock();
    t.strictSame(await Promise.all(kept), [[], []]);
    t.strictSame(await rows(new AbortController().signal), []);
});

t.test('a statement that ends soon keeps its connection', async (t) => {
    const { pool } = await slow(t, { max: 1 });
    const db = patiently(pool);
    const pid = async () => (await db.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
    const kept: boolean[] = [];
    let leaving = new AbortController();
    // The machine may be busy for one of them.
    for (let round = 0; round < 4 && !kept.includes(true); round += 1) {
        leaving = new AbortController();
        const { signal } = leaving;
        const before = await pid();
        // Once the statement is on its way.
        pool.once('acquire', () => setImmediate(() => leaving.abort(LEFT)));
        const ended = await db.query('select pg_sleep(0.01)', [], signal).then(
            () => true,
            () => false,
        );
        kept.push(ended && (await pid()) === before);
    }
    t.ok(kept.includes(true), `${kept}`);
    const before = await pid();
    await t.rejects(db.query('select 1', [], leaving.signal), LEFT);
    t.equal(await pid(), before, 'what was not begun costs none');
});

t.test('what is left before it is begun asks the pool for nothing, whichever of two signals says so', async (t) => {
    const asked: string[] = [];
    const pool: PoolLike = {
        query: () => Promise.reject(new Error('Not asked')),
        connect() {
            asked.push('connect');
            return new Promise(() => {});
        },
    };
    const [left, staying] = [AbortSignal.abort(LEFT), new AbortController().signal];
    await t.rejects(patiently(pool).query('select 1', [], left), LEFT);
    await t.rejects(patiently(pool, { signal: left }).query('select 1', [], staying), LEFT);
    t.strictSame(asked, []);
});

t.test('it is waited for where the server cannot be asked to end it', async (t) => {
    const { pool, lock, unlock, blocked } = await slow(t, { max: 1 });
    const plain: PoolLike = { query: () => Promise.reject(new Error('Not asked')), connect: () => pool.connect() };
    const away = new pg.Pool({ host: '127.0.0.1', port: 1 });
    // Clients of the pool as they are, and another way to its server, which nobody answers on.
    const unreachable: PoolLike = Object.assign(Object.create(away), { connect: () => pool.connect() });
    for (const other of [plain, unreachable] as const) {
        await lock();
        const leaving = new AbortController();
        const reading = patiently(other).query('select count(*)::integer as hosts from scanwire.hosts', [], leaving.signal);
        await until(async () => (await blocked()).length === 1);
        leaving.abort(LEFT);
        // Longer than the server is given to be asked.
        await sleep(200);
        t.equal((await blocked()).length, 1);
        await unlock();
        t.same((await reading).rows, [{ hosts: 0 }]);
    }
    await away.end();
});

/** What ends TLS in front of a server, and counts the cancel requests that came through it. */
async function tlsInFront(
    t: Test,
    { hostname, port }: URL,
    isLetIn: (connection: number) => Promise<unknown> = async () => {},
): Promise<{ readonly port: number; cancels(): number }> {
    const credentials = await certificate({ name: 'localhost' });
    const sockets = new Set<Socket>();
    let cancels = 0;
    let connections = 0;
    const server = createServer((socket) => {
        sockets.add(socket.on('error', () => {}));
        connections += 1;
        const letIn = isLetIn(connections);
        socket.once('data', async () => {
            await letIn;
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
    const { url, lock, unlock, running, blocked } = await slow(t);
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
    await until(async () => (await blocked()).length === 1);
    leaving.abort(LEFT);
    await t.rejects(read, LEFT);
    await until(async () => (await running()).length === 0);
    t.equal(front.cancels(), 1);
    await unlock();
});

t.test('the connection is given up once the request was sent, and not before', async (t) => {
    const { url, lock, unlock, running, blocked } = await slow(t);
    const gate = new EventEmitter();
    const asked = once(gate, 'asked');
    const front = await tlsInFront(t, new URL(url), async (connection) => {
        if (connection === 2) {
            gate.emit('asked');
            await once(gate, 'open');
        }
    });
    const through = new URL(url);
    through.port = String(front.port);
    const pool = new pg.Pool({ connectionString: through.href, application_name: 'leaving', max: 1, ssl: { rejectUnauthorized: false } });
    pool.on('error', () => {});
    t.teardown(() => pool.end());
    await lock();
    const leaving = new AbortController();
    let released = false;
    pool.once('release', () => {
        released = true;
    });
    const read = listings(pool).rows(leaving.signal);
    await until(async () => (await blocked()).length === 1);
    leaving.abort(LEFT);
    await asked;
    // Longer than a request takes.
    await sleep(200);
    t.equal(released, false, 'the server works on it');
    gate.emit('open');
    await t.rejects(read, LEFT);
    t.equal(released, true);
    await until(async () => (await running()).length === 0);
    t.equal(front.cancels(), 1);
    await unlock();
});

t.test('the request goes to the server of the connection, whatever its name says by now', async (t) => {
    const { url, lock, unlock, running, blocked } = await slow(t);
    const { hostname: host, port, username: user, password, pathname } = new URL(url);
    const options = { host, port: Number(port), user, password, database: pathname.slice(1), application_name: 'leaving', max: 1 };
    const pool = new pg.Pool(options);
    pool.on('error', () => {});
    t.teardown(() => pool.end());
    await lock();
    const leaving = new AbortController();
    const read = listings(pool).rows(leaving.signal);
    await until(async () => (await blocked()).length === 1);
    pool.options.host = 'elsewhere.invalid';
    leaving.abort(LEFT);
    await t.rejects(read, LEFT);
    await until(async () => (await running()).length === 0);
    await unlock();
});

t.test('it is waited for where no client can be made any more', async (t) => {
    const { pool, lock, unlock, blocked } = await slow(t, { max: 1 });
    await lock();
    const leaving = new AbortController();
    const reading = patiently(pool).query('select count(*)::integer as hosts from scanwire.hosts', [], leaving.signal);
    await until(async () => (await blocked()).length === 1);
    Object.defineProperty(pool.options, 'ssl', {
        enumerable: true,
        get() {
            throw new Error('The certificate is gone');
        },
    });
    leaving.abort(LEFT);
    await sleep(200);
    t.equal((await blocked()).length, 1);
    await unlock();
    t.same((await reading).rows, [{ hosts: 0 }]);
});
