import { mock } from 'node:test';
import pg from 'pg';
import t, { type Test } from 'tap';
import { underWay, until } from '../../adapters/contract/assertions.ts';
import { sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { patiently } from '../../adapters/postgres/database.ts';
import {
    migrate,
    postgresInventory,
    postgresRecords,
    postgresStores,
    postgresWebhooks,
    transaction,
} from '../../adapters/postgres/index.ts';
import { ownPool } from '../../adapters/postgres/own-pool.ts';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import type { HttpsRecord } from '../../lib/records/record.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';

/** A pool as an application may have it, with no limit of its own, whose way to the database may fall silent. */
async function silenceable(t: Test, max = 10) {
    const database = await migratedDatabase();
    const url = new URL(database.url);
    const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const pool = new pg.Pool({ connectionString: url.href, max });
    pool.on('error', () => undefined);
    t.teardown(async () => {
        proxy.reset();
        await pool.end();
        await proxy.close();
        await database.drop();
    });
    return { pool, proxy };
}

const CONNECTIONS = 40;

const PATIENCE = { connect: 300, statement: 300 };

/** What it is refused with when the time passes in which nothing comes; nothing that is answered has to be so in time. */
async function refusedInTime(t: Test, silent: () => Promise<unknown>): Promise<unknown> {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { result, ended } = underWay(silent());
    while (!ended()) {
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(1_000);
    }
    mock.timers.reset();
    return await result.catch((error: unknown) => error);
}

t.test('a connection that falls silent is noticed, and replaced', async (t) => {
    const { pool, proxy } = await silenceable(t, 1);
    const db = patiently(pool);
    await db.query('select 1');
    proxy.silence();
    t.match(await refusedInTime(t, () => db.query('select 2')), {
        code: 'UNAVAILABLE',
        message: 'The database cannot be used now: it has not answered within 25000 ms',
    });
    t.match(await db.query('select 3 as three'), { rows: [{ three: 3 }] }, 'by the only connection that the pool may have');
});

t.test('a transaction whose connection falls silent ends, and its connection is replaced', async (t) => {
    const { pool, proxy } = await silenceable(t, 1);
    let refused: unknown;
    const run = transaction(pool, async (client) => {
        await client.query('select 1');
        proxy.silence();
        refused = await refusedInTime(t, () => client.query('select 2'));
        throw refused;
    });
    await t.rejects(run, { code: 'UNAVAILABLE' });
    t.match(refused, { code: 'UNAVAILABLE', message: /has not answered within 25000 ms/ });
    t.match(await patiently(pool).query('select 3 as three'), { rows: [{ three: 3 }] });
});

t.test('a connection that never comes is not waited for, and not lost when it comes later', async (t) => {
    const { pool, proxy } = await silenceable(t, 1);
    const db = patiently(pool, PATIENCE);
    proxy.silenceAll();
    await t.rejects(db.query('select 1'), {
        code: 'UNAVAILABLE',
        message: 'The database cannot be used now: it has given no connection within 300 ms',
    });
    proxy.recover();
    proxy.reset();
    t.match(await patiently(pool).query('select 2 as two'), { rows: [{ two: 2 }] });

    const held = await pool.connect();
    await t.rejects(db.query('select 3'), { code: 'UNAVAILABLE' }, 'others hold all that the pool may have');
    held.release();
    t.match(await patiently(pool).query('select 4 as four'), { rows: [{ four: 4 }] });
});

t.test('a silence is noticed within 30 s where nobody says how long to wait, for a connection and its answer together', async (t) => {
    const silent = (): Promise<never> => new Promise(() => undefined);
    const client = { query: silent, release: () => undefined, on: () => undefined, removeListener: () => undefined };
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    for (const connect of [silent, async () => client]) {
        const refused = t.rejects(patiently({ query: silent, connect }).query('select 1'), { code: 'UNAVAILABLE' });
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(connect === silent ? 4_000 : 25_000);
        await refused;
    }
});

t.test('a start over a connection that is silent ends within 30 s, where there is nothing to migrate', async (t) => {
    const silent = (): Promise<never> => new Promise(() => undefined);
    const client = { query: silent, release: () => undefined, on: () => undefined, removeListener: () => undefined };
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const { result, ended } = underWay(migrate({ query: silent, connect: async () => client }).catch((error: unknown) => error));
    for (let second = 0; second < 30; second += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(1_000);
    }
    await new Promise((resolve) => setImmediate(resolve));
    t.ok(ended());
    mock.timers.reset();
    t.match(await result, { code: 'UNAVAILABLE' });
});

t.test('a pool of ours waits no longer than we do, however long the application waits', async (t) => {
    const application = new pg.Pool({ query_timeout: 600_000, connectionTimeoutMillis: 120_000 });
    const { options } = ownPool(application, 1);
    t.match(options, { query_timeout: 25_000, connectionTimeoutMillis: 5_000 });
    t.match(ownPool(new pg.Pool({ query_timeout: 600, connectionTimeoutMillis: 700 }), 1).options, {
        query_timeout: 600,
        connectionTimeoutMillis: 700,
    });
});

t.test('a change that takes longer than anybody waits is done all the same, and holds no lock longer than it takes', async (t) => {
    const { pool } = await silenceable(t);
    await pool.query('create table done (id integer)');
    const change = patiently(pool, { statement: 200, probe: 60_000 }).query('insert into done select 1 from pg_sleep(0.6)');
    await t.rejects(change, { code: 'UNAVAILABLE' });
    await until(async () => (await pool.query('select from done')).rows.length === 1);
});

t.test('what the server ends is waited for as one, however slow each answer is', async (t) => {
    const answered: string[] = [];
    const client = {
        query: async (text: string): Promise<never> => {
            await new Promise((resolve) => setTimeout(resolve, 3_000));
            answered.push(text.split(' ')[0] as string);
            return { rows: [] } as never;
        },
        ...{ release: () => undefined, on: () => undefined, removeListener: () => undefined },
    };
    mock.timers.enable({ apis: ['setTimeout'] });
    const clock = mock.method(performance, 'now', () => 1_000 * answered.length * 3);
    t.teardown(() => {
        clock.mock.restore();
        mock.timers.reset();
    });
    const db = patiently({ query: client.query, connect: async () => client }, { statement: 4_500, onServer: 4_250 });
    const refused = t.rejects(db.query('select 1'), { code: 'UNAVAILABLE', message: /has not answered within 1500 ms/ });
    await turns();
    mock.timers.tick(3_000);
    await turns();
    mock.timers.tick(1_500);
    await refused;
    t.strictSame(answered, ['begin']);
});

t.test('several statements of one operation are waited for as one', async (t) => {
    const asked: string[] = [];
    const client = {
        async query(text: string): Promise<never> {
            asked.push(text);
            await new Promise((resolve) => setTimeout(resolve, /^(?:begin|commit|rollback)/.test(text) ? 0 : 2_000));
            return { rows: text.includes(' first') ? [{ first: '1' }] : [] } as never;
        },
        ...{ release: () => undefined, on: () => undefined, removeListener: () => undefined },
    };
    const { deliveries } = postgresWebhooks({ pool: { query: client.query, connect: async () => client }, notify: false });
    mock.timers.enable({ apis: ['setTimeout'] });
    let now = 0;
    const clock = mock.method(performance, 'now', () => now);
    t.teardown(() => {
        clock.mock.restore();
        mock.timers.reset();
    });
    const { result, ended } = underWay(Promise.resolve(deliveries.attemptLists?.list({ limit: 1, kind: 'rare', since: new Date() })));
    while (!ended()) {
        await turns();
        now += 500;
        mock.timers.tick(500);
    }
    t.match(await result.catch((error: unknown) => error), { code: 'UNAVAILABLE' });
    t.ok(now < 10_000, `${now} ms`);
    t.match(
        asked.find((text) => text.startsWith('begin')),
        /statement_timeout = 4250/,
    );
    t.notMatch(
        asked.findLast((text) => text.startsWith('begin')),
        /statement_timeout = 4250/,
        'the last ones have less',
    );
});

async function* hosts() {
    yield { address: '192.0.2.1' };
}

/** What waits for answers goes on. */
async function turns(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) {
        await new Promise((resolve) => setImmediate(resolve));
    }
}

