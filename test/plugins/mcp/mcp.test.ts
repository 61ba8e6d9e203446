import Hapi from '@hapi/hapi';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import { memoryApiKeys, memoryInventory, memoryRecords } from '../../../adapters/memory/index.ts';
import type { Selection } from '../../../lib/inventory/selection.ts';
import type { ApiKeyScope } from '../../../lib/keys/scopes.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { type McpOptions, plugin as mcp } from '../../../plugins/mcp/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';

const https = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null } as const;
const UNPRINTABLE = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const RECORD = { data: 'SFRUUC8xLjEgMjAwIE9LDQoNCg==', host: 'www.example.com', ip: '192.0.2.1', port: 443 };

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

async function filled() {
    let now = new Date('2026-11-21T09:00:00Z');
    const store = memoryInventory({ clock: () => now });
    const many = Array.from({ length: 250 }, (_, n) => ({ address: `10.0.0.${n + 1}`, ...(n < 2 && { services: [https] }) }));
    await store.importHosts('default', each(many));
    await store.importHosts('lab', each([{ address: '192.0.2.1', name: 'web', os_name: 'Linux', services: [https] }]));
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    await store.addNote(1, { ntype: 'x', data: { y: 1 } });
    now = new Date('2026-11-21T10:00:00Z');
    await store.importHosts('default', each(many.slice(100, 220).map((host) => ({ ...host, purpose: 'server' }))));
    return store;
}

/** Newest first, as a store lists them. */
const DELIVERIES = Array.from({ length: 150 }, (_, n) => ({ id: `d${150 - n}`, state: n % 2 === 0 ? 'delivered' : 'pending' }));

async function deliveriesAsListed({ after, limit = 100, state }: { after?: string; limit?: number; state?: string } = {}) {
    const behind = after === undefined ? 0 : DELIVERIES.findIndex(({ id }) => id === after) + 1;
    return DELIVERIES.slice(behind)
        .filter((each) => state === undefined || each.state === state)
        .slice(0, limit) as unknown as Delivery[];
}

async function counted({ state }: { state?: string } = {}) {
    const count = DELIVERIES.filter((each) => state === undefined || each.state === state).length;
    return { count, more: state === undefined };
}

async function served(t: Test, options: Partial<McpOptions> = {}) {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    const records = memoryRecords();
    await records.add([RECORD, ...Array.from({ length: 120 }, (_, n) => ({ ...RECORD, port: 1000 + n }))]);
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    await server.register({
        plugin: mcp,
        options: {
            store: await filled(),
            records,
            deliveries: { list: deliveriesAsListed, count: counted },
            license: alwaysLicensed(),
            ...options,
        },
    });
    await server.start();
    t.after(() => server.stop());
    const { create } = server.plugins['token-auth'];
    const connected = async (limits: { scopes?: ApiKeyScope[]; workspaces?: number[] } = {}) => {
        const { key } = await create('assistant', { scopes: ['inventory:read', 'records:read', 'deliveries:read'], ...limits });
        const client = new Client({ name: 'test', version: '1' });
        const url = new URL(`${server.info.uri}/mcp`);
        const headers = { authorization: `Bearer ${key}` };
        await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }) as never);
        t.after(() => client.close());
        const call = async (name: string, args: Record<string, unknown> = {}) => {
            const { structuredContent, content, isError = false } = await client.callTool({ name, arguments: args });
            const [{ text }] = content as [{ text: string }];
            return isError
                ? { error: text }
                : (structuredContent as { rows: { id: number }[]; total: number | null; cursor: string | null });
        };
        return { client, call };
    };
    return { server, create, connected };
}

type Connected = Awaited<ReturnType<Awaited<ReturnType<typeof served>>['connected']>>;

/** Pages from the first to the last. */
async function allOf({ call }: Connected, name: string, args: Record<string, unknown> = {}) {
    const pages: { rows: { id: number | string }[]; total: number | null; cursor: string | null }[] = [];
    for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.cursor) {
        const page = await call(name, { ...args, ...(cursor !== undefined && { cursor }) });
        if ('error' in page) {
            throw new Error(page.error);
        }

        pages.push(page);
    }
    return {
        sizes: pages.map(({ rows }) => rows.length),
        totals: pages.map(({ total }) => total),
        ids: pages.flatMap(({ rows }) => rows.map(({ id }) => id)),
    };
}

