import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { served } from './served.ts';

const NOW = new Date('2026-11-21T09:30:00.999Z');
const https = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null } as const;

const HOST_FIELDS =
    'id workspace_id created_at updated_at address mac comm name state os_name os_flavor os_sp os_lang arch purpose info comments ' +
    'scope virtual_host note_count vuln_count service_count host_detail_count exploit_attempt_count cred_count ' +
    'nexpose_data_asset_id history_count detected_arch';

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

async function filled() {
    const store = memoryInventory({ clock: () => NOW, batchSize: 2 });
    const hosts: HostInput[] = [1, 2, 3, 4, 5].map((last) => ({ address: `192.0.2.${last}`, services: [https] }));
    await store.importHosts('default', each(hosts));
    await store.ensureWorkspace('empty');
    await store.addNote(1, { ntype: 'note', data: { text: '🗒' } });
    await store.addSession(1, { stype: 'shell' });
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    return store;
}

t.test('shows workspaces as the specification has them', async (t) => {
    const { get } = await served({ store: await filled() });
    const { status, type, body, headers } = await get('/workspaces');

    t.equal(status, 200);
    t.equal(type, 'application/json; charset=utf-8');
    t.equal(headers['cache-control'], 'no-store');
    const at = '2026-11-21T09:30:00+00:00';
    t.equal(
        body,
        `[{"id":1,"name":"default","boundary":null,"description":null,"owner_id":null,"limit_to_network":false,"created_at":"${at}","updated_at":"${at}"},` +
            `{"id":2,"name":"empty","boundary":null,"description":null,"owner_id":null,"limit_to_network":false,"created_at":"${at}","updated_at":"${at}"}]`,
    );
    t.equal((await get('/workspaces/2')).body, `${body.slice(body.indexOf(',{') + 1, -1)}`);
});

t.test('lists all hosts in ascending id, with every field in order', async (t) => {
    const { get } = await served({ store: await filled() });
    const { status, body } = await get('/workspaces/1/hosts');
    const hosts = JSON.parse(body);

    t.equal(status, 200);
    t.same(
        hosts.map(({ id }: { id: number }) => id),
        [1, 2, 3, 4, 5],
    );
    t.same(Object.keys(hosts[0]), HOST_FIELDS.split(' '));
    t.match(hosts[0], { address: '192.0.2.1', name: '192.0.2.1', mac: '', comm: null, state: 'alive', service_count: 1, note_count: 1 });
    const { status: shown, type, body: text } = await get('/workspaces/1/hosts/3');
    t.equal(shown, 200);
    t.equal(type, 'application/json; charset=utf-8');
    t.equal(text, JSON.stringify(hosts[2]));
});

t.test('answers an index without rows with an empty array', async (t) => {
    const { get } = await served({ store: await filled() });

    t.equal((await get('/workspaces/2/hosts')).body, '[]');
    t.equal((await get('/workspaces/1/hosts/2/notes')).body, '[]');
});

t.test('shows services, notes, sessions and vulnerabilities below their parents', async (t) => {
    const { get } = await served({ store: await filled() });
    const fields: Record<string, string> = {
        '/services': 'id host_id created_at updated_at port proto state name info',
        '/notes': 'id workspace_id host_id service_id created_at updated_at ntype data critical seen',
        '/sessions':
            'id host_id stype via_exploit via_payload desc port platform datastore opened_at closed_at close_reason local_id last_seen campaign_id',
        '/services/1/vulns':
            'id host_id service_id created_at updated_at name info exploited_at vuln_detail_count vuln_attempt_count nexpose_data_vuln_def_id',
    };
    for (const [path, names] of Object.entries(fields)) {
        const [row] = JSON.parse((await get(`/workspaces/1/hosts/1${path}`)).body);
        t.same(Object.keys(row), names.split(' '), path);
        t.same(JSON.parse((await get(`/workspaces/1/hosts/1${path}/1`)).body), row);
        for (const wrong of [`/workspaces/1/hosts/2${path}/1`, `/workspaces/2/hosts/1${path}/1`, `/workspaces/2/hosts/1${path}`]) {
            t.equal((await get(wrong)).status, 404, wrong);
        }
    }
});

