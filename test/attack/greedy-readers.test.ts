import { EventEmitter, once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { server as hapiServer, type Request } from '@hapi/hapi';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../adapters/memory/records.ts';
import { postgresStores } from '../../adapters/postgres/index.ts';
import type { Host, HostInput } from '../../lib/inventory/host.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as metasploitData, type WholeInventory } from '../../plugins/metasploit-data/index.ts';
import { streamsOf } from '../../plugins/open-streams.ts';
import { record } from '../plugins/https-record-schema/record-server.ts';
import { type Served, served } from '../plugins/rest-api-v2/served.ts';

async function* oneHost(): AsyncGenerator<HostInput> {
    yield { address: '192.0.2.1' };
}

/** An inventory whose index of hosts has no end. */
async function endless(): Promise<InventoryStore> {
    const store = memoryInventory();
    await store.importHosts('default', oneHost());
    const host = (await store.hosts.get([1], 1)) as Host;
    return {
        ...store,
        hosts: {
            ...store.hosts,
            async *list(_, { signal } = {}) {
                for (let id = 1; signal?.aborted !== true; id += 250) {
                    yield Array.from({ length: 250 }, (_, index) => ({ ...host, id: id + index }));
                    await new Promise((resolve) => setImmediate(resolve));
                }
            },
        },
    };
}

async function startedWith(t: Test, maxStreams: number): Promise<Served> {
    const running = await served({ store: await endless(), maxStreams });
    await running.server.start();
    t.teardown(() => running.server.stop({ timeout: 100 }));
    return running;
}

async function reading(t: Test, { server, headers }: Served, path = '/rest_api/v2/workspaces/1/hosts'): Promise<IncomingMessage> {
    const asked = http.get(server.info.uri + path, { agent: false, headers });
    t.teardown(() => asked.destroy());
    asked.on('error', () => {});
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    return response;
}

t.test('gives out so many indexes at once and no more, and keeps rows and pages for others', async (t) => {
    const running = await startedWith(t, 2);
    const readers = [await reading(t, running), await reading(t, running)];
    t.same(
        readers.map(({ statusCode }) => statusCode),
        [200, 200],
    );

    const refused = await running.get('/workspaces/1/hosts');
    t.match(refused, { status: 503, headers: { 'retry-after': 5 } });
    t.match(JSON.parse(refused.body), { message: 'Too many indexes are being read; try again later' });
    t.equal((await running.get('/workspaces/1/hosts', { method: 'HEAD' })).status, 200);
    t.equal((await running.get('/workspaces/1/hosts/1')).status, 200);
    t.equal((await running.get('/workspaces/1/hosts?limit=1')).status, 200);

    readers[0]?.destroy();
    await until(async () => (await running.get('/workspaces')).status === 200);
});

t.test('keeps no place for who has left', async (t) => {
    const running = await startedWith(t, 1);
    for (let times = 0; times < 3; times += 1) {
        const reader = await reading(t, running);
        t.equal(reader.statusCode, 200);
        reader.destroy();
        await until(async () => (await running.get('/workspaces')).status === 200);
    }
});

t.test('counts the lists for clients of the framework with them', async (t) => {
    const store = await endless();
    const running = await served({ store, maxStreams: 2 });
    const { server, headers } = running;
    await server.register({
        plugin: metasploitData,
        options: { store: store as WholeInventory, license: alwaysLicensed(), maxStreams: 2 },
    });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const first = await reading(t, running);
    const listing = await reading(t, running, '/api/v1/hosts?workspace=default');
    t.equal(listing.statusCode, 200);

    const full = {
        statusCode: 503,
        headers: { 'retry-after': 5 },
        result: { error: { code: 503, message: 'Too many indexes are being read; try again later' } },
    };
    const payload = { jsonrpc: '2.0', method: 'db.hosts', id: 1, params: [{ limit: 2_000_000_000 }] };
    const call = { method: 'POST', url: '/api/v1/json-rpc', headers, payload };
    t.match(await server.inject({ url: '/api/v1/hosts', headers }), full);
    t.match(await server.inject(call), full);
    t.equal((await running.get('/workspaces')).status, 503, 'in either direction');
    t.equal((await server.inject({ url: '/api/v1/hosts/1', headers })).statusCode, 200, 'one row is no list');

    listing.destroy();
    await until(async () => (await running.get('/workspaces')).status === 200);
    first.destroy();
    const few = { ...call, payload: { ...payload, params: [{ limit: 3 }] } };
    await until(async () => JSON.parse((await server.inject(few)).payload).result?.hosts.length === 3);
});

t.test('counts who asks for the head of such a list, of which rows are read, and nobody longer than that takes', async (t) => {
    const store = await endless();
    const running = await served({ store, maxStreams: 1 });
    const { server, headers } = running;
    await server.register({
        plugin: metasploitData,
        options: { store: store as WholeInventory, license: alwaysLicensed(), maxStreams: 1 },
    });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const head = async () => {
        const { status, headers: answered } = await fetch(`${server.info.uri}/api/v1/hosts?address=192.0.2.1`, { method: 'HEAD', headers });
        return [status, answered.get('retry-after')];
    };
    for (let times = 0; times < 3; times += 1) {
        t.same(await head(), [200, null]);
    }
    const reader = await reading(t, running);
    t.same(await head(), [503, '5']);
    reader.destroy();
    await until(async () => (await head())[0] === 200);
});

/** The same of records over that inventory. */
async function endlessRecords(inventory: InventoryStore): Promise<RecordStore> {
    const store = memoryRecords({ inventory: inventory as ReturnType<typeof memoryInventory> });
    await store.add([record()]);
    const stored = await store.list({ limit: 1 });
    return {
        ...store,
        async list({ after = 0, limit }) {
            await new Promise((resolve) => setImmediate(resolve));
            return Array.from({ length: limit }, (_, index) => ({ ...(stored[0] as (typeof stored)[0]), id: after + index + 1 }));
        },
    };
}

const RECORDS = '/https-record-schema/records';
const LINES = { accept: 'application/x-ndjson' };

t.test('counts lists of records with them, and pages of records no more than others', async (t) => {
    const store = await endless();
    const running = await served({ store, maxStreams: 2 });
    const { server } = running;
    const options = { records: await endlessRecords(store), auth: false as const, maxStreams: 2 };
    await server.register({ plugin: httpsRecordSchema, options });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const records = (query = '', headers: object = LINES) => server.inject({ url: RECORDS + query, headers: { ...headers } });
    const listing = await reading(t, { ...running, headers: { ...LINES } as Served['headers'] }, RECORDS);
    const longPage = await reading(t, running, `${RECORDS}?limit=1000000`);
    t.same([listing.statusCode, longPage.statusCode], [200, 200]);

    const full = {
        statusCode: 503,
        headers: { 'retry-after': 5 },
        result: { message: 'Too many indexes are being read; try again later' },
    };
    t.match(await records(), full);
    t.match(await records('?limit=1001', {}), full, 'a page that is longer than those of others');
    t.equal((await running.get('/workspaces/1/hosts')).status, 503, 'in either direction');
    for (const [query, headers] of [
        ['', {}],
        ['?limit=1000', {}],
        ['?limit=20', LINES],
        ['/1', {}],
    ] as const) {
        t.equal((await records(query, headers)).statusCode, 200, `${query} is a page or a row`);
    }
    const head = { method: 'HEAD', url: RECORDS, headers: LINES };
    const { statusCode, headers: refusal } = await server.inject(head);
    t.same([statusCode, refusal['retry-after']], [503, 5], 'rows are read for the head of a list too');
    t.equal((await server.inject({ ...head, url: `${RECORDS}?limit=20` })).statusCode, 200, 'and few for that of a page');

    listing.destroy();
    longPage.destroy();
    await until(async () => (await running.get('/workspaces')).status === 200);
    for (let times = 0; times < 3; times += 1) {
        t.equal((await server.inject(head)).statusCode, 200, 'which has its place no longer than that takes');
    }
});

t.test('counts what stores over one pool list together, and over another pool apart', (t) => {
    const [one, other] = [new pg.Pool(), new pg.Pool()].map((pool) => postgresStores({ pool }));
    const request = { raw: { req: { socket: new Socket() }, res: new EventEmitter() } } as unknown as Request;
    streamsOf(one?.records as object, 1).begin(request);
    t.throws(() => streamsOf(one?.inventory as object, 1).begin(request), /Too many indexes/);
    t.doesNotThrow(() => streamsOf(other?.inventory as object, 1).begin(request));
    request.raw.res.emit('close');
    t.end();
});

t.test('gives no place to who has left before', (t) => {
    const streams = streamsOf({}, 1);
    const gone = { raw: { req: {}, res: { closed: true } } } as Request;
    for (let times = 0; times < 2; times += 1) {
        t.doesNotThrow(() => streams.begin(gone));
    }
    t.end();
});

t.test('cuts off who takes nothing for half a minute, and nobody who takes something', async (t) => {
    let now = 0;
    const streams = streamsOf({}, 2, { now: () => now });
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    const closed: string[] = [];
    server.route({
        method: 'GET',
        path: '/{name}',
        handler(request, h) {
            streams.begin(request);
            const { res } = request.raw;
            res.once('close', () => closed.push(String(request.params.name)));
            res.write(Buffer.alloc(32 * 2 ** 20));
            return h.abandon;
        },
    });
    await server.start();
    t.teardown(() => server.stop({ timeout: 0 }));
    const [silent, slow] = await Promise.all(
        ['silent', 'slow'].map(async (name) => {
            const asked = http.get(`${server.info.uri}/${name}`, { agent: false });
            t.teardown(() => asked.destroy());
            asked.on('error', () => {});
            const [response] = (await once(asked, 'response')) as [IncomingMessage];
            response.on('error', () => {});
            return response;
        }),
    );
    let bytes = 0;
    const taken = async (atLeast: number): Promise<void> => {
        slow?.resume();
        await until(() => bytes >= atLeast);
        slow?.pause();
    };
    slow?.on('data', (piece: Buffer) => {
        bytes += piece.length;
    });
    // By then the other one's buffers are full.
    await taken(12 * 2 ** 20);
    for (let seconds = 0; seconds < 30; seconds += 1) {
        streams.look();
        now += 1000;
    }
    await taken(24 * 2 ** 20);
    t.same(closed, [], 'nobody before');

    streams.look();
    await until(() => closed.length > 0);
    t.same(closed, ['silent']);
    now += 29_000;
    streams.look();
    await taken(32 * 2 ** 20);
    t.same(closed, ['silent'], 'who takes some of it in time gets all of it');
    silent?.destroy();
});

t.test('cuts off who takes nothing of a page, which has no place', async (t) => {
    const store = memoryInventory();
    await store.importHosts('default', oneHost());
    const host = { ...((await store.hosts.get([1], 1)) as Host), comments: 'x'.repeat(32_768) };
    const large: InventoryStore = {
        ...store,
        hosts: {
            ...store.hosts,
            async *select() {
                yield Array.from({ length: 1000 }, (_, index) => ({ ...host, id: index + 1 }));
            },
        },
    };
    const running = await served({ store: large, maxStreams: 1 });
    const closed: string[] = [];
    running.server.ext('onRequest', ({ path, raw }, h) => {
        raw.res.once('close', () => closed.push(path));
        return h.continue;
    });
    await running.server.start();
    t.teardown(() => running.server.stop({ timeout: 0 }));
    const hosts = '/rest_api/v2/workspaces/1/hosts';
    const silent = await reading(t, running, `${hosts}?limit=1000`);
    t.equal((await reading(t, running, '/rest_api/v2/workspaces')).statusCode, 200, 'the only place is free');

    let now = 0;
    const later = streamsOf(large, 1, { now: () => now });
    await until(() => {
        now += 10_000;
        later.look();
        return closed.includes(hosts);
    });
    silent.destroy();
});
