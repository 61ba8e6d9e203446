import Joi from 'joi';
import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { type Answer, served } from './served.ts';

/*
 * Requests and what they are answered with, written by hand. The hosts, with the time of their last change:
 * 1 192.0.2.1 (09:00), 2 192.0.2.2 (09:00), 3 198.51.100.7 (09:00), 4 2001:db8::1 (09:00), 5 10.0.0.1 (10:00); 2 again at 11:00.
 */

const HOSTS: readonly HostInput[] = [
    { address: '192.0.2.1', name: 'web', os_name: 'Linux', arch: 'x64', purpose: 'server', info: 'nginx 100%' },
    { address: '192.0.2.2', name: 'Web', os_name: 'Windows', state: 'down', comments: '=cmd|"calc"!A1' },
    { address: '198.51.100.7', name: 'köln', os_name: 'Linux', purpose: 'printer', comments: 'a,b\n"c"' },
    { address: '2001:db8::1', os_name: 'Linux', arch: 'armle' },
];
const NINE = '2026-11-21T09:00:00.000Z';
const TEN = '2026-11-21T10:00:00.000Z';
const ELEVEN = '2026-11-21T11:00:00.500Z';
const W = '/workspaces/1/hosts';

async function each(at: string, hosts: readonly HostInput[], { store, setTime }: Pick<Filled, 'store' | 'setTime'>): Promise<void> {
    setTime(at);
    await store.importHosts('default', list(hosts));
}

async function* list<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

type Filled = Awaited<ReturnType<typeof filled>>;

