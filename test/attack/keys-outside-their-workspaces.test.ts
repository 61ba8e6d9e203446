import { randomUUID } from 'node:crypto';
import Hapi, { type Server } from '@hapi/hapi';
import Joi from 'joi';
import t from 'tap';
import { memoryApiKeys, memoryInventory, memoryRecords } from '../../adapters/memory/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { apiKeyDigest, newApiKey } from '../../lib/keys/key-form.ts';
import type { ApiKeyStore, StoredApiKey } from '../../lib/keys/store.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as restApi } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';

/*
 * A key that was made for one workspace read every other.
 */

interface Row {
    readonly id: number;
}

async function* hosts(): AsyncGenerator<HostInput> {
    yield { address: '10.0.0.1', services: [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: null }] };
}

/** Beside the default workspace two, each with a host that has a service, and campaigns of the application's own, in a workspace and in none. */
async function served(store: ApiKeyStore = memoryApiKeys()): Promise<Server> {
    const inventory = memoryInventory();
    for (const name of ['one', 'two']) {
        await inventory.importHosts(name, hosts());
    }

    const rows = {
        async *list() {
            yield [{ id: 1 }];
        },
        get: async () => ({ id: 1 }),
    };
    const resources = ['/campaigns', '/workspaces/{workspace_id}/campaigns', '/workspacesque'].map((path) => ({
        path,
        schema: Joi.object({ id: Joi.number() }),
        store: rows,
    }));
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store, revealable: false } });
    await server.register({ plugin: restApi, options: { store: inventory, license: { valid: async () => true }, resources } });
    await server.register({ plugin: httpsRecordSchema, options: { records: memoryRecords(), auth: 'token' } });
    return server;
}

/** What an answer says, without what differs between any two. */
async function answer(server: Server, path: string, token: string): Promise<{ status: number; body: string }> {
    const { statusCode, payload } = await server.inject({ url: `/rest_api/v2${path}`, headers: { token } });
    return { status: statusCode, body: payload };
}

async function rowsAt(server: Server, path: string, token: string): Promise<readonly Row[]> {
    return JSON.parse((await answer(server, path, token)).body);
}

/** Every path below a workspace, and every form of an id: known ones, unknown ones and such as are none. */
function pathsBelow(workspace: string, hostId: number): readonly string[] {
    const host = `/workspaces/${workspace}/hosts/${hostId}`;
    const ends = ['hosts', `hosts/${hostId}`, 'services', 'services/2', 'notes', 'sessions/1', 'vulns', 'campaigns', 'campaigns/1'].map(
        (end) => `/workspaces/${workspace}/${end}`,
    );
    const parts = [
        'services',
        'services/1',
        'services/2',
        'notes',
        'notes/1',
        'sessions',
        'sessions/1',
        'services/2/vulns',
        'services/2/vulns/1',
    ];
    const paths = [`/workspaces/${workspace}`, ...ends, ...parts.map((part) => `${host}/${part}`)];
    return paths.flatMap((path) => [path, `${path}/`, `${path}?workspace_id=1`]);
}

t.test('answers a key of one workspace for all of another as for one that does not exist', async (t) => {
    const server = await served();
    const { create } = server.plugins['token-auth'];
    const [one, two] = (await rowsAt(server, '/workspaces', (await create('all')).key)).slice(-2);
    const [host] = await rowsAt(server, `/workspaces/${two?.id}/hosts`, (await create('all')).key);
    const { key } = await create('one', { workspaces: [one?.id ?? 0] });
    const hostId = host?.id ?? 0;
    for (const id of [
        `${two?.id}`,
        `0${two?.id}`,
        `0${one?.id}`,
        `+${one?.id}`,
        `${one?.id}.0`,
        `${one?.id},${two?.id}`,
        '%31%00',
        '-1',
        '1e0',
        '2147483648',
    ]) {
        for (const path of pathsBelow(id, hostId)) {
            const unknown = path.replace(`/workspaces/${id}`, '/workspaces/999');
            t.equal((await answer(server, path, key)).status, 404, path);
            t.strictSame(await answer(server, path, key), await answer(server, unknown, key), path);
        }
    }

    t.equal((await answer(server, `/workspaces/${one?.id}/hosts/${hostId}`, key)).status, 404, 'below another workspace');
});