t.test('nobody waits for 10 seconds at the other end of a request, whatever pool the application has', async (t) => {
    const { pool, proxy } = await silenceable(t, CONNECTIONS);
    const { apiKeys, audit, inventory, webhooks } = postgresStores({ pool });
    const { exporters, deliveries } = webhooks;
    const records = postgresRecords({ pool });
    const id = '00000000-0000-4000-8000-000000000000';
    const asked: Readonly<Record<string, () => Promise<unknown> | undefined>> = {
        keys: () => apiKeys.list(),
        audit: () => audit.list({ limit: 1 }),
        workspaces: () => inventory.workspaces.get([], 1),
        hosts: () => begun(inventory.hosts.list([1])),
        'hosts as text': () => begun(inventory.hosts.listText?.([1])),
        'some hosts': () => begun(inventory.hosts.select?.([1], { where: { search: 'x' } })),
        'how many hosts': () => inventory.hosts.count?.([1], {}),
        'imported hosts': () => inventory.importHosts('default', hosts()),
        'hosts removed': () => inventory.removeHosts?.('default', {}),
        'hosts that would be removed': () => inventory.expireHosts?.('default', { notSeenSince: new Date(), dryRun: true }),
        'hosts that are gone': () => inventory.expireHosts?.('default', { notSeenSince: new Date() }),
        'hosts moved': () => inventory.moveHosts?.([1], 'lab'),
        'a workspace renamed': () => inventory.renameWorkspace?.('default', 'lab'),
        'a workspace removed': () => inventory.removeWorkspace?.('default'),
        record: () => records.get(1),
        records: () => records.list({ limit: 1 }),
        'how many records': () => records.count?.({}),
        'new records': () => records.add([RECORD]),
        'new records that enrich': () => postgresRecords({ pool }).add([RECORD], { enrich: { workspace: 'default' } }),
        exporters: () => exporters.list(),
        exporter: () => exporters.get(id),
        health: () => exporters.health(id),
        overview: () => exporters.overview?.(10),
        summaries: () => exporters.summaries?.({}),
        deliveries: () => deliveries.list({ limit: 1 }),
        delivery: () => deliveries.get(id),
        attempts: () => deliveries.attempts(id),
        content: () => deliveries.content?.(id),
        count: () => deliveries.count({}, 10),
        'attempts of all': () => deliveries.attemptLists?.list({ limit: 1, since: new Date(0), until: new Date() }),
        'how many attempts': () => deliveries.attemptLists?.count({ outcome: 'gone' }, 10),
        activity: () => deliveries.activity?.([new Date(0), new Date()], { max: 10 }),
        event: () => deliveries.event(id),
        'a new exporter': () => exporters.insert(sampleExporter()),
        'a change of an exporter': () => exporters.update(id, { name: 'other' }),
        'the end of an exporter': () => exporters.remove(id),
        'one delivery again': () => deliveries.replay(id),
        'a delivery discarded': () => deliveries.discard?.(id),
        'an event erased': () => deliveries.erase?.(id),
        'a replay': () => deliveries.replays?.plan({ id, exporterId: id, failedSince: null, rate: 1 }),
        'how many are replayed': () => deliveries.replays?.count({ exporterId: id, failedSince: null }),
        'one replay': () => deliveries.replays?.get(id),
        'the end of a replay': () => deliveries.replays?.cancel(id),
    };
    // Each has a connection that falls silent.
    const connected = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
    for (const client of connected) {
        client.release();
    }
    proxy.silenceAll();
    await refusesInTime(t, asked);
});