t.test('shows what is below all hosts of a workspace in one index', async (t) => {
    const store = await filled();
    const { get } = await served({ store });
    const ids = async (path: string) => JSON.parse((await get(path)).body).map(({ id }: { id: number }) => id);
    const below: readonly (readonly [name: string, first: string, ids: readonly number[]])[] = [
        ['services', '/hosts/1/services/1', [1, 2, 3, 4, 5]],
        ['notes', '/hosts/1/notes/1', [1]],
        ['sessions', '/hosts/1/sessions/1', [1]],
        ['vulns', '/hosts/1/services/1/vulns/1', [1]],
    ];
    for (const [name, first, all] of below) {
        const index = `/workspaces/1/${name}`;
        t.same(await ids(index), all, name);
        t.equal((await get(`${index}/1`)).body, (await get(`/workspaces/1${first}`)).body, 'a row is the same wherever it is shown');
        t.equal((await get(`/workspaces/2/${name}`)).body, '[]');
        for (const unknown of [`/workspaces/2/${name}/1`, `/workspaces/9/${name}`, `${index}/9`, `${index}/x`]) {
            t.equal((await get(unknown)).status, 404, unknown);
        }
    }
    t.same(await ids('/workspaces/1/services?state=open&limit=2&after=2'), [3, 4]);
    t.equal((await get('/workspaces/1/services?limit=2')).headers.link, '</rest_api/v2/workspaces/1/services?limit=2&after=2>; rel="next"');
    t.same(await ids('/workspaces/1/vulns?search=cve'), [1]);
    t.equal((await get('/workspaces/1/vulns?fields=id,name')).body, '[{"id":1,"name":"CVE-2026-0001"}]');
});

t.test('has no routes for what the store lacks', async (t) => {
    const { workspaces, hosts } = await filled();
    const { get } = await served({ store: { workspaces, hosts } });

    t.equal((await get('/workspaces/1/hosts/1')).status, 200);
    t.equal((await get('/workspaces/1/hosts/1/services')).status, 404);
    t.equal((await get('/workspaces/1/services')).status, 404);
});

t.test('answers 404 for what does not exist', async (t) => {
    const { get } = await served({ store: await filled() });
    const unknown = ['', '/', '/nothing', '/workspaces/9', '/workspaces/9/hosts', '/workspaces/2/hosts/1', '/workspaces/1/hosts/9'];
    const badIds = ['1e3', '-1', '+1', '01', '1.0', '0x1', '%201', '2147483648', '99999999999', '9'.repeat(400), 'NaN', '१', '1;', '1%2F'];
    for (const path of [
        ...unknown,
        ...badIds.flatMap((id) => [`/workspaces/${id}`, `/workspaces/${id}/hosts`, `/workspaces/1/hosts/${id}`]),
    ]) {
        const { status, body } = await get(path);
        t.equal(status, 404, path);
        t.equal(body, '{"statusCode":404,"error":"Not Found","message":"Not Found"}', path);
    }
    t.equal((await get('/workspaces/2147483647')).status, 404);
    t.equal((await get('/workspaces/0')).status, 404);
});

t.test('knows no other methods', async (t) => {
    const { get } = await served();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        t.equal((await get('/workspaces', { method })).status, 404, method);
        t.equal((await get('/workspaces', { method, headers: {} })).status, 403, method);
    }
});

t.test('does not look at the body of a request to no route', async (t) => {
    const { server, headers } = await served();
    const post = (more: object, payload: string) =>
        server.inject({ method: 'POST', url: '/rest_api/v2/workspaces', headers: { ...headers, ...more }, payload });
    t.equal((await post({}, 'x'.repeat(2_000_000))).statusCode, 404);
    t.equal((await post({ 'content-type': ';;' }, 'x')).statusCode, 404);
    t.equal((await post({ 'content-type': 'application/json', 'content-encoding': 'gzip' }, 'x')).statusCode, 404);
});

t.test('refuses before it says what exists', async (t) => {
    const { get } = await served({ store: await filled() });
    const paths = [
        '',
        '/base',
        '/nothing',
        '/workspaces',
        '/workspaces/1',
        '/workspaces/1e3',
        '/workspaces/9/hosts',
        '/workspaces/1/hosts/1/',
    ];
    const bodies = new Set<string>();
    for (const path of paths) {
        for (const headers of [{}, { token: 'wrong' }, { authorization: 'Bearer x' }]) {
            const { status, body } = await get(path, { headers });
            t.equal(status, 403, path);
            bodies.add(body);
        }
    }
    t.equal(bodies.size, 1);
});

t.test('does as if the key were wrong while the licence is not valid', async (t) => {
    let valid = false;
    const { get } = await served({ store: await filled(), license: { valid: () => valid } });
    const wrongKey = await get('/base', { headers: { token: 'wrong' } });
    for (const path of ['/base', '/workspaces', '/workspaces/1/hosts/1', '/nothing', '/workspaces/9']) {
        t.strictSame(withoutDate(await get(path)), withoutDate(wrongKey), path);
    }
    valid = true;
    t.equal((await get('/base')).status, 200);
});

t.test('answers 503 when the licence cannot be read', async (t) => {
    const { get } = await served({ license: { valid: () => Promise.reject(new Error('disk /secret/path broke')) } });
    const { status, body } = await get('/base');

    t.equal(status, 503);
    t.notMatch(body, 'secret');
    t.equal((await get('/base', { headers: {} })).status, 403);
});

t.test('has a base route that says that the key is valid', async (t) => {
    const { get } = await served();
    const { status, type, body } = await get('/base');

    t.equal(status, 200);
    t.equal(type, 'text/html; charset=utf-8');
    t.match(body, /REST API v2 is reachable and the API key is valid/);
    t.notMatch(body, /\d\.\d/);
});