t.test('shows a key its own workspaces in the index, and all below them', async (t) => {
    const server = await served();
    const { create } = server.plugins['token-auth'];
    const [one, two] = (await rowsAt(server, '/workspaces', (await create('all')).key)).slice(-2);
    const { key } = await create('one', { workspaces: [one?.id ?? 0, 999] });
    t.match(await rowsAt(server, '/workspaces', key), [one]);
    t.equal((await rowsAt(server, '/workspaces', key)).length, 1);
    t.match(await rowsAt(server, `/workspaces/${one?.id}/hosts`, key), [{ workspace_id: one?.id }]);
    t.equal((await answer(server, `/workspaces/${one?.id}/campaigns/1`, key)).status, 200);
    t.equal((await answer(server, '/base', key)).status, 200);

    const both = await create('both', { workspaces: [two?.id ?? 0, one?.id ?? 0] });
    t.strictSame(await rowsAt(server, '/workspaces', both.key), [one, two]);
    t.strictSame(await rowsAt(server, '/workspaces?limit=1', both.key), [one]);
    t.strictSame(await rowsAt(server, `/workspaces?limit=1&after=${one?.id}`, both.key), [two]);
    const counted = { url: '/rest_api/v2/workspaces?limit=1', headers: { token: both.key, prefer: 'count=exact' } };
    t.match((await server.inject(counted)).headers, { 'x-total-count': '2', link: /rel="next"/ });
    t.equal((await answer(server, '/workspaces', (await create('none yet', { workspaces: [999] })).key)).body, '[]');
});

t.test('lets a key of one workspace into nothing that is in none', async (t) => {
    const server = await served();
    const { key } = await server.plugins['token-auth'].create('one', {
        workspaces: [1],
        scopes: ['inventory:read', 'records:read', 'records:write'],
    });
    for (const path of ['/campaigns', '/campaigns/1', '/workspacesque', '/workspacesque/1']) {
        t.equal((await answer(server, path, key)).status, 404, path);
    }

    for (const [method, url] of [
        ['GET', '/records'],
        ['GET', '/records/1'],
        ['POST', '/records'],
    ] as const) {
        const headers = { token: key, 'content-type': 'application/x-ndjson' };
        const options = { method, url: `/https-record-schema${url}`, headers, ...(method === 'POST' && { payload: '\n' }) };
        t.equal((await server.inject(options)).statusCode, 403, `${method} ${url}`);
    }
});

t.test('shows nothing for workspaces that a store made up', async (t) => {
    const store = memoryApiKeys();
    const server = await served(store);
    for (const workspaces of ['1', 1, { 0: 1 }, ['1'], [[1]], [null], [1.5]]) {
        const key = newApiKey();
        const times = { createdAt: new Date(0), lastUsedAt: null, revokedAt: null };
        const row = { id: randomUUID(), name: 'planted', digest: apiKeyDigest(key), start: 'scw_', sealed: null, ...times, workspaces };
        await store.insert({ expiresAt: null, ...row, scopes: ['inventory:read'] } as unknown as StoredApiKey);
        t.equal((await answer(server, '/workspaces', key)).body, '[]', JSON.stringify(workspaces));
        t.equal((await answer(server, '/workspaces/1/hosts', key)).status, 404, JSON.stringify(workspaces));
    }
});

t.test('answers a key at its end, by the time of the store, as one that is unknown', async (t) => {
    let now = new Date('2026-01-01T00:00:00Z');
    const server = await served(memoryApiKeys({ clock: () => now }));
    const { create, list } = server.plugins['token-auth'];
    const expiresAt = new Date('2099-01-01T00:00:00Z');
    const { key } = await create('ending', { expiresAt });
    now = new Date(expiresAt.getTime() - 1);
    t.equal((await answer(server, '/workspaces', key)).status, 200);
    t.match(await list(), [{ expiresAt, expired: false }]);

    // The process's own clock is seventy years behind.
    now = expiresAt;
    t.strictSame(await answer(server, '/workspaces', key), await answer(server, '/workspaces', newApiKey()));
    t.match(await list(), [{ expiresAt, expired: true, revokedAt: null }]);
});

t.test('refuses a key whose end the store keeps and tells nothing of', async (t) => {
    const store = memoryApiKeys();
    const server = await served({
        ...store,
        async findByDigest(digest) {
            const { expired: _, ...rest } = (await store.findByDigest(digest)) as StoredApiKey;
            return rest;
        },
    });
    const { key } = await server.plugins['token-auth'].create('ending', { expiresAt: new Date('2099-01-01') });
    t.equal((await answer(server, '/workspaces', key)).status, 403);
});

t.test('makes no key with limits that are wrong, or that its store would drop', async (t) => {
    const { create } = (await served()).plugins['token-auth'];
    for (const workspaces of [[], [0], [-1], [1, 1], ['x'], [2_147_483_648], 'all']) {
        await t.rejects(create('wrong', { workspaces: workspaces as number[] }), { code: 'INVALID_INPUT', message: /workspaces/ });
    }

    for (const expiresAt of [new Date(0), new Date(Number.NaN), 'tomorrow' as unknown as Date]) {
        await t.rejects(create('wrong', { expiresAt }), { code: 'INVALID_INPUT', message: /expiresAt/ });
    }

    const { keepsLimits: _, ...store } = memoryApiKeys();
    const { create: createUnlimited } = (await served(store)).plugins['token-auth'];
    await t.rejects(createUnlimited('a', { workspaces: [1] }), { code: 'MISCONFIGURED', field: 'workspaces' });
    await t.rejects(createUnlimited('a', { expiresAt: new Date('2099-01-01') }), { code: 'MISCONFIGURED', field: 'expiresAt' });
});