t.test('answers in JSON that is safe to print, whatever scans have brought', async (t) => {
    const hostile = 'web\u202etxt.exe\u2066\u2028';
    const store = memoryInventory();
    await store.importHosts('default', each([{ address: '192.0.2.1', name: hostile }]));
    const { server, create } = await served(t, { store });
    const { key } = await create('assistant', { scopes: ['inventory:read'] });
    const asked = async (name: string) => {
        const payload = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } };
        const headers = { authorization: `Bearer ${key}`, accept: 'application/json, text/event-stream' };
        const answer = await server.inject({ method: 'POST', url: '/mcp', headers, payload });
        t.notMatch(answer.payload, UNPRINTABLE);
        const { result } = JSON.parse(answer.payload);
        t.notMatch(result.content[0].text, UNPRINTABLE, 'nor the text for who shows that alone');
        return result;
    };
    const { content, structuredContent } = await asked('hosts');
    t.match(structuredContent.rows, [{ name: hostile }]);
    t.match(JSON.parse(content[0].text).rows, [{ name: hostile }]);
    t.match(await asked(hostile), { isError: true });
});

t.test('takes at most 100 calls in one request, whatever the package does about that', async (t) => {
    const { server, create } = await served(t);
    const { key } = await create('assistant');
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'workspaces', arguments: {} } };
    const headers = { authorization: `Bearer ${key}`, accept: 'application/json, text/event-stream' };
    const asked = (calls: number) => {
        const payload = Array.from({ length: calls }, (_, id) => ({ ...call, id }));
        return server.inject({ method: 'POST', url: '/mcp', headers, payload });
    };
    const { statusCode, payload } = await asked(100);
    t.match([statusCode, JSON.parse(payload).length], [200, 100]);
    const refused = await asked(101);
    t.match([refused.statusCode, JSON.parse(refused.payload)], [400, { jsonrpc: '2.0', error: { code: -32600 }, id: null }]);
});

t.test('lists tools that only read, for the scopes of the key', async (t) => {
    const { connected } = await served(t);
    const names = async (limits: Parameters<typeof connected>[0]) =>
        (await (await connected(limits)).client.listTools()).tools.map(({ name }) => name);
    const inventory = ['workspaces', 'hosts', 'services', 'vulns', 'notes'];
    t.same(await names({}), [...inventory, 'records', 'deliveries']);
    t.same(await names({ scopes: ['inventory:read'] }), inventory);
    t.same(await names({ scopes: ['inventory:read', 'records:read'] }), [...inventory, 'records']);
    const { tools } = await (await connected()).client.listTools();
    t.ok(tools.every(({ annotations }) => annotations?.readOnlyHint === true));
    t.match(tools.find(({ name }) => name === 'hosts')?.inputSchema, {
        type: 'object',
        properties: { workspace: { type: 'string', default: 'default' }, state: { enum: ['alive', 'down', 'unknown'] }, cursor: {} },
        additionalProperties: false,
    });
    const { call } = await connected({ scopes: ['inventory:read'] });
    t.same(await call('records'), { error: 'There is no tool "records" for this key' });
    t.same(await call('constructor'), { error: 'There is no tool "constructor" for this key' });
});

t.test('gives pages of 100 rows, a cursor and the true total', async (t) => {
    const { connected } = await served(t);
    const assistant = await connected();
    const upTo = (last: number) => Array.from({ length: last }, (_, n) => n + 1);
    t.same(await allOf(assistant, 'hosts'), { sizes: [100, 100, 50], totals: [250, 250, 250], ids: upTo(250) });
    const changed = await allOf(assistant, 'hosts', { updated_since: '2026-11-21T10:00:00Z' });
    t.same(changed, { sizes: [100, 20], totals: [120, 120], ids: upTo(220).slice(100) });
    t.same(await allOf(assistant, 'records'), { sizes: [100, 21], totals: [121, 121], ids: upTo(121) });
    t.same((await allOf(assistant, 'deliveries')).sizes, [100, 50]);
    t.same((await allOf(assistant, 'deliveries', { state: 'pending' })).totals, [75]);
    t.match(await assistant.call('deliveries'), { total: null, atLeast: 150 }, 'as far as was counted');
    t.notOk('atLeast' in (await assistant.call('deliveries', { state: 'pending' })));
    t.match(await assistant.call('records', { host: 'www.example.org' }), { rows: [], total: 0 });
});