t.test('nor when it falls silent in the midst of a change, which may have been done', async (t) => {
    const changes: Readonly<Record<string, readonly [sent: string, (pool: pg.Pool) => Promise<unknown>]>> = {
        'new records': ['insert into scanwire.records', (pool) => postgresRecords({ pool }).add([RECORD])],
        'new records that are committed': ['commit\0', (pool) => postgresRecords({ pool }).add([RECORD])],
        'the end of an exporter': ['scanwire.remove_exporter', (pool) => postgresWebhooks({ pool }).exporters.remove(UNKNOWN)],
        'imported hosts': ['scanwire.import_batches', (pool) => postgresInventory({ pool }).importHosts('default', hosts())],
        'imported hosts that are taken over': ['import_until', (pool) => postgresInventory({ pool }).importHosts('default', hosts())],
        'hosts that are gone': ['looked as', (pool) => postgresInventory({ pool }).removeHosts('default', {})],
    };
    const done = Object.entries(changes).map(async ([name, [sent, change]]) => {
        const { pool, proxy } = await silenceable(t);
        let silentSince: number | undefined;
        proxy.silenceAt((bytes) => {
            if (!bytes.includes(sent)) {
                return false;
            }
            silentSince = performance.now();
            proxy.silenceAll();
            return true;
        });
        await t.rejects(
            change(pool),
            { code: 'UNAVAILABLE', message: /has fallen silent, and what was asked of it may have been done/ },
            name,
        );
        t.ok(performance.now() - (silentSince ?? 0) < 10_000, name);
    });
    await Promise.all(done);
});