t.test('tolerates a trailing slash, unknown query keys and broken cookies', async (t) => {
    const { get, headers } = await served({ store: await filled() });
    for (const path of [
        '/base',
        '/workspaces',
        '/workspaces/1',
        '/workspaces/1/hosts',
        '/workspaces/1/hosts/1',
        '/workspaces/1/hosts/1/notes',
    ]) {
        const plain = await get(path);
        t.equal(plain.status, 200);
        t.equal((await get(`${path}/`)).body, plain.body);
        t.equal((await get(`${path}?page=1&token=x&__proto__=1`)).body, plain.body);
        t.equal((await get(path, { headers: { ...headers, cookie: 'a="' } })).body, plain.body);
    }
});

t.test('takes one trailing slash for none, of its own paths only', async (t) => {
    const { server, get, headers } = await served({ store: await filled() });
    for (const path of ['/rest_api/v2/own', '/rest_api/v2/workspaces/7/']) {
        server.route({ method: 'GET', path, handler: () => 'own' });
    }
    const [show, unknown] = await Promise.all([get('/workspaces/1'), get('/nothing')]);
    t.equal((await get('/workspaces/1/?fields=id')).body, show.body);
    for (const path of [
        '/workspaces//',
        '/workspaces/1//',
        '/workspaces//hosts',
        '/workspaces//hosts/',
        '/workspaces/1/hosts//',
        '/own/',
        '/nothing/',
    ]) {
        t.match(await get(path), { status: 404, body: unknown.body }, path);
    }
    t.match(await get('/workspaces/7/'), { status: 200, body: 'own' }, 'a route of the application');
    t.equal((await get('/workspaces/7')).status, 404);
    t.match(await get('/workspaces/1/', { method: 'POST', headers }), { status: 404, body: unknown.body });
    t.match((await get('/workspaces/1/hosts/?limit=1')).headers.link, /^<\/rest_api\/v2\/workspaces\/1\/hosts\/\?limit=1&after=1>/);
});

t.test('tolerates a trailing slash beside what an application has for whatever is not found', async (t) => {
    const { server, get, headers } = await served({ store: await filled() });
    server.route([
        { method: 'GET', path: '/{any*}', handler: () => 'page' },
        { method: 'POST', path: '/rest_api/v2/workspaces/{id}/', handler: ({ path }) => path },
    ]);
    for (const path of ['/base', '/openapi.json', '/workspaces', '/workspaces/1', '/workspaces/1/hosts']) {
        const { status, body } = await get(path);
        t.match(await get(`${path}/`), { status, body }, path);
        t.equal((await get(`${path}/`, { method: 'HEAD' })).status, 200, path);
        t.equal((await get(`${path}/`, { headers: {} })).status, 403, path);
    }
    t.equal((await get('/nothing/')).body, 'page');
    t.equal((await get('/workspaces/1/', { method: 'POST', headers })).body, '/rest_api/v2/workspaces/1/');
});

t.test('takes a path in any case where the server does', async (t) => {
    const { server, headers } = await served({}, { router: { isCaseSensitive: false } });
    const status = async (url: string) => (await server.inject({ url, headers })).statusCode;
    for (const path of ['/base', '/BASE', '/workspaces', '/Workspaces/1']) {
        t.equal(await status(`/REST_api/v2${path}`), 200, path);
        t.equal(await status(`/REST_api/v2${path}/`), 200, path);
    }
    t.equal((await server.inject('/REST_api/v2/%zz')).statusCode, 403);
});

t.test('works on a server that strips trailing slashes itself', async (t) => {
    const { get } = await served({}, { router: { stripTrailingSlash: true } });

    t.equal((await get('/workspaces/')).status, 200);
    for (const path of ['/workspaces//', '/workspaces/1//', '/base//']) {
        t.equal((await get(path)).status, 404, path);
    }
});

t.test('answers HEAD like GET, without a body', async (t) => {
    const { get } = await served({ store: await filled() });
    for (const path of ['/base', '/workspaces', '/workspaces/1/hosts/1', '/workspaces/9', '/workspaces/9/hosts']) {
        const [head, got] = [await get(path, { method: 'HEAD' }), await get(path)];
        t.equal(head.status, got.status, path);
        t.equal(head.type, got.type, path);
        t.equal(head.body, '');
    }
    t.equal((await get('/workspaces', { method: 'HEAD', headers: {} })).status, 403);
});

t.test('shows times with the offset of the time zone', async (t) => {
    const { get } = await served({ store: await filled(), timeZone: 'Asia/Kolkata' });

    t.equal(JSON.parse((await get('/workspaces/1')).body).created_at, '2026-11-21T15:00:00+05:30');
});

function withoutDate({ headers, ...answer }: Awaited<ReturnType<Awaited<ReturnType<typeof served>>['get']>>): object {
    const { date: _date, ...rest } = headers;
    return { ...answer, headers: rest };
}