t.test('takes every cursor that it gives, of records with ids of 64 bits and of times before 1970', async (t) => {
    const rows = Array.from({ length: 250 }, (_, n) => ({ id: 2_147_483_398 + n, updated_at: new Date(n - 200) }));
    const { list, get } = memoryInventory().hosts;
    const hosts = {
        list,
        get,
        filters: ['updated_since'],
        count: async () => rows.length,
        select: (_: readonly number[], { after, limit }: Selection) =>
            each([rows.filter(({ id }) => id > (after?.id ?? 0)).slice(0, limit)]),
    };
    const far = Number.MAX_SAFE_INTEGER - 249;
    const records = {
        list: async ({ after = 0, limit = 100 }) => {
            const found = rows.map((_, n) => far + n).filter((id) => id > after);
            return found.slice(0, limit).map((id) => ({ id, importedAt: new Date(0), record: RECORD }));
        },
    };
    const { connected } = await served(t, { store: { ...(await filled()), hosts }, records } as never);
    const assistant = await connected();
    const all = { sizes: [100, 100, 50], totals: [250, 250, 250], ids: rows.map(({ id }) => id) };
    t.same(await allOf(assistant, 'hosts'), all);
    const before = { updated_since: '1969-12-31T00:00:00Z' };
    t.same(await allOf(assistant, 'hosts', before), all);
    t.same(
        (await allOf(assistant, 'records')).ids,
        rows.map((_, n) => far + n),
    );
    for (const [name, input] of [
        ['records', { cursor: '9007199254740992' }],
        ['records', { cursor: '-5' }],
        ['hosts', { cursor: '2147483648' }],
        ['hosts', { ...before, cursor: '9999999999999999-1' }],
    ] as const) {
        t.match(await assistant.call(name, input), { error: /^cursor must be that/ }, input.cursor);
    }
});

t.test('finds by workspace, address, state, name and text', async (t) => {
    const { connected } = await served(t);
    const assistant = await connected();
    const ids = async (name: string, args: Record<string, unknown>) => (await allOf(assistant, name, args)).ids;
    t.same(await ids('workspaces', {}), [1, 2]);
    t.same(await ids('workspaces', { name: 'lab' }), [2]);
    t.same(await ids('workspaces', { search: 'DEF' }), [1]);
    t.same(await ids('hosts', { workspace: 'lab' }), [251]);
    t.same(await ids('hosts', { address: '10.0.0.0/30' }), [1, 2, 3]);
    t.same(await ids('hosts', { address: '10.0.0.0/30', state: 'down' }), []);
    t.same(await ids('hosts', { workspace: 'lab', search: 'WEB', os_name: 'Linux' }), [251]);
    t.same(await ids('services', { workspace: 'default', name: 'https' }), [1, 2]);
    t.same(await ids('services', { address: '10.0.0.2-10.0.0.9' }), [2]);
    t.same(await ids('vulns', { search: 'cve' }), [1]);
    t.same(await ids('notes', {}), [1]);
    for (const tool of ['services', 'vulns', 'notes']) {
        t.same(await ids(tool, { address: '192.0.2.0/24' }), [], tool);
    }
    t.same(await ids('records', { host: 'www.example.com', cursor: '120' }), [121]);
    const {
        rows: [record],
    } = (await assistant.call('records')) as { rows: object[] };
    t.match(record, { id: 1, host: 'www.example.com', bytes: 19, importedAt: /Z$/ });
    t.notOk('data' in (record as object));
});

t.test('says what is wrong with the input', async (t) => {
    const { connected } = await served(t);
    const { call } = await connected();
    const refused = async (name: string, args: Record<string, unknown>) => ((await call(name, args)) as { error: string }).error;
    t.equal(await refused('hosts', { workspace: 'nobody' }), 'Unknown workspace "nobody"');
    t.match(await refused('hosts', { state: 'up' }), /^state must be one of/);
    t.match(await refused('hosts', { address: 'x' }), /^address must be an IP address/);
    t.match(await refused('hosts', { other: 1 }), /^other is not allowed/);
    for (const args of [{ cursor: 'x' }, { cursor: '1-1' }, { cursor: '5', updated_since: '2026-11-21T10:00:00Z' }]) {
        t.equal(await refused('hosts', args), 'cursor must be that of the page before, with the same input');
    }
});