t.test(
    'a change that takes long is waited for while the database answers others, however many of its connections it may give',
    async (t) => {
        const { pool, proxy } = await silenceable(t, 1);
        const change = patiently(pool, { probe: 4_500 }).query('select pg_sleep(7), 1 as done');
        let most = 0;
        const counting = setInterval(() => {
            most = Math.max(most, proxy.connections());
        }, 1);
        t.match(await change, { rows: [{ done: 1 }] });
        clearInterval(counting);
        t.equal(most, 2, 'asked over one more connection');
        await until(async () => proxy.connections() === 1);
    },
);

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

const RECORD = { data: 'aGk=', host: 'example.com', ip: '192.0.2.1', port: 443, path: '/' } as HttpsRecord;

/** The first batch of a listing, for which an answer waits. */
async function begun(batches: AsyncIterable<unknown> | undefined): Promise<void> {
    for await (const _batch of batches ?? []) {
        return;
    }
}

async function refusesInTime(t: Test, asked: Readonly<Record<string, () => Promise<unknown> | undefined>>): Promise<void> {
    const startedAt = performance.now();
    const refused = Object.entries(asked).map(async ([name, ask]) => {
        await t.rejects(async () => await ask(), { code: 'UNAVAILABLE' }, name);
        t.ok(performance.now() - startedAt < 10_000, name);
    });
    await Promise.all(refused);
}

t.test('nor whoever reads a scan database that falls silent', async (t) => {
    const { url, stop } = await scanDatabase(10);
    const target = new URL(url);
    const proxy = await tcpProxy({ host: target.hostname, port: Number(target.port || 5432) });
    target.host = `127.0.0.1:${proxy.port}`;
    const { inventory, close } = await openScanDatabase({ connectionString: target.href });
    t.teardown(async () => {
        proxy.reset();
        await close();
        await proxy.close();
        await stop();
    });
    const { workspaces, hosts } = inventory;
    await workspaces.get([], 1);
    proxy.silenceAll();
    await refusesInTime(t, {
        workspace: () => workspaces.get([], 1),
        hosts: () => begun(hosts.list([1])),
        'hosts as text': () => begun(hosts.listText?.([1])),
        'how many hosts': () => hosts.count?.([1], {}),
    });
});
