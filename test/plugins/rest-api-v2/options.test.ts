import Hapi from '@hapi/hapi';
import Joi from 'joi';
import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { plugin, type RestApiV2Options } from '../../../plugins/rest-api-v2/index.ts';
import { served } from './served.ts';

interface Campaign {
    readonly id: number;
    readonly [field: string]: unknown;
}

const campaignSchema = Joi.object({
    name: Joi.string(),
    id: Joi.number(),
    started_at: Joi.date(),
    ended_at: Joi.date().allow(null),
    score: Joi.number(),
    active: Joi.boolean(),
    owner: Joi.string().allow(null),
    tags: Joi.array(),
    settings: Joi.object(),
    level: Joi.string().default('low'),
});

function rows(all: readonly Campaign[]) {
    return {
        async *list() {
            yield all;
        },
        get: async (_path: readonly number[], id: number) => all.find((row) => row.id === id) ?? null,
    };
}

async function register(options: unknown) {
    const server = Hapi.server();
    server.auth.scheme('open', () => ({ authenticate: (_request, h) => h.authenticated({ credentials: {} }) }));
    server.auth.strategy('token', 'open');
    await server.register({ plugin, options: options as RestApiV2Options });
    return server;
}

t.test('gives a resource of the host an index and a show route with the same rules', async (t) => {
    const full = {
        id: 1,
        name: 'a',
        started_at: new Date('2026-11-21T09:30:00.5Z'),
        ended_at: '2026-11-22T00:00:00+01:00',
        score: 1.5,
        active: true,
        owner: 'x',
        tags: ['t'],
        settings: { a: 1 },
        level: 'high',
    };
    const resources = [
        { path: '/workspaces/{workspace_id}/campaigns', schema: campaignSchema, store: rows([full, { id: 2, secret: 'hidden' }]) },
        { path: '/workspaces/{wid}/campaigns/{cid}/runs', schema: Joi.object({ id: Joi.number() }), store: rows([]) },
        { path: '/tags', schema: Joi.object({ id: Joi.number() }), store: rows([{ id: 7 }]) },
    ];
    const { get } = await served({ resources });
    const { body } = await get('/workspaces/1/campaigns');

    t.equal(
        body,
        '[{"name":"a","id":1,"started_at":"2026-11-21T09:30:00+00:00","ended_at":"2026-11-21T23:00:00+00:00","score":1.5,"active":true,"owner":"x","tags":["t"],"settings":{"a":1},"level":"high"},' +
            '{"name":"","id":2,"started_at":null,"ended_at":null,"score":0,"active":false,"owner":null,"tags":[],"settings":{},"level":"low"}]',
    );
    t.match(JSON.parse((await get('/workspaces/1/campaigns/1')).body), { id: 1 });
    t.equal((await get('/tags')).body, '[{"id":7}]');
    t.equal((await get('/workspaces/1/campaigns/1/runs')).body, '[]');
    for (const path of ['/workspaces/1/campaigns/3', '/workspaces/1/campaigns/3/runs', '/workspaces/1/campaigns/01', '/tags/8']) {
        t.equal((await get(path)).status, 404, path);
    }
    t.equal((await get('/workspaces/1/campaigns', { headers: {} })).status, 403);
});

t.test('keeps the rules of a host for stores that leave fields open', async (t) => {
    const { workspaces } = memoryInventory();
    const bare = { id: 1, address: '192.0.2.1', name: '', mac: null, state: null, created_at: new Date(Number.NaN) };
    const hosts = rows([bare]) as unknown as RestApiV2Options['store']['hosts'];
    const { get } = await served({ store: { workspaces, hosts } });

    t.match(JSON.parse((await get('/workspaces/1/hosts/1')).body), {
        workspace_id: 0,
        created_at: null,
        address: '192.0.2.1',
        mac: '',
        comm: null,
        name: '192.0.2.1',
        state: 'alive',
        note_count: 0,
    });
});

t.test('works with a store that is an instance of a class', async (t) => {
    class Store {
        readonly #inventory = memoryInventory();
        get workspaces() {
            return this.#inventory.workspaces;
        }
        get hosts() {
            return this.#inventory.hosts;
        }
    }
    const { get } = await served({ store: new Store() });

    t.equal((await get('/workspaces/1')).status, 200);
});

t.test('refuses options that cannot work, naming the field', async (t) => {
    const store = memoryInventory();
    const license = alwaysLicensed();
    const resource = { path: '/tags', schema: Joi.object({ id: Joi.number() }), store: rows([]) };
    const cases: [unknown, RegExp][] = [
        [undefined, /store is required/],
        [{ license }, /store is required/],
        [{ store: {}, license }, /store must have the collection workspaces with the functions list and get/],
        [{ store: { ...store, notes: {} }, license }, /store must have the collection notes/],
        [{ store }, /license is required/],
        [{ store, license: {} }, /license must have the function valid/],
        [{ store, license, timeZone: 'Mars/Olympus' }, /timeZone/],
        [{ store, license, colour: 1 }, /colour is not allowed/],
        [{ store, license, resources: [{ ...resource, path: 'tags' }] }, /resources\[0\]\.path must look like/],
        [{ store, license, resources: [{ ...resource, path: '/hosts/{id}/tags' }] }, /\/hosts\/\{id\}\/tags is below no known resource/],
        [{ store, license, resources: [resource, resource] }, /resources\[1\]\.path \/tags is there twice/],
        [{ store, license, resources: [{ ...resource, path: '/workspaces/{x}/hosts' }] }, /resources\[0\]\.path .*hosts is there twice/],
        [{ store, license, resources: [{ ...resource, schema: {} }] }, /resources\[0\]\.schema/],
        [{ store, license, resources: [{ ...resource, schema: Joi.string() }] }, /resources\[0\]\.schema/],
        [{ store, license, resources: [{ ...resource, store: {} }] }, /resources\[0\]\.store must have the function list/],
    ];
    for (const [options, message] of cases) {
        await t.rejects(register(options), { name: 'ScanwireError', code: 'MISCONFIGURED', message });
    }
    await t.resolves(register({ store, license, resources: [resource] }));
});

t.test('refuses a strategy that nobody registered, and says which plugin brings it', async (t) => {
    const options = { store: memoryInventory(), license: alwaysLicensed() };
    const refusal = {
        code: 'MISCONFIGURED',
        field: 'auth',
        message: /auth must name a strategy of the server: register token-auth before/,
    };
    await t.rejects(register({ ...options, auth: 'session' }), refusal);
    await t.rejects(Hapi.server().register({ plugin, options }), refusal);
    await t.rejects(register({ ...options, auth: true }), { code: 'MISCONFIGURED', field: 'auth' });
});

t.test('works alone where somebody else has let the client in', async (t) => {
    const server = Hapi.server();
    await server.register({ plugin, options: { store: memoryInventory(), license: alwaysLicensed(), auth: false } });
    t.equal((await server.inject('/rest_api/v2/base')).statusCode, 200);
    t.equal((await server.inject('/rest_api/v2/workspaces/1e3')).statusCode, 404);
});
