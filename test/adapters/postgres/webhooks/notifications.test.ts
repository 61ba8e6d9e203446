import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { present, until } from '../../../../adapters/contract/assertions.ts';
import { forAll, sampleEvent, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { patiently } from '../../../../adapters/postgres/database.ts';
import { type PoolLike, postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { deliveries } from '../../../../adapters/postgres/webhooks/deliveries.ts';
import { notifications, type Watch } from '../../../../adapters/postgres/webhooks/notifications.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { migratedDatabase } from '../../../support/migrated-database.ts';
import { tcpProxy } from '../../../support/tcp-proxy.ts';

/** Asks its connection often. What a busy machine takes its time for is no silence. */
const ASKING: Watch = { probeEvery: 50, retries: { first: 50, max: 200 } };
/** Takes for silent soon what is. */
const QUICK: Watch = { ...ASKING, connect: 1_000, statement: 1_000 };

const SESSION = { id: randomUUID(), process: 'one', slots: {} };
const SPOKEN = { upTo: new Date(), attempts: [] };

/** A database with an exporter, and a way to it that may fall silent. */
async function database(t: Test) {
    const { url, drop } = await migratedDatabase();
    const at = new URL(url);
    const proxy = await tcpProxy({ host: at.hostname, port: Number(at.port || 5432) });
    at.hostname = '127.0.0.1';
    at.port = String(proxy.port);
    const pool = new pg.Pool({ connectionString: url });
    const proxied = new pg.Pool({ connectionString: at.href });
    for (const one of [pool, proxied]) {
        one.on('error', () => undefined);
    }
    await postgresWebhooks({ pool }).exporters.insert(sampleExporter());
    t.teardown(async () => {
        proxy.reset();
        await Promise.all([pool.end(), proxied.end()]);
        await proxy.close();
        await drop();
    });
    return { url, pool, proxied, proxy };
}

/** The store of a process, with pool and listening connection of its own. */
function storeOf(pool: pg.Pool, watch: Watch = ASKING): DeliveryStore {
    return deliveries(patiently(pool), notifications(pool, watch));
}

function listening(t: Test, store: DeliveryStore) {
    let heard = 0;
    const errors: Error[] = [];
    const hear = (): void => {
        heard += 1;
    };
    const { ready, isListening, close } = present(present(store.listen)(hear, (error) => errors.push(error)));
    t.teardown(close);
    return { ready, close, errors, heard: () => heard, isListening: () => present(isListening)() };
}

async function publish(pool: pg.Pool, store: DeliveryStore): Promise<void> {
    const client = await pool.connect();
    await client.query('begin');
    await store.accept([forAll(sampleEvent())], { tx: client });
    await client.query('commit');
    client.release();
}

/** Whoever listens, by what each of their connections did last. */
async function listeners(pool: pg.Pool): Promise<readonly { pid: number }[]> {
    const { rows } = await pool.query<{ pid: number }>(
        `select pid from pg_stat_activity where datname = current_database() and query ~ '^listen|^select case when' and pid <> pg_backend_pid()`,
    );
    return rows;
}

t.test('a process hears of its own commits, and no other does', async (t) => {
    const { pool } = await database(t);
    // Patient: what passes for silence on a busy machine would be looked for, and heard.
    const stores = Array.from({ length: 8 }, () => storeOf(pool, {}));
    const all = stores.map((store) => listening(t, store));
    await Promise.all(all.map(({ ready }) => ready));
    for (const [index, store] of stores.entries()) {
        const before = all.map(({ heard }) => heard());
        await publish(pool, store);
        await until(() => present(all[index]).heard() > present(before[index]));
        t.same(
            all.map(({ heard }, of) => heard() - present(before[of])),
            stores.map((_, of) => (of === index ? 1 : 0)),
        );
    }
});

t.test('one of many hears of the commits of a process that does not listen, and another one when it has gone', async (t) => {
    const { pool } = await database(t);
    const all = Array.from({ length: 8 }, () => listening(t, storeOf(pool)));
    await Promise.all(all.map(({ ready }) => ready));
    const publisher = storeOf(pool);
    const heardBy = async () => {
        const before = all.map(({ heard }) => heard());
        const hearing = () => all.filter(({ heard }, index) => heard() > present(before[index]));
        await publish(pool, publisher);
        await until(() => hearing().length > 0);
        return hearing();
    };
    const first = await heardBy();
    t.equal(first.length, 1);
    const left = all.filter((one) => !first.includes(one));
    const before = left.map(({ heard }) => heard());
    await first[0]?.close();
    // Who takes it over may have missed some, and looks.
    await until(() => left.some(({ heard }, index) => heard() > present(before[index])));
    const second = await heardBy();
    t.equal(second.length, 1);
    t.not(second[0], first[0]);
});

t.test('a connection that falls silent is noticed, reported once, and replaced', async (t) => {
    const { pool, proxied, proxy } = await database(t);
    const store = storeOf(proxied, QUICK);
    const { ready, heard, errors, isListening } = listening(t, store);
    const others: (string | undefined)[] = [];
    const other = await pool.connect();
    other.on('notification', ({ channel }) => others.push(channel));
    await other.query('listen scanwire');
    await ready;
    await until(isListening);
    proxy.silenceAll();
    await publish(pool, store);
    await until(() => errors.length > 0);
    await until(() => !isListening());
    t.strictSame(others, [], 'as long as it is not noticed, nobody else is told');
    await publish(pool, store);
    await until(() => others.length > 0);
    t.strictSame(others, ['scanwire'], 'then whoever listens for others is told');
    other.release(true);
    // Each try to connect fails for a while.
    await until(() => proxy.connections() > 2);
    t.match(errors, [
        {
            code: 'UNAVAILABLE',
            message:
                'Commits are not heard now, only found within a second: The database cannot be used now: it has not answered within 1000 ms',
        },
    ]);
    const before = heard();
    proxy.recover();
    await until(() => heard() > before);
    t.pass('what was missed is looked for');
    const again = heard();
    await publish(pool, store);
    await until(() => heard() > again);
    await until(isListening);
    t.equal(errors.length, 1);
});

t.test('a connection that hears nothing, as behind a pooler of transactions, is none that listens', async (t) => {
    class Deaf extends pg.Client {
        override emit(name: string | symbol, ...args: unknown[]): boolean {
            return name !== 'notification' && super.emit(name, ...(args as []));
        }
    }
    const { pool, url } = await database(t);
    const deaf = new pg.Pool({ connectionString: url, Client: Deaf } as pg.PoolConfig);
    t.teardown(() => deaf.end());
    const notified: (string | undefined)[] = [];
    const noting = Object.assign(Object.create(deaf), {
        async connect() {
            const client = await deaf.connect();
            notified.push('connected');
            return client;
        },
    });
    const [one, other] = [listening(t, storeOf(noting)), listening(t, storeOf(pool))];
    await Promise.all([one.ready, other.ready]);
    await until(other.isListening);
    // Each probe asks once more.
    await until(() => notified.length > 3);
    t.notOk(one.isListening());
    t.strictSame(one.errors, []);
});

t.test('a connection that the server ends is replaced, and its loss reported each time that it had answered before', async (t) => {
    const { pool } = await database(t);
    const store = storeOf(pool);
    const { ready, heard, errors } = listening(t, store);
    await ready;
    for (const round of [1, 2]) {
        const [{ pid } = { pid: 0 }] = await listeners(pool);
        // It has answered to a probe: this is one.
        const asked = async () => (await pool.query('select query_start from pg_stat_activity where pid = $1', [pid])).rows[0]?.query_start;
        const since = await asked();
        await until(async () => (await asked()) > since);
        await until(async () => (await asked()) > since);
        const before = heard();
        await pool.query('select pg_terminate_backend($1)', [pid]);
        await until(() => errors.length === round && heard() > before);
        t.match(errors.at(-1), { code: 'UNAVAILABLE', cause: { code: 'UNAVAILABLE' } });
    }
});

t.test('a session is kept alive by the connection that listens, and by the pool when that one has gone', async (t) => {
    const { url } = await database(t);
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    t.teardown(() => pool.end());
    const store = storeOf(pool);
    const own = listening(t, store);
    await own.ready;
    await usedUp(pool, async () => {
        for (const _ of [1, 2]) {
            t.type(await store.keepAlive(SESSION, 60_000, SPOKEN), Date);
        }
    });
    const first = await usedUp(pool, async () => ({ asked: store.keepAlive(SESSION, 60_000) }));
    t.type(await first.asked, Date, 'one that has heard nothing of the store yet waits for the pool');

    await own.close();
    const waiting = await usedUp(pool, async () => ({ asked: store.keepAlive(SESSION, 60_000, SPOKEN) }));
    t.type(await waiting.asked, Date);
});

/** While an application has the only connection of its pool. */
async function usedUp<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
    const client = await pool.connect();
    return await work().finally(() => client.release());
}

t.test('a connection that falls silent is waited for once, and its session kept alive by the pool', async (t) => {
    const { proxied, proxy } = await database(t);
    const patience = 1_500;
    const store = storeOf(proxied, { statement: patience, connect: patience, probeEvery: 60_000 });
    await listening(t, store).ready;
    proxy.silence();
    t.type(await store.keepAlive(SESSION, 60_000, SPOKEN), Date);
    const startedAt = performance.now();
    t.type(await store.keepAlive(SESSION, 60_000, SPOKEN), Date);
    t.ok(performance.now() - startedAt < patience);
    t.equal((await store.sessions()).length, 1);
});

t.test('closing waits for nothing that is silent', async (t) => {
    const { proxied, proxy } = await database(t);
    const patience = 60_000;
    const patient: Watch = { connect: patience, statement: patience, probeEvery: 10 };
    const begun = listening(t, storeOf(proxied, patient));
    await begun.ready;
    proxy.silenceAll();
    const connecting = listening(t, storeOf(proxied, patient));
    const startedAt = performance.now();
    await Promise.all([begun.close(), connecting.close()]);
    await connecting.ready;
    t.ok(performance.now() - startedAt < patience);
    t.same([begun.errors, connecting.errors], [[], []]);
});

t.test('a process whose connections are used up starts all the same', async (t) => {
    const { pool, url } = await database(t);
    const role = `scanwire_${randomUUID().slice(0, 8)}`;
    await pool.query(`create role ${role} login connection limit 0`);
    const as = new URL(url);
    as.username = role;
    const refused = new pg.Pool({ connectionString: as.href });
    const { ready, close, errors } = listening(t, storeOf(refused));
    await ready;
    await close();
    await pool.query(`drop role ${role}`);
    t.match(errors, [{ code: 'UNAVAILABLE', message: /only found within a second: .* \(53300\)/ }]);
    await refused.end();
});

t.test('a process that publishes much looks by itself, and does not notify of each', async (t) => {
    const { pool } = await database(t);
    let now = 0;
    const ticking = new Map<() => void, number>();
    const tick = (): void => {
        for (const task of ticking.keys()) {
            task();
        }
    };
    const ticker = (task: () => void, milliseconds: number) => {
        ticking.set(task, milliseconds);
        return () => void ticking.delete(task);
    };
    const store = storeOf(pool, { ...ASKING, probeEvery: 60_000, monotonic: () => now, ticker });
    const { ready, heard } = listening(t, store);
    await ready;
    const start = heard();
    for (let count = 1; count <= 100; count += 1) {
        await publish(pool, store);
    }
    await until(() => heard() === start + 100);
    await publish(pool, store);
    await publish(pool, store);
    t.same([...ticking.values()], [10]);
    t.equal(heard(), start + 100, 'too many for this second');
    tick();
    t.equal(heard(), start + 101, 'are looked for');

    now = 1_001;
    tick();
    t.equal(heard(), start + 102);
    t.equal(ticking.size, 0, 'for a second, by which they have been committed');
    await publish(pool, store);
    await until(() => heard() === start + 103);
});

t.test('switched off, nothing is notified and nobody listens', async (t) => {
    const { pool } = await database(t);
    const statements: string[] = [];
    const client = await pool.connect();
    const tx: PoolLike['query'] extends infer Query ? { query: Query } : never = {
        query: (text: string, values?: unknown[]) => {
            statements.push(text);
            return client.query(text, values) as never;
        },
    };
    await client.query('begin');
    for (const notify of [true, false]) {
        statements.length = 0;
        const store = postgresWebhooks({ pool, notify }).deliveries;
        await store.accept([forAll(sampleEvent())], { tx });
        t.equal(statements.filter((text) => text.includes('pg_notify')).length, notify ? 1 : 0);
        t.equal(store.listen !== undefined, notify);
    }
    await client.query('rollback');
    client.release();
});

t.test('a pool that is none of node-postgres can be told of, but not heard', async (t) => {
    const { pool } = await database(t);
    const plain: PoolLike = { query: (text, values) => pool.query(text, values) as never, connect: () => pool.connect() as never };
    const store = postgresWebhooks({ pool: plain }).deliveries;
    t.equal(store.listen, undefined);
    const { ready, heard } = listening(t, storeOf(pool));
    await ready;
    const before = heard();
    await publish(pool, store);
    await until(() => heard() > before);
});
