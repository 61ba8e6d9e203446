import { randomUUID } from 'node:crypto';
import Hapi, { type Server } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys, memoryInventory, memoryRecords } from '../../adapters/memory/index.ts';
import { apiKeyDigest, newApiKey } from '../../lib/keys/key-form.ts';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import type { ApiKeyStore, StoredApiKey } from '../../lib/keys/store.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as restApi } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';

/*
 * A key that was made for one thing read whatever there was, the whole inventory included.
 */

const HOST = '/rest_api/v2/workspaces/1/hosts/1';
const PATHS = [
    '/rest_api/v2/base',
    '/rest_api/v2/workspaces',
    '/rest_api/v2/workspaces/1',
    '/rest_api/v2/workspaces/1/hosts',
    HOST,
    `${HOST}/services`,
    `${HOST}/notes`,
    `${HOST}/sessions`,
    `${HOST}/services/1/vulns`,
    '/rest_api/v2/unknown',
];
const OTHERS: readonly ApiKeyScope[] = ['secrets:read', 'records:read', 'records:write', 'deliveries:read', 'events:publish', 'admin'];

async function served(store: ApiKeyStore): Promise<Server> {
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store, revealable: false } });
    await server.register({ plugin: restApi, options: { store: memoryInventory(), license: { valid: async () => true } } });
    await server.register({ plugin: httpsRecordSchema, options: { records: memoryRecords(), auth: 'token' } });
    server.route({
        method: 'GET',
        path: '/own',
        options: { auth: { strategy: 'token', scope: ['+admin', '!records:write'] } },
        handler: () => 1,
    });
    return server;
}

async function answer(server: Server, url: string, token: string): Promise<{ status: number; body: string }> {
    const { statusCode, payload } = await server.inject({ url, headers: { token } });
    return { status: statusCode, body: payload };
}

/** Puts a key into the store as its row says, whatever that is. */
async function planted(store: ApiKeyStore, row: object): Promise<string> {
    const key = newApiKey();
    const times = { createdAt: new Date(0), lastUsedAt: null, revokedAt: null, workspaces: null, expiresAt: null };
    const stored = { id: randomUUID(), name: 'planted', digest: apiKeyDigest(key), start: 'scw_', sealed: null, ...times, ...row };
    await store.insert(stored as StoredApiKey);
    return key;
}

t.test('answers a key without inventory:read as one that is unknown, on every route of the REST API', async (t) => {
    const server = await served(memoryApiKeys());
    const { key } = await server.plugins['token-auth'].create('others', { scopes: OTHERS });
    for (const path of PATHS) {
        t.equal((await answer(server, path, key)).status, 403, path);
        t.strictSame(await answer(server, path, key), await answer(server, path, newApiKey()), path);
    }
});

t.test('lets a key read, check and store records only with the scope for it', async (t) => {
    const server = await served(memoryApiKeys());
    const { create } = server.plugins['token-auth'];
    const routes = [
        ['GET', '/records', 'records:read', 200],
        ['GET', '/records/1', 'records:read', 404],
        ['POST', '/check', 'records:write', 200],
        ['POST', '/records', 'records:write', 200],
    ] as const;
    for (const [method, path, scope, status] of routes) {
        const asked = async (scopes: readonly ApiKeyScope[]): Promise<number> => {
            const { key } = await create('a', { scopes });
            const headers = { token: key, 'content-type': 'application/x-ndjson' };
            return (
                await server.inject({ method, url: `/https-record-schema${path}`, headers, ...(method === 'POST' && { payload: '\n' }) })
            ).statusCode;
        };
        t.equal(await asked([scope]), status, `${method} ${path}`);
        t.equal(
            await asked((['inventory:read', ...OTHERS] as const).filter((other) => other !== scope)),
            403,
            `${method} ${path} with all others`,
        );
    }
});

t.test('gives a new key inventory:read and nothing else', async (t) => {
    const server = await served(memoryApiKeys());
    const { key } = await server.plugins['token-auth'].create('default');
    t.equal((await answer(server, '/rest_api/v2/workspaces', key)).status, 200);
    t.equal((await answer(server, '/own', key)).status, 403);
});

t.test("serves the scope rules of hapi on the host's own routes", async (t) => {
    const server = await served(memoryApiKeys());
    const { create } = server.plugins['token-auth'];
    t.equal((await answer(server, '/own', (await create('admin', { scopes: ['admin'] })).key)).status, 200);
    const both = await create('both', { scopes: ['admin', 'records:write'] });
    t.equal((await answer(server, '/own', both.key)).status, 403);
});

t.test('takes nothing from scopes that a store made up', async (t) => {
    const store = memoryApiKeys();
    const server = await served(store);
    for (const scopes of [null, '', 'inventory:read admin', { includes: 1 }, 7, [], ['*'], ['INVENTORY:READ'], [['inventory:read']]]) {
        const key = await planted(store, { scopes });
        t.equal((await answer(server, '/rest_api/v2/workspaces', key)).status, 403, JSON.stringify(scopes));
        t.equal((await answer(server, '/own', key)).status, 403, JSON.stringify(scopes));
    }
});

t.test('leaves the keys of a store without scopes what they had, and never gives them more', async (t) => {
    const { keepsScopes: _, ...store } = memoryApiKeys();
    const server = await served(store);
    const key = await planted(store, {});
    t.equal((await answer(server, '/rest_api/v2/workspaces', key)).status, 200);
    t.equal((await answer(server, '/own', key)).status, 403);
    const narrow = server.plugins['token-auth'].create('narrow', { scopes: ['records:read'] });
    await t.rejects(narrow, { code: 'MISCONFIGURED', field: 'scopes' });
});

t.test('refuses scopes that do not exist, and none at all', async (t) => {
    const { create } = (await served(memoryApiKeys())).plugins['token-auth'];
    for (const scopes of [['inventory:write'], [], ['admin', 'admin'], 'admin']) {
        await t.rejects(create('wrong', { scopes: scopes as ApiKeyScope[] }), { code: 'INVALID_INPUT', message: /scopes/ });
    }
});
