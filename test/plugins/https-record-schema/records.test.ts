import http from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import * as Boom from '@hapi/boom';
import Hapi, { type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../../adapters/memory/records.ts';
import type { HttpsRecord, RecordStore } from '../../../lib/records/index.ts';
import { type HttpsRecordSchemaOptions, plugin } from '../../../plugins/https-record-schema/index.ts';
import { answerTo, linesTold, RECORDS, record, started } from './record-server.ts';

const AT = new Date('2026-11-21T09:30:00.123Z');

interface Page {
    readonly records: readonly { readonly id: number; readonly importedAt: string; readonly record: HttpsRecord }[];
    readonly next: string | null;
}

async function page(server: Server, query = ''): Promise<Page> {
    const { statusCode, payload } = await server.inject(query.startsWith('/') ? query : `${RECORDS}${query}`);
    if (statusCode !== 200) {
        throw new Error(payload);
    }

    return JSON.parse(payload) as Page;
}

async function stored(t: Test, records: readonly HttpsRecord[], options: HttpsRecordSchemaOptions = {}): Promise<Server> {
    const store = memoryRecords({ clock: () => AT });
    await store.add(records);
    return started(t, { records: store, ...options });
}

function many(count: number): HttpsRecord[] {
    return Array.from({ length: count }, (_, index) => record({ path: `/${index}` }));
}

t.test('shows a record with the time of its import', async (t) => {
    const server = await stored(t, [record()]);
    const { statusCode, payload } = await server.inject(`${RECORDS}/1`);
    t.equal(statusCode, 200);
    t.same(JSON.parse(payload), { id: 1, importedAt: AT.toISOString(), record: record() });
});

t.test('answers 404 to an id that no record has', async (t) => {
    const server = await stored(t, [record()]);
    for (const id of ['2', '0', '01', '-1', '1.0', 'x', '9'.repeat(16), '9'.repeat(40), '1/2']) {
        t.equal((await server.inject(`${RECORDS}/${id}`)).statusCode, 404, id);
    }
});

t.test('lists the records in pages that lead to each other', async (t) => {
    const server = await stored(t, many(250));
    const ids: number[] = [];
    const sizes: number[] = [];
    for (let next: string | null = '?host=www.example.com'; next !== null; ) {
        const found: Page = await page(server, next);
        ids.push(...found.records.map(({ id }) => id));
        sizes.push(found.records.length);
        next = found.next;
    }

    t.same(sizes, [100, 100, 50]);
    t.same(
        ids,
        Array.from({ length: 250 }, (_, index) => index + 1),
    );
});

t.test('names no other page where there is none', async (t) => {
    const server = await stored(t, many(32));
    for (const [limit, expected] of [
        [15, 15],
        [16, 16],
        [31, 31],
    ] as const) {
        t.match(await page(server, `?limit=${limit}`), { next: `${RECORDS}?limit=${limit}&after=${expected}` });
    }

    t.equal((await page(server, '?limit=32')).next, null);
    t.equal((await page(server, '?limit=33')).next, null);
    t.same(await page(server, '?after=32'), { records: [], next: null });
});

t.test('finds records by address, host and time of import', async (t) => {
    const server = await stored(t, [record(), record({ ip: '2001:db8::7', host: 'Other.example' })]);
    for (const [query, ids] of [
        ['?ip=192.0.2.7', [1]],
        ['?ip=2001:DB8:0::7', [2]],
        ['?host=other.EXAMPLE', [2]],
        ['?ip=192.0.2.7&host=other.example', []],
        ['?imported_from=2026-11-21T09:30:00.123Z', [1, 2]],
        ['?imported_from=2026-11-21T10:30:00.124%2B01:00', []],
        ['?imported_before=2026-11-21T09:30:00.123Z', []],
        ['?imported_before=2026-11-21T09:30:01Z', [1, 2]],
    ] as const) {
        t.same(
            (await page(server, query)).records.map(({ id }) => id),
            ids,
            query,
        );
    }
});

t.test('says what is wrong with a query', async (t) => {
    const server = await stored(t, []);
    for (const [query, message] of [
        ['ip=nowhere', 'ip must be an IPv4 or IPv6 address'],
        ['ip=1.2.3.4&ip=1.2.3.5', 'ip must be a string'],
        ['host=-', 'host must be a name or an IP address'],
        ['imported_from=2026-11-21', 'imported_from must be an ISO 8601 time with a zone, such as 2026-11-21T09:30:00Z'],
        ['after=x', 'after must be a number'],
        ['limit=0', 'limit must be greater than or equal to 1'],
        ['port=443', 'port is not allowed'],
    ] as const) {
        const { statusCode, result } = await server.inject(`${RECORDS}?${query}`);
        t.match({ statusCode, result }, { statusCode: 400, result: { message } }, query);
    }
});

t.test('gives all that is found to those who accept JSON lines', async (t) => {
    const server = await stored(t, many(250));
    const headers = { accept: 'application/x-ndjson' };
    const all = await server.inject({ url: RECORDS, headers });
    const lines = all.payload.trim().split('\n');

    t.equal(all.headers['content-type'], 'application/x-ndjson');
    t.equal(lines.length, 250);
    t.match(JSON.parse(lines[249] ?? ''), { id: 250, record: { path: '/249' } });
    t.equal((await server.inject({ url: `${RECORDS}?limit=20`, headers })).payload.trim().split('\n').length, 20);
    t.equal((await server.inject({ url: `${RECORDS}?after=250`, headers })).payload, '');
});

t.test('gives pages over HTTP/1.0, where lines that were cut would look complete', async (t) => {
    const { info } = await started(t, { records: memoryRecords() });
    const socket = net.connect(Number(info.port), '127.0.0.1');
    socket.write(`GET ${RECORDS} HTTP/1.0\r\naccept: application/x-ndjson\r\n\r\n`);
    const [, body] = (await text(socket)).split('\r\n\r\n');
    t.equal(body, '{"records":[],"next":null}');
});

t.test('answers 503 when the store fails, and breaks the connection when it fails later', async (t) => {
    const honest = memoryRecords();
    await honest.add(many(100));
    let lists = 0;
    const down = () => Promise.reject(new Error('db.internal is away'));
    const records: RecordStore = { ...honest, get: down, list: (query) => (lists++ % 2 === 0 ? honest.list(query) : down()) };
    const server = await started(t, { records });
    const later = http.get(`${server.info.uri}${RECORDS}`, { headers: { accept: 'application/x-ndjson' }, agent: false });
    const told = linesTold(await answerTo(later));
    t.match((await told.next()).value, { id: 1 });
    await t.rejects(
        async () => {
            for await (const _ of told) {
                // Until it is cut.
            }
        },
        { code: 'ECONNRESET' },
    );

    lists = 1;
    for (const path of [RECORDS, `${RECORDS}/1`]) {
        const { statusCode, payload } = await server.inject(path);
        t.equal(statusCode, 503);
        t.notMatch(payload, /internal/);
    }
});

t.test('answers HEAD as GET, reading no more than the first batch', async (t) => {
    const store = memoryRecords();
    await store.add(many(100));
    let lists = 0;
    const records: RecordStore = {
        ...store,
        list(query) {
            lists += 1;
            return store.list(query);
        },
    };
    const server = await started(t, { records });
    for (const accept of ['application/json', 'application/x-ndjson']) {
        lists = 0;
        const message = await answerTo(
            http.request(`${server.info.uri}${RECORDS}`, { method: 'HEAD', headers: { accept }, agent: false }).end(),
        );
        t.equal(message.statusCode, 200);
        t.match(message.headers['content-type'], accept);
        t.same(await linesTold(message).next(), { done: true, value: undefined });
        t.equal(lists, 1);
    }

    records.list = () => Promise.reject(new Error('db.internal is away'));
    t.equal((await server.inject({ method: 'HEAD', url: RECORDS })).statusCode, 503);
});

t.test('has no routes for records without a store', async (t) => {
    const server = await started(t, { records: undefined });
    for (const [method, path] of [
        ['GET', ''],
        ['GET', '/1'],
        ['POST', ''],
    ] as const) {
        t.equal((await server.inject({ method, url: `${RECORDS}${path}` })).statusCode, 404);
    }
});

t.test('asks for authentication on every route', async (t) => {
    const server = Hapi.server();
    server.auth.scheme('never', () => ({
        authenticate() {
            throw Boom.unauthorized();
        },
    }));
    server.auth.strategy('strict', 'never');
    await server.register({ plugin, options: { auth: 'strict', records: memoryRecords() } });
    for (const [method, path] of [
        ['GET', ''],
        ['GET', '/1'],
        ['POST', ''],
    ] as const) {
        t.equal((await server.inject({ method, url: `${RECORDS}${path}` })).statusCode, 401);
    }
});

/** Lets in who brings `token: key`. A server may have it as its default in any mode. */
function withKeys(server: Server): void {
    server.auth.scheme('keys', () => ({
        authenticate(request, h) {
            if (request.headers.token !== 'key') {
                throw Boom.unauthorized(null, 'keys');
            }
            return h.authenticated({ credentials: {} });
        },
    }));
    server.auth.strategy('token', 'keys');
}

t.test('shows and stores nothing without a key, whatever the default of the server is, unless told otherwise', async (t) => {
    for (const mode of [null, 'required', 'try', 'optional'] as const) {
        const server = Hapi.server();
        withKeys(server);
        if (mode !== null) {
            server.auth.default({ strategy: 'token', mode });
        }
        const records = memoryRecords();
        await server.register({ plugin, options: { records } });
        await server.register({ plugin, options: { records, auth: false, path: '/open', instance: 'open' } });
        for (const [method, path] of [
            ['GET', '/records'],
            ['GET', '/records/1'],
            ['POST', '/records'],
            ['POST', '/check'],
            ['GET', ''],
        ] as const) {
            const ask = { method, url: `/https-record-schema${path}`, headers: { 'content-type': 'application/x-ndjson' }, payload: '' };
            t.equal((await server.inject(ask)).statusCode, 401, `${mode} ${path}`);
            t.not((await server.inject({ ...ask, headers: { ...ask.headers, token: 'key' } })).statusCode, 401);
            t.not((await server.inject({ ...ask, url: `/open${path}` })).statusCode, 401);
        }
    }

    const refused = Hapi.server().register({ plugin, options: { records: memoryRecords() } });
    await t.rejects(refused, { code: 'MISCONFIGURED', field: 'auth' }, 'no strategy of that name');
});

t.test('refuses stores that cannot work', async (t) => {
    const { add, get } = memoryRecords();
    for (const [options, field] of [
        [{ records: { add, get } }, 'records'],
        [{ enrich: {} }, 'enrich'],
        [{ records: memoryRecords(), enrich: {} }, 'enrich'],
        [{ records: memoryRecords({ inventory: memoryInventory() }), enrich: { workspace: 'a\0b' } }, 'enrich.workspace'],
    ] as const) {
        const refused = Hapi.server().register({ plugin, options: options as unknown as HttpsRecordSchemaOptions });
        await t.rejects(refused, { code: 'MISCONFIGURED', field });
    }
});
