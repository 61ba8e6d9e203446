import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import type { InventoryStore } from '../../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { plugin as metasploitData } from '../../../plugins/metasploit-data/index.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { AT, each, filled, https, served } from './data-service.ts';

t.test('answers what a client asks as it connects', async (t) => {
    const { ask } = await served();
    t.match(await ask('/msf/version'), { status: 200, body: { data: { metasploit_version: /^scanwire \d/ } } });
    t.same((await ask('/health')).body, { data: { status: 'UP' } });
    const { body, headers } = await ask('/workspaces?name=default');
    t.same(body, {
        data: [
            {
                id: 1,
                name: 'default',
                boundary: null,
                description: null,
                owner_id: null,
                limit_to_network: false,
                created_at: AT,
                updated_at: AT,
                import_fingerprint: false,
            },
        ],
    });
    t.match(headers, { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    t.same((await ask('/workspaces')).body.data.length, 2);
    t.same((await ask('/workspaces?name=nobody')).body, { data: [] });
    t.same((await ask('/events', { method: 'POST', payload: { name: 'ui_command', exec_async: true } })).body, { data: '' });
});

type Found = { id: number; host?: { address: string } | null };

t.test('lists rows with what belongs to them, by workspace, address, text and state', async (t) => {
    const { ask } = await served();
    const ids = async (path: string) => (await ask(path)).body.data.map(({ id }: Found) => id);
    const expected: readonly (readonly [path: string, ids: readonly number[]])[] = [
        ['/hosts', [1, 2, 3]],
        ['/hosts?workspace=default', [1, 2, 3]],
        ['/hosts?workspace=lab', [4]],
        ['/hosts?workspace=default&non_dead=true', [1, 3]],
        ['/hosts?non_dead=false', [1, 2, 3]],
        ['/hosts?non_dead=', [1, 2, 3]],
        ['/hosts?non_dead=True', [1, 3]],
        ['/hosts?address=192.0.2.2', [2]],
        ['/hosts?address=192.0.2.0/24', [1, 2]],
        ['/hosts?address=192.0.2.2,198.51.100.7', [2, 3]],
        ['/hosts?search_term=LINUX', [1]],
        ['/hosts?search_term=', [1, 2, 3]],
        ['/hosts?address=192.0.2.0/24&non_dead=true&search_term=web', [1]],
        ['/services', [1, 2, 3]],
        ['/services?workspace=lab', [4]],
        ['/services?address=198.51.100.7', [3]],
        ['/services?address=192.0.2.2', []],
        ['/services?search_term=nginx', [1, 3]],
        ['/services?search_term=UDP', [2]],
        ['/vulns?search_term=0160', [1]],
        ['/notes?search_term=HOST.os', [1]],
        ['/notes?search_term=linux', [1]],
        ['/notes?search_term=nested', [1]],
        ['/notes?search_term=1', [1]],
        ['/notes?search_term=windows', []],
        ['/sessions?search_term=SHELL', [1]],
        ['/sessions?search_term=multi/handler', [1]],
        ['/sessions?search_term=root', [1]],
        ['/sessions?search_term=4444', [1]],
        ['/sessions?search_term=2026', []],
        ['/vulns', [1, 2]],
        ['/vulns?address=192.0.2.1', [1]],
        ['/notes', [1, 2]],
        ['/notes?workspace=lab', []],
        ['/sessions', [1]],
        ['/loots', []],
        ['/credentials', []],
        ['/logins', []],
    ];
    for (const [path, all] of expected) {
        t.same(await ids(path), all, path);
    }
    for (const list of ['services', 'vulns', 'notes', 'sessions']) {
        const { data } = (await ask(`/${list}`)).body;
        t.equal(data[0].host.address, '192.0.2.1', list);
        t.match(data[0].host, { created_at: AT, os_name: 'Linux', os_family: null });
        t.ok(!('nexpose_data_asset_id' in data[0].host || 'history_count' in data[0].host));
    }
});

t.test('shows vulnerabilities, notes and sessions in the columns that clients read', async (t) => {
    const { ask } = await served();
    const { data: vulns } = (await ask('/vulns')).body;
    t.match(vulns[0], { name: 'Heartbleed', refs: [{ id: 1, name: 'CVE-2014-0160' }], module_refs: [], origin_type: null, service_id: 1 });
    t.equal(vulns[0].refs.length, 1);
    t.same(vulns[1].refs, []);
    const [note] = (await ask('/notes')).body.data;
    t.match(note, { ntype: 'host.os', data: { os: 'Linux', nested: [1] }, vuln_id: null, created_at: AT });
    const [session] = (await ask('/sessions')).body.data;
    t.match(session, { opened_at: AT, module_run_id: null, datastore: {} });
    t.notOk('campaign_id' in session);
});

t.test('shows one row as an object, and an empty list for none', async (t) => {
    const { ask } = await served();
    t.match((await ask('/hosts/3')).body, { data: { id: 3, address: '198.51.100.7' } });
    t.match((await ask('/services/4?workspace=lab')).body, { data: { id: 4, host: { address: '10.0.0.1' } } });
    t.match((await ask('/workspaces/2')).body, { data: { name: 'lab' } });
    t.match((await ask('/hosts/4')).body, { data: { id: 4, workspace_id: 2 } }, 'in whatever workspace');
    t.match((await ask('/services/4')).body, { data: { id: 4, host: { address: '10.0.0.1' } } });
    t.same((await ask('/hosts/4?workspace=default')).body, { data: [] });
    for (const path of ['/hosts/9', '/hosts/x', '/hosts/0', '/services/9', '/workspaces/9', '/loots/1', '/vulns/99999999999']) {
        t.same(await ask(path).then(({ status, body }) => [status, body]), [200, { data: [] }], path);
    }
});

t.test('takes undefined for no row, as stores of other makers give it', async (t) => {
    const store = await filled();
    const orUndefined = <Store extends { get(...path: never[]): Promise<unknown> }>(rows: Store): Store => ({
        ...rows,
        get: async (...path: never[]) => (await rows.get(...path)) ?? undefined,
    });
    const { hosts, workspaceServices, workspaceNotes, workspaceVulns, workspaceSessions } = store;
    const { list, get } = orUndefined(hosts);
    const others = {
        hosts: { list, get },
        workspaceServices: orUndefined(workspaceServices),
        workspaceNotes: orUndefined(workspaceNotes),
        workspaceVulns: orUndefined(workspaceVulns),
        workspaceSessions: orUndefined(workspaceSessions),
    };
    const { ask } = await served({ store: { ...store, ...others } as never });
    for (const path of [
        '/hosts/9',
        '/hosts/4?workspace=default',
        '/services/9',
        '/services/4?workspace=default',
        '/notes/9?address=192.0.2.1',
    ]) {
        t.same(await ask(path).then(({ status, body }) => [status, body]), [200, { data: [] }], path);
    }
    t.match((await ask('/hosts/4')).body, { data: { id: 4, workspace_id: 2 } });
    t.match((await ask('/services/4')).body, { data: { id: 4, host: { address: '10.0.0.1' } } });

    const gone = await served({ store: { ...store, hosts: { list, get: async () => undefined } } as never });
    t.match((await gone.ask('/services?address=198.51.100.7')).body, { data: [{ host: null }] }, 'a host that is removed meanwhile');
});

t.test('refuses in the form that clients read', async (t) => {
    const { ask, server, key } = await served();
    for (const path of ['/hosts', '/msf/version', '/nothing', '/events', '/json-rpc', '/%zz', '/hosts/%E0%A4%A?workspace=lab']) {
        for (const bearer of ['', 'wrong']) {
            const { status, body, headers } = await ask(path, { bearer });
            t.equal(status, 401, path);
            t.match(body, { error: { code: 401, message: /key in the header Authorization: Bearer$/ } });
            t.equal(headers['www-authenticate'], 'Bearer');
        }
    }
    for (const path of ['/nothing', '/%zz', '/hosts/%E0%A4%A?workspace=lab']) {
        const { status, body } = await ask(path);
        t.same([status, body], [404, { error: { code: 404, message: 'There is nothing at this path of the data service' } }], path);
    }
    t.match(await ask('/hosts?workspace=nobody'), { status: 404, body: { error: { code: 404, message: 'Unknown workspace "nobody"' } } });
    t.match(await ask('/services?workspace=nobody'), { status: 404 });
    t.match(await ask('/hosts?address=x'), { status: 400, body: { error: { message: /^address must be an IP address/ } } });
    const many = (count: number) => Array.from({ length: count }, () => '::').join();
    const tooMany = { error: { code: 400, message: 'address must contain less than or equal to 1000 items' } };
    t.match(await ask(`/hosts?address=${many(1000)}`), { status: 200 });
    t.match(await ask(`/hosts?address=${many(1001)}`), { status: 400, body: tooMany });
    t.match(await ask(`/services?address=${many(2000)}`), { status: 400, body: tooMany });
    t.match(await ask('/hosts?non_dead=x'), { status: 400, body: { error: { message: 'non_dead must be true or false' } } });
    t.match(await ask('/hosts?id=1'), { status: 400, body: { error: { message: /belongs into the path/ } } });
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        for (const path of ['/hosts', '/hosts/1', '/db-import', '/nothing']) {
            const { status, body, headers } = await ask(path, { method, payload: { host: 'x'.repeat(2_000_000) } });
            t.same([status, headers.allow], [405, 'GET, HEAD'], `${method} ${path}`);
            t.match(body, { error: { code: 405, message: /read-only/ } });
            t.equal((await ask(path, { method, bearer: '' })).status, 401);
        }
    }
    t.equal((await server.inject(`/api/v1/hosts?token=${key}`)).statusCode, 401, 'a key in the query lands in logs');
    t.equal((await server.inject({ method: 'HEAD', url: '/api/v1/hosts', headers: { authorization: `bearer ${key}` } })).statusCode, 200);
});

t.test('answers a malformed path in its own form beside rest-api-v2, whichever comes first', async (t) => {
    const { server, key } = await served();
    const options = { store: await filled(), license: alwaysLicensed() };
    await server.register([
        { plugin: restApiV2, options },
        { plugin: metasploitData, options: { ...options, instance: 'b' }, routes: { prefix: '/b' } },
    ]);
    for (const [path, body, status, without] of [
        ['/api/v1/%zz', { error: { code: 404 } }, 404, 401],
        ['/b/api/v1/%zz', { error: { code: 404 } }, 404, 401],
        ['/rest_api/v2/%zz', { statusCode: 404, message: 'Not Found' }, 404, 403],
        ['/c/%zz', { statusCode: 404 }, 404, 404],
    ] as const) {
        const known = await server.inject({ url: path, headers: { token: key } });
        t.equal(known.statusCode, status, path);
        t.match(JSON.parse(known.payload), body);
        t.equal((await server.inject(path)).statusCode, without);
    }
});

t.test('takes a key from the query where that is wanted', async (t) => {
    const { server, key } = await served({ queryToken: true });
    t.equal((await server.inject(`/api/v1/hosts?token=${key}`)).statusCode, 200);
    t.equal((await server.inject('/api/v1/hosts?token=wrong')).statusCode, 401);
    t.equal((await server.inject('/api/v1/hosts')).statusCode, 401);
});

t.test('holds to scopes, workspaces and licence', async (t) => {
    let valid = true;
    const { ask, create, rpc } = await served({ license: { valid: async () => valid } });
    const { key: other } = await create('publisher', { scopes: ['events:publish'] });
    t.equal((await ask('/hosts', { bearer: other })).status, 401);
    const { key: limited } = await create('lab', { workspaces: [2] });
    t.same(
        (await ask('/workspaces', { bearer: limited })).body.data.map(({ name }: { name: string }) => name),
        ['lab'],
    );
    t.equal((await ask('/hosts', { bearer: limited })).status, 404);
    t.equal((await ask('/hosts?workspace=lab', { bearer: limited })).body.data.length, 1);
    for (const path of ['/workspaces/1', '/hosts/1', '/services/1', '/vulns/1', '/notes/1', '/sessions/1']) {
        t.same((await ask(path, { bearer: limited })).body, { data: [] }, path);
    }
    t.match((await ask('/hosts/4', { bearer: limited })).body, { data: { address: '10.0.0.1' } });
    const call = { jsonrpc: '2.0', method: 'db.hosts', id: 1, params: [{ workspace: 'default' }] };
    t.match((await ask('/json-rpc', { method: 'POST', bearer: limited, payload: call })).body, { error: { code: 404 } });
    valid = false;
    t.equal((await ask('/hosts')).status, 401);
    t.equal((await rpc('db.hosts')).error.code, 401);
});

t.test('answers 503 while the store is down, and breaks off when it fails later', async (t) => {
    const store = await filled();
    const down = async function* (): AsyncIterable<never> {
        yield* [];
        throw new Error('down');
    };
    const hosts = { ...store.hosts, list: down };
    const { ask, rpc } = await served({ store: { ...store, hosts } as never });
    t.match(await ask('/hosts'), { status: 503, body: { error: { code: 503, message: /try again later/ } } });
    t.match(await ask('/hosts/1?address=192.0.2.1,192.0.2.2'), { status: 200 });
    t.equal((await rpc('db.hosts')).error.code, 503);
    const none = { ...hosts, get: () => Promise.reject(new Error('down')) };
    const single = await served({ store: { ...store, hosts: none } as never });
    t.match(await single.ask('/hosts/1'), { status: 503, body: { error: { code: 503, message: /try again later/ } } });

    const late = async function* (path: readonly number[]): AsyncIterable<readonly object[]> {
        yield* store.workspaceServices.list(path);
        throw new Error('gone');
    };
    const workspaceServices = { ...store.workspaceServices, list: late };
    const { server, key } = await served({ store: { ...store, workspaceServices } as never });
    await server.start();
    t.after(() => server.stop());
    const request = httpRequest(`${server.info.uri}/api/v1/services`, { headers: { authorization: `Bearer ${key}` } }).end();
    const [response] = await once(request, 'response');
    response.resume();
    await t.rejects(once(response, 'end'), { code: 'ECONNRESET' });
});

t.test('reads the hosts of services from afar one by one, and of a store that selects nothing', async (t) => {
    const store = memoryInventory({ batchSize: 50 });
    const many = Array.from({ length: 60 }, (_, n) => ({
        address: `10.1.0.${n + 1}`,
        ...((n === 0 || n === 59) && { services: [https] }),
    }));
    await store.importHosts('default', each(many));
    const { list, get } = store.hosts;
    for (const hosts of [store.hosts, { list, get }]) {
        const { ask } = await served({ store: { ...store, hosts } as never });
        const { data } = (await ask('/services')).body;
        t.same(
            data.map(({ host }: Found) => host?.address),
            ['10.1.0.1', '10.1.0.60'],
        );
        t.same((await ask('/hosts?address=10.1.0.60')).body.data.length, 1);
    }
    const gone: InventoryStore['hosts'] = { ...store.hosts, get: async () => null };
    const { ask } = await served({ store: { ...store, hosts: gone } as never });
    t.same(
        (await ask('/services')).body.data.map(({ host }: Found) => host),
        [null, null],
        'a host that is removed meanwhile',
    );
});

t.test('refuses options that cannot work', async (t) => {
    const store = await filled();
    const { workspaceNotes: _, ...less } = store;
    await t.rejects(served({ store: less as never }), { code: 'MISCONFIGURED', message: /store must have the collection workspaceNotes/ });
    await t.rejects(served({ auth: 'nobody' }), { code: 'MISCONFIGURED', field: 'auth' });
    const open = await served({ auth: false });
    t.equal((await open.ask('/hosts', { bearer: '' })).status, 200);
});