async function filled() {
    let now = new Date(NINE);
    const setTime = (at: string): void => {
        now = new Date(at);
    };
    const store = memoryInventory({ clock: () => now, batchSize: 2 });
    await each(NINE, HOSTS, { store, setTime });
    await each(TEN, [{ address: '10.0.0.1', services: [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' }] }], {
        store,
        setTime,
    });
    await each(ELEVEN, [{ address: '192.0.2.2', virtual_host: 'VMWare' }], { store, setTime });
    await store.ensureWorkspace('empty');
    await store.addNote(5, { data: { text: 'a "quoted" one' } });
    return { store, setTime };
}

async function client() {
    const { store } = await filled();
    const { get, headers } = await served({ store });
    return (path: string, more: Record<string, string> = {}, method = 'GET') => get(path, { method, headers: { ...headers, ...more } });
}

function idsOf({ body }: Answer): number[] {
    return JSON.parse(body).map(({ id }: { id: number }) => id);
}

/** Query, ids of the hosts, and the query of the link to the next page. */
const SELECTED: readonly (readonly [query: string, ids: readonly number[], next?: string])[] = [
    ['', [1, 2, 3, 4, 5]],
    ['?', [1, 2, 3, 4, 5]],
    ['?unknown=1&page=2&Limit=1', [1, 2, 3, 4, 5]],
    ['?limit=2', [1, 2], 'limit=2&after=2'],
    ['?limit=2&after=2', [3, 4], 'limit=2&after=4'],
    ['?limit=2&after=4', [5]],
    ['?limit=5', [1, 2, 3, 4, 5]],
    ['?limit=1000', [1, 2, 3, 4, 5]],
    ['?limit=4', [1, 2, 3, 4], 'limit=4&after=4'],
    ['?after=3', [4, 5]],
    ['?after=0', [1, 2, 3, 4, 5]],
    ['?after=2147483647', []],
    ['?state=down', [2]],
    ['?state=alive', [1, 3, 4, 5]],
    ['?state=unknown', []],
    ['?name=web', [1]],
    ['?name=Web', [2]],
    ['?name=we', []],
    ['?name=k%C3%B6ln', [3]],
    ['?name=10.0.0.1', [5]],
    ['?os_name=Linux', [1, 3, 4]],
    ['?os_name=', [5]],
    ['?os_name=Linux&purpose=printer', [3]],
    ['?os_name=Linux&limit=1', [1], 'os_name=Linux&limit=1&after=1'],
    ['?os_name=Linux&limit=1&after=3', [4]],
    ['?os_name=Linux&limit=1&after=1', [3], 'os_name=Linux&limit=1&after=3'],
    ['?arch=armle', [4]],
    ['?arch=', []],
    ['?purpose=server', [1]],
    ['?search=WEB', [1, 2]],
    ['?search=nginx', [1]],
    ['?search=100%25', [1]],
    ['?search=%25', [1]],
    ['?search=_', []],
    ['?search=db8', [4]],
    ['?search=calc', [2]],
    ['?search=window', [2]],
    ['?search=printer', []],
    ['?address=192.0.2.2', [2]],
    ['?address=192.0.2.0/24', [1, 2]],
    ['?address=192.0.2.77/24', [1, 2]],
    ['?address=192.0.2.2/32', [2]],
    ['?address=0.0.0.0/0', [1, 2, 3, 5]],
    ['?address=::/0', [4]],
    ['?address=2001:DB8::/32', [4]],
    ['?address=2001:db8::1', [4]],
    ['?address=192.0.2.2-198.51.100.7', [2, 3]],
    ['?address=10.0.0.1-10.0.0.1', [5]],
    ['?address=2001:db8::-2001:db8::f', [4]],
    ['?address=203.0.113.0/24', []],
    [`?updated_since=${NINE}`, [1, 3, 4, 5, 2]],
    ['?updated_since=2026-11-21T10:00:00Z', [5, 2]],
    ['?updated_since=2026-11-21T10:00:00.001Z', [2]],
    ['?updated_since=2026-11-21T11:00:00%2B00:00', [2]],
    ['?updated_since=2026-11-21T11:00:00+00:00', [2]],
    ['?updated_since=2026-11-21T12:30:00%2B01:30', [2]],
    ['?updated_since=2026-11-21T11:00:01Z', []],
    [`?updated_since=${TEN}&limit=1`, [5], 'updated_since=2026-11-21T10%3A00%3A00.000Z&limit=1&after=1795255200000-5'],
    [`?updated_since=${TEN}&limit=1&after=1795255200000-5`, [2]],
    [`?updated_since=${TEN}&after=1795251600000-3`, [5, 2]],
    [
        `?updated_since=${NINE}&limit=2&os_name=Linux`,
        [1, 3],
        'updated_since=2026-11-21T09%3A00%3A00.000Z&limit=2&os_name=Linux&after=1795251600000-3',
    ],
];

t.test('selects what the query says', async (t) => {
    const get = await client();
    for (const [query, ids, next] of SELECTED) {
        const answer = await get(`${W}${query}`);
        t.equal(answer.status, 200, query);
        t.strictSame(idsOf(answer), ids, query);
        t.equal(answer.headers.link, next === undefined ? undefined : `</rest_api/v2${W}?${next}>; rel="next"`, query);
    }
});

const LIMIT = 'limit must be a whole number from 1 to 1000';
const AFTER = 'after must be the id of a row, from 0 to 2147483647';
const ADDRESS = 'address must be an IP address, a block such as 192.0.2.0/24, or a range such as 192.0.2.1-192.0.2.9';
const TIME = 'updated_since must be an ISO 8601 time with a zone, such as 2026-11-21T09:30:00Z';
const CHANGED = 'after must be as the link to the next page has it: with updated_since a time and an id';

const REFUSED: readonly (readonly [query: string, message: string | RegExp])[] = [
    ...['', '0', '-1', '1001', '1e2', '01', '1.0', ' 1', 'all', '99999999999999999999'].map((limit) => [`limit=${limit}`, LIMIT] as const),
    ...['', '-1', 'x', '2147483648', '1.5', '1795255200000-5'].map((after) => [`after=${after}`, AFTER] as const),
    ...['', 'x', '192.0.2', '192.0.2.0/33', '192.0.2.0/', '192.0.2.0/-1', '192.0.2.0/024', '::/129', '192.0.2.0/24/8', '010.0.0.1'].map(
        (address) => [`address=${address}`, ADDRESS] as const,
    ),
    ...[
        '192.0.2.9-192.0.2.1',
        '192.0.2.1-::1',
        '192.0.2.1-',
        '-192.0.2.1',
        '1.1.1.1-1.1.1.2-1.1.1.3',
        'fe80::1%25eth0',
        '/24',
        '%20192.0.2.1',
    ].map((address) => [`address=${address}`, ADDRESS] as const),
    ...['', 'yesterday', '2026-11-21', '2026-11-21T09:00:00', '2026-02-30T09:00:00Z', '1795255200000'].map(
        (time) => [`updated_since=${time}`, TIME] as const,
    ),
    ...['5', '', 'x-5', '1795255200000-', '99999999999999999-1', '9999999999999999-1'].map(
        (after) => [`updated_since=${TEN}&after=${after}`, CHANGED] as const,
    ),
    ['state=up', 'state must be one of alive, down, unknown'],
    ['state=', 'state must be one of alive, down, unknown'],
    ['state=ALIVE', 'state must be one of alive, down, unknown'],
    ['search=', 'search must have 1 to 255 characters'],
    [`search=${'x'.repeat(256)}`, 'search must have 1 to 255 characters'],
    ['limit=1&limit=2', 'limit must be there once'],
    ['state=alive&state=down', 'state must be there once'],
    ['name=a%00b', 'name must not contain the character NUL'],
    ['search=%00', 'search must not contain the character NUL'],
    ['fields=', /^fields must be names out of id, workspace_id, /],
    ['fields=id,', /^fields must be names out of/],
    ['fields=id,nothing', /^fields must be names out of/],
    ['fields=__proto__', /^fields must be names out of/],
    ['fields=ID', /^fields must be names out of/],
];

t.test('refuses a value that is not of its form, with the reason', async (t) => {
    const get = await client();
    for (const [query, message] of REFUSED) {
        for (const method of ['GET', 'HEAD']) {
            const { status, body } = await get(`${W}?${query}`, {}, method);
            t.equal(status, 400, `${method} ${query}`);
            if (method === 'GET') {
                const { message: said, ...rest } = JSON.parse(body);
                t.match(said, message, query);
                t.strictSame(rest, { statusCode: 400, error: 'Bad Request' });
            }
        }
    }
    t.equal((await get('/workspaces/9/hosts?limit=2')).status, 404);
    t.equal((await get('/workspaces/x/hosts?limit=x')).status, 404);
    t.equal((await get(`${W}?limit=x`, { token: 'wrong' })).status, 403);
    t.equal((await get(`${W}/1?limit=x`)).status, 200);
});

t.test('has the filters of the fields that the rows have', async (t) => {
    const get = await client();
    t.strictSame(idsOf(await get('/workspaces?name=empty')), [2]);
    t.strictSame(idsOf(await get('/workspaces?search=EF&limit=1')), [1]);
    t.strictSame(idsOf(await get(`${W}/5/services?state=open&search=NGINX`)), [1]);
    t.match(
        JSON.parse((await get('/workspaces?state=alive')).body).message,
        'state is no filter of this index; it has name, search, updated_since',
    );
    t.match(JSON.parse((await get(`${W}/5/notes?name=x`)).body).message, 'name is no filter of this index; it has updated_since');
    t.match(JSON.parse((await get(`${W}/5/sessions?name=x`)).body).message, 'name is no filter of this index; it has none');
    t.match(JSON.parse((await get(`${W}/5/services?state=alive`)).body).message, 'state must be one of open, closed, filtered, unknown');
});

t.test('selects what is below hosts by their address in the indexes of a workspace', async (t) => {
    const { store } = await filled();
    await store.importHosts('default', list([{ address: '192.0.2.1', services: [{ port: 53, proto: 'udp', state: 'open' }] }]));
    await store.addNote(1, {});
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    await store.addVuln(2, { name: 'CVE-2026-0002' });
    const { get, headers } = await served({ store });
    for (const index of ['services', 'notes', 'vulns']) {
        const ids = async (query: string) => idsOf(await get(`/workspaces/1/${index}?${query}`, { headers }));
        t.strictSame(await ids('address=10.0.0.1'), [1], index);
        t.strictSame(await ids('address=192.0.2.0/24'), [2], index);
        t.strictSame(await ids('address=10.0.0.0-192.0.2.1'), [1, 2], index);
        t.strictSame(await ids('address=0.0.0.0/0&limit=1&after=1'), [2], index);
        t.strictSame(await ids('address=::/0'), [], index);
        t.strictSame(await ids(`address=0.0.0.0/0&updated_since=${NINE}`), [1, 2], index);
        const counted = await get(`/workspaces/1/${index}?address=192.0.2.0/24`, { headers: { ...headers, prefer: 'count=exact' } });
        t.equal(counted.headers['x-total-count'], '1', index);
        t.equal((await get(`/workspaces/1/${index}?address=x`, { headers })).status, 400, index);
    }
    t.strictSame(idsOf(await get('/workspaces/1/services?search=10.0.0.1&address=10.0.0.1', { headers })), []);
    for (const index of ['hosts/5/services', 'hosts/5/notes', 'hosts/5/services/1/vulns', 'sessions']) {
        const { status, body } = await get(`/workspaces/1/${index}?address=10.0.0.1`, { headers });
        t.equal(status, 400, index);
        t.match(JSON.parse(body).message, 'address is no filter of this index', index);
    }
});

t.test('says what a store cannot do', async (t) => {
    const { store } = await filled();
    const { list, get: one } = store.hosts;
    const { get, headers } = await served({ store: { ...store, hosts: { list, get: one } } });
    const plain = await get(W);
    for (const [query, message] of [
        ['limit=1', 'limit cannot be met: the store of this index cannot be read page by page'],
        ['after=1', 'after cannot be met: the store of this index cannot be read page by page'],
        ['name=web', 'name is no filter of this index; it has none'],
    ] as const) {
        const { status, body } = await get(`${W}?${query}`);
        t.equal(status, 400);
        t.equal(JSON.parse(body).message, message);
    }
    const counted = await get(W, { headers: { ...headers, prefer: 'count=exact' } });
    t.equal(counted.body, plain.body);
    t.notOk('x-total-count' in counted.headers || 'preference-applied' in counted.headers);
    t.equal((await get(`${W}?fields=id`)).body, '[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]');
});

t.test('counts all rows that fulfil the filters where that is preferred', async (t) => {
    const get = await client();
    for (const [query, total] of [
        ['', '5'],
        ['?limit=1', '5'],
        ['?after=4', '5'],
        ['?os_name=Linux&limit=1', '3'],
        ['?name=nobody', '0'],
    ] as const) {
        for (const prefer of ['count=exact', 'respond-async, Count="exact"; x=1']) {
            for (const method of ['GET', 'HEAD']) {
                const { headers, status } = await get(`${W}${query}`, { prefer }, method);
                t.strictSame([status, headers['x-total-count'], headers['preference-applied']], [200, total, 'count=exact'], query);
            }
        }
    }
    const plain = await get(W);
    for (const prefer of ['count=planned', 'return=minimal', 'count', '', 'xcount=exact', ';;,=']) {
        const { status, body, headers } = await get(W, { prefer });
        t.strictSame([status, body], [200, plain.body], prefer);
        t.notOk('x-total-count' in headers || 'preference-applied' in headers, prefer);
    }
    t.equal((await get('/workspaces/9/hosts', { prefer: 'count=exact' })).status, 404);
});

t.test('gives the fields that are named, in their usual order', async (t) => {
    const get = await client();
    t.equal((await get(`${W}?fields=name,id&limit=2`)).body, '[{"id":1,"name":"web"},{"id":2,"name":"Web"}]');
    t.equal((await get(`${W}?fields=id,id&after=4`)).body, '[{"id":5}]');
    t.equal((await get(`${W}?fields=name&after=4`)).body, '[{"name":"10.0.0.1"}]');
    t.equal((await get(`${W}?fields=updated_at&name=Web`)).body, '[{"updated_at":"2026-11-21T11:00:00+00:00"}]');
    t.equal((await get(`${W}?fields=id&name=nobody`)).body, '[]');
    t.equal((await get('/workspaces/9/hosts?fields=id')).status, 404);
});

const CSV = 'text/csv; charset=utf-8; header=present';

/** Accept, and the type of the answer. */
const ACCEPTED: readonly (readonly [accept: string, type: string])[] = [
    ...['*/*', '', 'application/json', 'text/html', 'text/*', 'image/png;q=1', 'application/xml', ';;,,', 'text/csv;q=0'].map(
        (accept) => [accept, 'application/json; charset=utf-8'] as const,
    ),
    ['application/json, text/csv', 'application/json; charset=utf-8'],
    ['text/csv, application/json', 'application/json; charset=utf-8'],
    ['text/csv;q=0.5, application/json;q=0.4', CSV],
    ['text/csv;q=0.4, application/json;q=0.5', 'application/json; charset=utf-8'],
    ['text/csv;q=x', 'application/json; charset=utf-8'],
    ['constructor, __proto__', 'application/json; charset=utf-8'],
    ['text/csv', CSV],
    ['TEXT/CSV', CSV],
    ['text/csv, */*', CSV],
    ['*/*;q=0.8, text/csv;q=0.8', CSV],
    ['*/*, text/csv;q=0.1', 'application/json; charset=utf-8'],
    ['text/csv;q=0.5, application/*;q=0.9', 'application/json; charset=utf-8'],
    ['application/json;q=0.1, */*, text/csv;q=0.5', CSV],
    ['application/*;q=0, */*, application/x-ndjson;q=0.5', 'application/x-ndjson'],
    ['text/csv; charset=utf-8', CSV],
    ['application/x-ndjson', 'application/x-ndjson'],
    ['application/x-ndjson, text/csv;q=0.9', 'application/x-ndjson'],
];

t.test('writes what is accepted, and JSON where that cannot be met', async (t) => {
    const get = await client();
    const plain = await get(W);
    for (const [accept, type] of ACCEPTED) {
        const { status, type: answered, body } = await get(W, { accept });
        t.equal(status, 200, accept);
        t.equal(answered, type, accept);
        if (type.startsWith('application/json')) {
            t.equal(body, plain.body, accept);
        }
    }
    t.equal((await get(`${W}/1`, { accept: 'text/csv' })).type, 'application/json; charset=utf-8');
    t.equal((await get(W, { accept: 'text/csv' }, 'HEAD')).type, CSV);
});

t.test('writes a line of JSON for each row', async (t) => {
    const get = await client();
    const accept = 'application/x-ndjson';
    const rows = JSON.parse((await get(W)).body);
    t.equal((await get(W, { accept })).body, rows.map((row: object) => `${JSON.stringify(row)}\n`).join(''));
    t.equal((await get(`${W}?fields=id&limit=2`, { accept })).body, '{"id":1}\n{"id":2}\n');
    t.equal((await get('/workspaces/2/hosts', { accept })).body, '');
    t.equal((await get('/workspaces/9/hosts', { accept })).status, 404);
});

t.test('begins CSV of every index with all keys of its rows, in the order of the JSON', async (t) => {
    const { store } = await filled();
    await store.addSession(5, {});
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    const { get, headers } = await served({ store });
    const host = `${W}/5`;
    const ofWorkspace = ['services', 'notes', 'sessions', 'vulns'].map((name) => `/workspaces/1/${name}`);
    const ofHost = ['services', 'notes', 'sessions', 'services/1/vulns'].map((name) => `${host}/${name}`);
    const known = Object.keys(JSON.parse((await get('/openapi.json')).body).paths);
    const indexes = ['/workspaces', W, ...ofWorkspace, ...ofHost];
    t.equal(known.filter((path) => !/base$|id\}$/.test(path)).length, indexes.length, `${known}`);
    for (const path of indexes) {
        const [row] = JSON.parse((await get(path)).body);
        const { body } = await get(path, { headers: { ...headers, accept: 'text/csv' } });
        // Where a byte order mark stood, the first key would be another.
        t.equal(body.split('\r\n')[0], Object.keys(row).join(','), path);
    }
});

t.test('writes CSV with a line of the keys', async (t) => {
    const get = await client();
    const accept = 'text/csv';
    t.equal(
        (await get(`${W}?fields=id,name,os_lang,os_name,comments`, { accept })).body,
        'id,name,os_name,os_lang,comments\r\n' +
            '1,web,Linux,,\r\n' +
            '2,Web,Windows,,"\'=cmd|""calc""!A1"\r\n' +
            '3,köln,Linux,,"a,b\n""c"""\r\n' +
            '4,2001:db8::1,Linux,,\r\n' +
            '5,10.0.0.1,"",,\r\n',
    );
    t.equal(
        (await get(`${W}/5/notes?fields=data,critical,host_id`, { accept })).body,
        'host_id,data,critical\r\n5,"{""text"":""a \\""quoted\\"" one""}",\r\n',
    );
    t.equal((await get('/workspaces/2/hosts?fields=id', { accept })).body, 'id\r\n');
    t.equal(
        (await get('/workspaces?fields=limit_to_network,updated_at&limit=1', { accept })).body,
        'limit_to_network,updated_at\r\nfalse,2026-11-21T09:00:00+00:00\r\n',
    );
    t.equal((await get('/workspaces/9/hosts', { accept })).status, 404);
});

t.test('reads no rows for a HEAD request', async (t) => {
    const { store } = await filled();
    const unread = { ...store.hosts, list: () => t.fail('list') as never, select: () => t.fail('select') as never };
    const { get } = await served({ store: { ...store, hosts: unread } });
    for (const query of ['', '?limit=1', '?name=web']) {
        const { status, type, body } = await get(`${W}${query}`, { method: 'HEAD' });
        t.strictSame([status, type, body], [200, 'application/json; charset=utf-8', '']);
    }
    t.equal((await get('/workspaces/9/hosts', { method: 'HEAD' })).status, 404);
    const down = { ...store.workspaces, get: () => Promise.reject(new Error('down')) };
    const { get: ask } = await served({ store: { ...store, workspaces: down } });
    t.equal((await ask(W, { method: 'HEAD' })).status, 503);
    t.equal((await ask('/workspaces', { method: 'HEAD' })).status, 503, 'which has no parents');

    const asked: (readonly number[])[] = [];
    const noted = {
        ...store.workspaces,
        list: () => t.fail('list') as never,
        select: () => t.fail('select') as never,
        async get(path: readonly number[], id: number) {
            const found = await store.workspaces.get(path, id);
            t.equal(found, null);
            asked.push([...path, id]);
            return found;
        },
    };
    const { get: probe } = await served({ store: { ...store, workspaces: noted } });
    t.match(await probe('/workspaces', { method: 'HEAD' }), { status: 200, body: '' });
    t.same(asked, [[2_147_483_647]], 'an id that no row has');
});

t.test('answers a malformed path as any other that leads nowhere, and takes no notice of ranges', async (t) => {
    const get = await client();
    for (const path of ['/%', '/workspaces/%zz', '/workspaces/%E0%A4%A/hosts', `${W}/%C3%28`, `${W}/%?limit=1`]) {
        const [known, unknown] = [await get(path), await get(path, { token: 'wrong' })];
        t.equal(known.status, 404, path);
        t.equal(known.body, '{"statusCode":404,"error":"Not Found","message":"Not Found"}');
        t.equal(unknown.status, 403, path);
    }
    for (const query of ['?search=%', '?name=%E0%A4%A', '?unknown=%zz']) {
        t.equal((await get(`${W}${query}`)).status, 200, query);
    }
    const whole = await get(`${W}/1`);
    for (const path of [`${W}/1`, W, '/base']) {
        t.equal((await get(path, { range: 'bytes=0-3' })).status, 200, path);
    }
    t.equal((await get(`${W}/1`, { range: 'bytes=0-3' })).body, whole.body);
    t.equal((await get(W, { range: 'bytes=0-3' })).body, (await get(W)).body);
});

t.test('says on request when hosts were seen last, and selects by it', async (t) => {
    const get = await client();
    const rows = async (query: string): Promise<unknown> => JSON.parse((await get(`${W}${query}`)).body);
    t.strictSame(await rows('?fields=last_seen,id&limit=2'), [
        { id: 1, last_seen: '2026-11-21T09:00:00+00:00' },
        { id: 2, last_seen: '2026-11-21T11:00:00+00:00' },
    ]);
    t.strictSame(await rows('?fields=last_seen&after=4&limit=1'), [{ last_seen: '2026-11-21T10:00:00+00:00' }]);
    t.strictSame(await rows('?last_seen_since=2026-11-21T10:00:00Z&fields=id'), [{ id: 2 }, { id: 5 }]);
    t.strictSame(await rows('?last_seen_since=2026-11-21T12:00:00%2B01:00&fields=id'), [{ id: 2 }]);
    t.notOk((await get(W)).body.includes('last_seen'));
    t.notOk((await get(`${W}?last_seen_since=2026-11-21T10:00:00Z`)).body.includes('"last_seen"'));
    t.equal((await get(`${W}?last_seen_since=today`)).status, 400);
    t.equal((await get('/workspaces?fields=last_seen')).status, 400);
    t.equal((await get('/workspaces?last_seen_since=2026-11-21T10:00:00Z')).status, 400);
});

t.test('sends the text of a store for all of an index in JSON and UTC, and for nothing else', async (t) => {
    const inventory = memoryInventory();
    await inventory.importHosts('default', list([{ address: '192.0.2.7' }, { address: '192.0.2.8' }]));
    const texts = (rows: readonly object[]) =>
        async function* () {
            yield '{"as":"text"}';
            yield rows as never;
        };
    const [hosts] = [{ ...inventory.hosts, listText: texts([]) }];
    const workspaces = { ...inventory.workspaces, listText: texts([]) };
    const store = { ...inventory, hosts, workspaces };
    const { server, get } = await served({
        store,
        resources: [{ path: '/machines', store: hosts as never, schema: Joi.object({ id: Joi.number() }) }],
    });
    t.equal((await get('/workspaces/1/hosts')).body, '[{"as":"text"}]');
    t.equal((await get('/workspaces')).body, '[{"as":"text"}]');

    for (const query of ['?limit=1', '?after=1', '?fields=id', '?state=alive']) {
        t.notMatch((await get(`/workspaces/1/hosts${query}`)).body, /"as"/, query);
    }
    const { key } = await server.plugins['token-auth'].create('all');
    for (const accept of ['application/x-ndjson', 'text/csv']) {
        t.notMatch((await get('/workspaces/1/hosts', { headers: { token: key, accept } })).body, /"as"/, accept);
    }
    const { key: limited } = await server.plugins['token-auth'].create('some', { workspaces: [1] });
    t.notMatch((await get('/workspaces', { headers: { token: limited } })).body, /"as"/, 'who sees some workspaces only');
    t.notMatch((await get('/machines')).body, /"as"/, 'a resource with a schema of its own');
    const elsewhere = await served({ store, timeZone: 'Europe/Berlin' });
    t.notMatch((await elsewhere.get('/workspaces/1/hosts')).body, /"as"/, 'another time zone');

    const mixed = await served({ store: { ...store, hosts: { ...hosts, listText: texts([{ id: 7 }, { id: 8 }]) } } });
    t.match(JSON.parse((await mixed.get('/workspaces/1/hosts')).body), [{ as: 'text' }, { id: 7, state: 'alive' }, { id: 8 }]);
    const bytes = async function* () {
        yield Buffer.from('{"as":"bytes"}');
        yield '{"as":"text"}';
        yield Buffer.from('{"as":"köln"}');
    };
    const ofBytes = await served({ store: { ...store, hosts: { ...hosts, listText: bytes } } });
    t.equal((await ofBytes.get('/workspaces/1/hosts')).body, '[{"as":"bytes"},{"as":"text"},{"as":"köln"}]');
});
