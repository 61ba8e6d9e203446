import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import Hapi from '@hapi/hapi';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryApiKeys, memoryInventory } from '../../../adapters/memory/index.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { type MetasploitDataOptions, type MoreAsked, plugin as metasploitData } from '../../../plugins/metasploit-data/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';

const ADDRESSES = { default: ['192.0.2.1', '192.0.2.2'], lab: ['10.0.0.1'] };
const LOOTS: readonly { readonly id: number; readonly workspace: number; readonly [column: string]: unknown }[] = [
    { id: 1, workspace: 1, host_id: 1, ltype: 'linux.hashes', data: 'root:x', created_at: new Date('2026-11-21T09:30:00.123Z') },
    { id: 2, workspace: 1, host_id: 2, ltype: 'windows.Hashes' },
    { id: 3, workspace: 2, host_id: 3, ltype: 'cisco' },
    { id: 4, workspace: 1, ltype: 'of no host' },
];

async function* each<T>(items: Iterable<T>): AsyncIterable<T> {
    yield* items;
}

const loots = ({ workspace }: MoreAsked) =>
    LOOTS.filter((loot) => loot.workspace === workspace.id).map(({ workspace: _, ...loot }) => ({ ...loot, of: workspace.name }));

async function served(more: unknown, options: Partial<MetasploitDataOptions> = {}) {
    const store = memoryInventory();
    for (const [workspace, addresses] of Object.entries(ADDRESSES)) {
        await store.importHosts(workspace, each(addresses.map((address): HostInput => ({ address }))));
    }
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    const all = { store, license: alwaysLicensed(), more: more as NonNullable<MetasploitDataOptions['more']>, ...options };
    await server.register({ plugin: metasploitData, options: all });
    const { create } = server.plugins['token-auth'];
    const { key } = await create('console', { scopes: ['inventory:read', 'secrets:read'] });
    const ask = async (path: string, { bearer = key, payload }: { readonly bearer?: string; readonly payload?: object } = {}) => {
        const request = { url: `/api/v1${path}`, headers: { authorization: `Bearer ${bearer}` } };
        const answer = await server.inject(payload === undefined ? request : { ...request, method: 'POST', payload });
        return { status: answer.statusCode, body: JSON.parse(answer.payload) };
    };
    const ids = async (path: string, bearer = key) => (await ask(path, { bearer })).body.data.map(({ id }: { id: number }) => id);
    const rpcOf = async (bearer: string, method: string, ...params: object[]) =>
        (await ask('/json-rpc', { bearer, payload: { jsonrpc: '2.0', method, id: 1, params } })).body;
    const rpc = async (method: string, ...params: object[]) => await rpcOf(key, method, ...params);
    return { server, create, key, ask, ids, rpc, rpcOf };
}

t.test('lists what the host gives, by workspace, address and text, as it is', async (t) => {
    const { ask, ids } = await served({ loots, logins: (asked: MoreAsked) => each(loots(asked)) });
    t.same((await ask('/loots?address=192.0.2.1')).body.data, [
        { id: 1, host_id: 1, ltype: 'linux.hashes', data: 'root:x', created_at: '2026-11-21T09:30:00.123Z', of: 'default' },
    ]);
    for (const [path, expected] of [
        ['/loots', [1, 2, 4]],
        ['/loots?workspace=lab', [3]],
        ['/loots?search_term=HASHES', [1, 2]],
        ['/loots?address=192.0.2.2,198.51.100.1', [2]],
        ['/logins', [1, 2, 4]],
        ['/credentials', []],
        ['/credentials/1', []],
    ] as const) {
        t.same(await ids(path), expected, path);
    }
    t.match(await ask('/loots?workspace=nobody'), { status: 404, body: { error: { message: /nobody/ } } });
    t.match(await ask('/loots?address=x'), { status: 400, body: { error: { message: /^address must be/ } } });
    const many = Array.from({ length: 501 }, (_, index) => ({ id: index + 1 }));
    const large = await served({ loots: async () => many });
    t.same(
        await large.ids('/loots'),
        many.map(({ id }) => id),
        'a promise of rows, more than go out together',
    );
    t.same((await (await served({ loots: () => [] })).ask('/loots')).body, { data: [] });
});

t.test('shows one row, of any workspace that the key sees', async (t) => {
    const { ask, create } = await served({ loots });
    t.match((await ask('/loots/3')).body, { data: { id: 3, of: 'lab' } });
    t.match((await ask('/loots/2?workspace=default')).body, { data: { id: 2 } });
    const { key: bearer } = await create('lab', { workspaces: [2], scopes: ['inventory:read', 'secrets:read'] });
    for (const [path, limited] of [
        ['/loots/3?workspace=default', false],
        ['/loots/9', false],
        ['/loots/x', false],
        ['/loots/1', true],
    ] as const) {
        t.same(await ask(path, limited ? { bearer } : {}), { status: 200, body: { data: [] } }, path);
    }
    t.equal((await ask('/loots', { bearer })).status, 404, 'default is not seen');
    t.match(await ask('/loots?workspace=lab', { bearer }), { status: 200, body: { data: [{ id: 3 }] } });
});