t.test('says of times that no database keeps that they are wrong, as no reason to try again', async (t) => {
    const { connected } = await served(t);
    const { call } = await connected();
    const refused = async (name: string, args: Record<string, unknown>) => ((await call(name, args)) as { error: string }).error;
    for (const name of ['hosts', 'services', 'vulns', 'notes']) {
        for (const updated_since of [
            '-100000-01-01T00:00:00Z',
            '0000-12-31T23:59:59Z',
            '+010000-01-01T00:00:00Z',
            '+275760-09-13T00:00:00Z',
        ]) {
            t.equal(
                await refused(name, { updated_since }),
                'updated_since must be a time of the years 1 to 9999',
                `${name} ${updated_since}`,
            );
        }
        for (const time of ['-8640000000000000', '8640000000000000', `${Date.parse('0000-12-31T23:59:59.999Z')}`, `${Date.UTC(10_000)}`]) {
            const after = { updated_since: '2026-11-21T10:00:00Z', cursor: `${time}-1` };
            t.equal(await refused(name, after), 'cursor must be that of the page before, with the same input', `${name} ${time}`);
        }
        t.match(await call(name, { updated_since: '0001-01-01T00:00:00Z' }), { rows: [] });
        t.match(await call(name, { updated_since: '9999-12-31T23:59:59Z', cursor: `${Date.parse('0001-01-01T00:00:00Z')}-1` }), {
            rows: [],
        });
    }
});

t.test('holds to keys, workspaces and licence', async (t) => {
    let valid = true;
    const { server, create, connected } = await served(t, { license: { valid: async () => valid } });
    const payload = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const post = async (headers: Record<string, string>) =>
        await server.inject({
            method: 'POST',
            url: '/mcp',
            headers: { accept: 'application/json, text/event-stream', ...headers },
            payload,
        });
    const { key } = await create('a');
    const { key: publisher } = await create('b', { scopes: ['events:publish'] });
    t.equal((await post({})).statusCode, 403);
    t.equal((await post({ token: publisher })).statusCode, 403);
    t.match(await post({ token: key }), { statusCode: 200, headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } });
    for (const method of ['GET', 'DELETE']) {
        t.match(await server.inject({ method, url: '/mcp', headers: { token: key } }), { statusCode: 405, headers: { allow: 'POST' } });
    }
    t.equal((await post({ token: key, 'content-type': 'text/plain' })).statusCode, 415, 'no form of another site');

    const { call } = await connected({ workspaces: [2] });
    t.match(await call('workspaces'), { rows: [{ name: 'lab' }], total: 1 });
    t.match(await call('hosts', { workspace: 'lab' }), { total: 1 });
    t.same(await call('hosts'), { error: 'Unknown workspace "default"' });
    for (const name of ['records', 'deliveries']) {
        t.match(await call(name), { error: /limited to workspaces/ });
    }
    valid = false;
    t.equal((await post({ token: key })).statusCode, 403);
});

t.test('reads from stores that can do less, and says what they cannot', async (t) => {
    const store = await filled();
    const { workspaces, hosts } = store;
    const { count: _, filters: __, ...less } = hosts as Required<typeof hosts>;
    const { connected } = await served(t, { store: { workspaces, hosts: less }, records: undefined, deliveries: undefined });
    const assistant = await connected();
    t.same(
        (await assistant.client.listTools()).tools.map(({ name }) => name),
        ['workspaces', 'hosts'],
    );
    t.same((await allOf(assistant, 'hosts')).totals, [250, 250, 250]);
    t.match(await assistant.call('hosts', { search: 'x' }), { error: /^search cannot be met/ });
    const { count: ___, ...uncounted } = hosts as Required<typeof hosts>;
    const counting = await (await served(t, { store: { workspaces, hosts: uncounted } })).connected();
    t.same((await allOf(counting, 'hosts', { updated_since: '2026-11-21T10:00:00Z' })).totals, [120, 120], 'of those that are asked for');
    const { list, get } = hosts;
    const plain = await (await served(t, { store: { workspaces, hosts: { list, get } } })).connected();
    t.match(await plain.call('hosts'), { error: /^cursor cannot be met/ });
});

t.test('tells nobody why a store failed', async (t) => {
    const store = await filled();
    const down = () => Promise.reject(new Error('password of the database'));
    const { server, connected } = await served(t, { store: { ...store, hosts: { ...store.hosts, count: down } } as never });
    const logged: string[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push((error as Error).message));
    t.same(await (await connected()).call('hosts'), { error: 'The data cannot be read now; try again later' });
    t.same(logged, ['password of the database']);
});