t.test('shows what was captured to keys with the scope for it only', async (t) => {
    const { server, create, ask, rpcOf } = await served({ loots, credentials: loots });
    const read: string[] = [];
    const watched = (asked: MoreAsked) => {
        read.push(asked.workspace.name);
        return [];
    };
    const { key: byDefault } = await create('console');
    const { key: others } = await create('others', {
        scopes: ['inventory:read', 'records:read', 'records:write', 'deliveries:read', 'events:publish', 'admin'],
    });
    for (const bearer of [byDefault, others]) {
        for (const path of ['/loots', '/loots/1', '/loots/1?workspace=lab', '/credentials', '/credentials/3', '/loots?workspace=nobody']) {
            const refused = { status: 403, body: { error: { code: 403, message: /needs the scope secrets:read/ } } };
            t.match(await ask(path, { bearer }), refused, path);
        }
        for (const method of ['db.loots', 'db.creds']) {
            t.match(await rpcOf(bearer, method), { error: { code: 403, message: /secrets:read/ } }, method);
        }
        t.same(await ask('/logins', { bearer }), { status: 200, body: { data: [] } }, 'there is nothing to keep from anybody');
        t.equal((await ask('/hosts', { bearer })).status, 200);
    }
    const { key: alone } = await create('alone', { scopes: ['secrets:read'] });
    t.equal((await ask('/loots', { bearer: alone })).status, 401, 'which stands for no other scope');
    const { ask: askAgain, create: createAgain } = await served({ logins: watched });
    t.equal((await askAgain('/logins', { bearer: (await createAgain('b')).key })).status, 403);
    t.same(read, [], 'the function of the host is not asked');
    t.equal((await server.inject({ url: '/api/v1/loots', headers: { authorization: 'Bearer wrong' } })).statusCode, 401);
});

t.test('leaves it to the strategy of an application who reads what was captured', async (t) => {
    const { server } = await served({ loots }, { auth: false });
    t.equal((await server.inject('/api/v1/loots')).statusCode, 200);
});

t.test('answers db.loots and db.creds from the same lists', async (t) => {
    const { rpc } = await served({ loots, credentials: loots });
    const ids = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id);
    t.same(ids((await rpc('db.loots')).result.loots), [1, 2, 4]);
    t.same(ids((await rpc('db.creds', { workspace: 'lab' })).result.creds), [3]);
    t.same(ids((await rpc('db.creds', { offset: 1, limit: 1 })).result.creds), [2]);
    t.same(ids((await rpc('db.loots', { addresses: '192.0.2.1' })).result.loots), [1]);
    t.match(await rpc('db.loots', { workspace: 'nobody' }), { error: { code: 404 } });
});

t.test('answers 503 where the host fails or gives no rows, and breaks off later', async (t) => {
    const down: () => never = () => {
        throw new Error('down');
    };
    const wrong: Readonly<Record<string, () => unknown>> = {
        throws: down,
        rejects: async () => down(),
        'no rows': () => undefined,
        texts: () => 'text',
        list: () => [[1]],
        null: async () => [{ id: 1 }, null],
    };
    for (const [name, credentials] of Object.entries(wrong)) {
        const { ask, rpc } = await served({ credentials });
        t.match(await ask('/credentials'), { status: 503, body: { error: { code: 503, message: /try again later/ } } }, name);
        t.equal((await rpc('db.creds')).error.code, 503, name);
        t.equal((await ask('/credentials/7')).status, 503, name);
        t.same((await ask('/loots')).body, { data: [] });
    }
    const late = async function* (): AsyncIterable<object> {
        yield* Array.from({ length: 100 }, (_, id) => ({ id }));
        down();
    };
    const { server, key } = await served({ loots: late });
    await server.start();
    t.after(() => server.stop());
    const request = httpRequest(`${server.info.uri}/api/v1/loots`, { headers: { authorization: `Bearer ${key}` } }).end();
    const [response] = await once(request, 'response');
    response.resume();
    await t.rejects(once(response, 'end'), { code: 'ECONNRESET' });
});

t.test('has a place among the streams for each, and tells the host of a client that leaves', async (t) => {
    const signals: AbortSignal[] = [];
    const silent = ({ signal }: MoreAsked): AsyncIterable<object> => {
        signals.push(signal);
        return each<object>([]);
    };
    const held = async ({ signal }: MoreAsked): Promise<readonly object[]> => {
        signals.push(signal);
        await once(signal, 'abort');
        return [];
    };
    const { server, key, ask } = await served({ loots: held, logins: silent }, { maxStreams: 1 });
    await server.start();
    t.after(() => server.stop());
    const request = httpRequest(`${server.info.uri}/api/v1/loots`, { headers: { authorization: `Bearer ${key}` } }).end();
    request.on('error', () => {});
    await until(() => signals.length > 0, 5_000);
    for (const path of ['/logins', '/logins/1', '/hosts']) {
        t.equal((await ask(path)).status, 503, path);
    }
    const call = { jsonrpc: '2.0', method: 'db.loots', id: 1, params: [] };
    t.match((await ask('/json-rpc', { payload: call })).body, { error: { code: 503 } });
    t.equal(signals.length, 1);
    request.destroy();
    await once(signals[0] as AbortSignal, 'abort');
    t.equal((await ask('/logins')).status, 200);
});

t.test('refuses lists that are no functions, and others', async (t) => {
    await t.rejects(served({ loots: [] }), { code: 'MISCONFIGURED', field: 'more.loots', message: /more\.loots must be of type function/ });
    await t.rejects(served({ hashes: loots }), { code: 'MISCONFIGURED', field: 'more.hashes' });
});
