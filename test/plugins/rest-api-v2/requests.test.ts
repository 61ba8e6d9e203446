import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import Hapi from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';

/*
 * Requests over the wire and what they are answered with, written by hand: who asks, for what, and the answer.
 *
 * The workspaces 1 `default`, 2 `lab` and 3 `empty`. In 1 the hosts 1 192.0.2.1 (services 1 443/tcp https open, 2 53/udp domain closed; note 1,
 * session 1, vulnerability 1 of service 1) and 2 192.0.2.2, down (service 3 22/tcp ssh open); in 2 the host 3 2001:db8::3 (service 4 80/tcp; note 2,
 * vulnerability 2 of service 4).
 */
const INPUT: Readonly<Record<string, readonly HostInput[]>> = {
    default: [
        {
            address: '192.0.2.1',
            os_name: 'Linux',
            services: [
                { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' },
                { port: 53, proto: 'udp', state: 'closed', name: 'domain', info: null },
            ],
        },
        { address: '192.0.2.2', state: 'down', services: [{ port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null }] },
    ],
    lab: [{ address: '2001:db8::3', services: [{ port: 80, proto: 'tcp', state: 'open', name: 'http', info: null }] }],
};

/** `all` reads everything, `one` the workspace 1 alone; the others nothing. */
type Who = 'all' | 'one' | 'records' | 'wrong' | 'revoked' | 'expired' | 'nobody';
/** Ids of an index, the id of one row, a status with the body of its error, or the text of the answer. */
type Expected = readonly number[] | { readonly one: number } | 400 | 403 | 404 | string;
type Row = readonly [who: Who, path: string, expected: Expected, accept?: string];

const ALL_PATHS: readonly Row[] = [
    ['all', '/workspaces', [1, 2, 3]],
    ['all', '/workspaces/1', { one: 1 }],
    ['all', '/workspaces/3', { one: 3 }],
    ['all', '/workspaces/1/hosts', [1, 2]],
    ['all', '/workspaces/2/hosts', [3]],
    ['all', '/workspaces/3/hosts', []],
    ['all', '/workspaces/1/hosts/2', { one: 2 }],
    ['all', '/workspaces/2/hosts/3', { one: 3 }],
    ['all', '/workspaces/1/hosts/1/services', [1, 2]],
    ['all', '/workspaces/1/hosts/2/services', [3]],
    ['all', '/workspaces/1/hosts/1/services/2', { one: 2 }],
    ['all', '/workspaces/1/hosts/1/notes', [1]],
    ['all', '/workspaces/1/hosts/2/notes', []],
    ['all', '/workspaces/1/hosts/1/notes/1', { one: 1 }],
    ['all', '/workspaces/1/hosts/1/sessions', [1]],
    ['all', '/workspaces/1/hosts/1/sessions/1', { one: 1 }],
    ['all', '/workspaces/1/hosts/2/sessions', []],
    ['all', '/workspaces/1/hosts/1/services/1/vulns', [1]],
    ['all', '/workspaces/1/hosts/1/services/2/vulns', []],
    ['all', '/workspaces/1/hosts/1/services/1/vulns/1', { one: 1 }],
    ['all', '/workspaces/1/services', [1, 2, 3]],
    ['all', '/workspaces/1/services/3', { one: 3 }],
    ['all', '/workspaces/2/services', [4]],
    ['all', '/workspaces/3/services', []],
    ['all', '/workspaces/1/notes', [1]],
    ['all', '/workspaces/2/notes/2', { one: 2 }],
    ['all', '/workspaces/1/sessions', [1]],
    ['all', '/workspaces/1/sessions/1', { one: 1 }],
    ['all', '/workspaces/1/vulns', [1]],
    ['all', '/workspaces/2/vulns', [2]],
    ['all', '/workspaces/2/vulns/2', { one: 2 }],
    ['all', '/workspaces/', [1, 2, 3]],
    ['all', '/workspaces/1/', { one: 1 }],
    ['all', '/workspaces/1/hosts/1/services/', [1, 2]],
];

const OTHER_PARENTS: readonly Row[] = [
    ['all', '/workspaces/9', 404],
    ['all', '/workspaces/9/hosts', 404],
    ['all', '/workspaces/9/hosts/1', 404],
    ['all', '/workspaces/9/services', 404],
    ['all', '/workspaces/2/hosts/1', 404],
    ['all', '/workspaces/1/hosts/3', 404],
    ['all', '/workspaces/1/hosts/9', 404],
    ['all', '/workspaces/2/hosts/1/services', 404],
    ['all', '/workspaces/2/hosts/1/services/1', 404],
    ['all', '/workspaces/1/hosts/2/services/1', 404],
    ['all', '/workspaces/1/hosts/9/services', 404],
    ['all', '/workspaces/1/hosts/1/services/4', 404],
    ['all', '/workspaces/1/hosts/2/notes/1', 404],
    ['all', '/workspaces/2/hosts/3/notes/1', 404],
    ['all', '/workspaces/2/hosts/1/notes', 404],
    ['all', '/workspaces/1/hosts/2/sessions/1', 404],
    ['all', '/workspaces/2/hosts/1/sessions', 404],
    ['all', '/workspaces/1/hosts/2/services/1/vulns', 404],
    ['all', '/workspaces/2/hosts/1/services/1/vulns/1', 404],
    ['all', '/workspaces/1/hosts/1/services/2/vulns/1', 404],
    ['all', '/workspaces/1/hosts/1/services/9/vulns', 404],
    ['all', '/workspaces/2/services/1', 404],
    ['all', '/workspaces/2/notes/1', 404],
    ['all', '/workspaces/2/sessions/1', 404],
    ['all', '/workspaces/1/vulns/2', 404],
    ['all', '/workspaces/1/vulns/9', 404],
];

const ODD_IDS: readonly Row[] = [
    ['all', '/workspaces/0', 404],
    ['all', '/workspaces/01', 404],
    ['all', '/workspaces/+1', 404],
    ['all', '/workspaces/-1', 404],
    ['all', '/workspaces/1.0', 404],
    ['all', '/workspaces/1e0', 404],
    ['all', '/workspaces/0x1', 404],
    ['all', '/workspaces/%31', { one: 1 }],
    ['all', '/workspaces/1%20', 404],
    ['all', '/workspaces/%201', 404],
    ['all', '/workspaces/1%00', 404],
    ['all', '/workspaces/1%2F', 404],
    ['all', '/workspaces/%EF%BC%91', 404],
    ['all', '/workspaces/%', 404],
    ['all', '/workspaces/%zz/hosts', 404],
    ['all', '/workspaces/%C3%28', 404],
    ['all', '/workspaces/\\/', 404],
    ['all', '/%zz\\..\\workspaces', 404],
    ['all', '/workspaces/2147483647', 404],
    ['all', '/workspaces/2147483648', 404],
    ['all', '/workspaces/4294967297', 404],
    ['all', '/workspaces/18446744073709551617', 404],
    ['all', '/workspaces/1/hosts/default', 404],
    ['all', '/workspaces/default/hosts', 404],
    ['all', '/workspaces/1/hosts/null', 404],
    ['all', '/workspaces/1/hosts/1,2', 404],
    ['all', '/workspaces/1/hosts/1;id=2', 404],
    ['all', '/workspaces/1/hosts/1.json', 404],
    ['all', '/workspaces/1/hosts/1/services/443', 404],
    ['all', '/workspaces/1/hosts//services', 404],
    ['all', '/workspaces//hosts', 404],
    ['all', '//workspaces', 404],
    ['all', '/Workspaces', 404],
    ['all', '/workspace', 404],
    ['all', '/workspaces/1/campaigns', 404],
    ['all', '/workspaces/1/hosts/1/vulns', 404],
    ['all', '/hosts', 404],
    ['all', '', 404],
    ['all', '/nothing?limit=x', 404],
    ['all', '/workspaces/x/hosts?limit=x', 404],
];

const KEYS: readonly Row[] = [
    ['one', '/workspaces', [1]],
    ['one', '/workspaces/1', { one: 1 }],
    ['one', '/workspaces/2', 404],
    ['one', '/workspaces/9', 404],
    ['one', '/workspaces/1/hosts', [1, 2]],
    ['one', '/workspaces/2/hosts', 404],
    ['one', '/workspaces/3/hosts', 404],
    ['one', '/workspaces/2/hosts/3', 404],
    ['one', '/workspaces/1/hosts/1/services', [1, 2]],
    ['one', '/workspaces/2/hosts/3/services', 404],
    ['one', '/workspaces/2/services', 404],
    ['one', '/workspaces/2/notes', 404],
    ['one', '/workspaces/1/vulns', [1]],
    ['one', '/workspaces/2/vulns/2', 404],
    ['one', '/workspaces?limit=1', [1]],
    ['one', '/workspaces?name=lab', []],
    ['one', '/workspaces?after=1', []],
    ['one', '/workspaces/2/hosts?limit=x', 404],
    ['records', '/workspaces', 403],
    ['records', '/workspaces/1/hosts', 403],
    ['records', '/workspaces/9', 403],
    ['records', '/nothing', 403],
    ['wrong', '/base', 403],
    ['wrong', '/workspaces', 403],
    ['wrong', '/workspaces/9', 403],
    ['wrong', '/workspaces/x', 403],
    ['wrong', '/workspaces/%', 403],
    ['wrong', '/workspaces/1/hosts?limit=x', 403],
    ['wrong', '/nothing', 403],
    ['wrong', '/openapi.json', 403],
    ['revoked', '/workspaces', 403],
    ['revoked', '/workspaces/1/hosts/1', 403],
    ['revoked', '/nothing', 403],
    ['expired', '/workspaces', 403],
    ['expired', '/workspaces/1/services', 403],
    ['expired', '/nothing', 403],
    ['nobody', '/base', 403],
    ['nobody', '/workspaces', 403],
    ['nobody', '/workspaces/1', 403],
    ['nobody', '/workspaces/1/hosts/1/services/1/vulns', 403],
    ['nobody', '/workspaces/%zz', 403],
    ['nobody', '/', 403],
    ['nobody', '', 403],
];

const QUERIES: readonly Row[] = [
    ['all', '/workspaces?', [1, 2, 3]],
    ['all', '/workspaces?page=2&per_page=1&sort=-id', [1, 2, 3]],
    ['all', '/workspaces?limit=2', [1, 2]],
    ['all', '/workspaces?limit=2&after=2', [3]],
    ['all', '/workspaces?search=LA', [2]],
    ['all', '/workspaces?name=lab', [2]],
    ['all', '/workspaces?state=alive', 400],
    ['all', '/workspaces?address=192.0.2.1', 400],
    ['all', '/workspaces?last_seen_since=2026-11-21T09:00:00Z', 400],
    ['all', '/workspaces/1/hosts?state=down', [2]],
    ['all', '/workspaces/1/hosts?state=up', 400],
    ['all', '/workspaces/1/hosts?address=192.0.2.0/31', [1]],
    ['all', '/workspaces/1/hosts?address=192.0.2.1-192.0.2.9', [1, 2]],
    ['all', '/workspaces/1/hosts?address=192.0.2', 400],
    ['all', '/workspaces/2/hosts?address=2001:db8::/32', [3]],
    ['all', '/workspaces/1/hosts?os_name=Linux&state=down', []],
    ['all', '/workspaces/1/hosts?limit=0', 400],
    ['all', '/workspaces/1/hosts?limit=1001', 400],
    ['all', '/workspaces/1/hosts?limit=1&limit=1', 400],
    ['all', '/workspaces/1/hosts?after=x', 400],
    ['all', '/workspaces/1/hosts?fields=id,secret', 400],
    ['all', '/workspaces/1/hosts?fields=address,id', '[{"id":1,"address":"192.0.2.1"},{"id":2,"address":"192.0.2.2"}]'],
    ['all', '/workspaces/1/hosts?updated_since=2026-11-21T09:30:00Z', [1, 2]],
    ['all', '/workspaces/1/hosts?updated_since=2026-11-21T09:30:01Z', []],
    ['all', '/workspaces/1/hosts?updated_since=now', 400],
    ['all', '/workspaces/1/hosts?deleted_since=2026-11-21T09:30:00Z', []],
    ['all', '/workspaces/1/hosts?deleted_since=now', 400],
    ['all', '/workspaces/1/services?state=open', [1, 3]],
    ['all', '/workspaces/1/services?state=alive', 400],
    ['all', '/workspaces/1/services?search=NGINX', [1]],
    ['all', '/workspaces/1/hosts/1/services?name=domain', [2]],
    ['all', '/workspaces/1/hosts/1/services?port=443', [1, 2]],
    ['all', '/workspaces/1/vulns?search=cve', [1]],
    ['all', '/workspaces/1/notes?search=x', 400],
    ['all', '/workspaces/1/sessions?updated_since=2026-11-21T09:30:00Z', 400],
    ['all', '/workspaces/1/hosts/1?limit=x&fields=x', { one: 1 }],
    ['all', '/workspaces/1?deleted_since=x', { one: 1 }],
];

const JSON_LINES = 'application/x-ndjson';
const ACCEPTS: readonly Row[] = [
    ['all', '/workspaces', [1, 2, 3], '*/*'],
    ['all', '/workspaces', [1, 2, 3], 'text/html'],
    ['all', '/workspaces', [1, 2, 3], 'application/xml;q=1, application/json;q=0.1'],
    ['all', '/workspaces?fields=id', '{"id":1}\n{"id":2}\n{"id":3}\n', JSON_LINES],
    ['all', '/workspaces?fields=id&limit=1', '{"id":1}\n', JSON_LINES],
    ['all', '/workspaces/3/hosts', '', JSON_LINES],
    ['all', '/workspaces/9/hosts', 404, JSON_LINES],
    ['wrong', '/workspaces', 403, JSON_LINES],
    ['all', '/workspaces?fields=name,id', 'id,name\r\n1,default\r\n2,lab\r\n3,empty\r\n', 'text/csv'],
    ['all', '/workspaces/3/hosts?fields=id,mac', 'id,mac\r\n', 'text/csv'],
    ['all', '/workspaces/1/hosts?limit=x', 400, 'text/csv'],
    ['all', '/workspaces/1', { one: 1 }, 'text/csv'],
    ['one', '/workspaces?fields=id', 'id\r\n1\r\n', 'text/csv'],
];

/** Each is another table of rows. */
const TABLES = { ALL_PATHS, OTHER_PARENTS, ODD_IDS, KEYS, QUERIES, ACCEPTS };

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

async function listening() {
    const start = new Date('2026-11-21T09:30:00.000Z');
    let late = 0;
    const store = memoryInventory({ clock: () => start, batchSize: 2 });
    for (const [name, hosts] of Object.entries(INPUT)) {
        await store.importHosts(name, each(hosts));
    }
    await store.ensureWorkspace('empty');
    await store.addNote(1, {});
    await store.addNote(3, {});
    await store.addSession(1, {});
    await store.addVuln(1, { name: 'CVE-2026-0001' });
    await store.addVuln(4, { name: 'CVE-2026-0002' });

    const server = Hapi.server({ host: '127.0.0.1', port: 0 });
    await server.register({
        plugin: tokenAuth,
        options: { store: memoryApiKeys({ clock: () => new Date(Date.now() + late) }), revealable: false },
    });
    await server.register({ plugin: restApiV2, options: { store, license: alwaysLicensed() } });
    await server.start();
    const keys = server.plugins['token-auth'];
    const { key: revoked, id } = await keys.create('revoked');
    await keys.revoke(id);
    const tokens: Readonly<Record<Who, string | undefined>> = {
        all: (await keys.create('all')).key,
        one: (await keys.create('one', { workspaces: [1] })).key,
        records: (await keys.create('records', { scopes: ['records:read'] })).key,
        expired: (await keys.create('expired', { expiresAt: new Date(Date.now() + 30_000) })).key,
        revoked,
        wrong: 'wrong',
        nobody: undefined,
    };
    late = 60_000;
    return { server, tokens };
}

const { server, tokens } = await listening();
t.teardown(() => server.stop());

/** The path goes out as it is written: a URL would mend it. */
async function ask(
    who: Who,
    path: string,
    { accept = 'application/json', method = 'GET', host = 'localhost', headers = {} as Readonly<Record<string, string>> } = {},
) {
    const token = tokens[who];
    const outgoing = request({
        host: '127.0.0.1',
        port: server.info.port,
        path: `/rest_api/v2${path}`,
        method,
        headers: { accept, host, ...headers, ...(token !== undefined && { token }) },
    });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return { status: response.statusCode, type: response.headers['content-type'], headers: response.headers, body: await text(response) };
}

/** What a request has besides its key, and what its answer has. */
const HEADERS: readonly (readonly [
    path: string,
    sent: Readonly<Record<string, string>>,
    status: number,
    expected: Readonly<Record<string, string | undefined>>,
    body?: RegExp,
])[] = [
    ['/base', {}, 200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }, /the API key is valid/],
    ['/base', { accept: 'application/json' }, 200, { 'content-type': 'text/html; charset=utf-8' }, /^<!DOCTYPE html>/],
    ['/base?limit=x', {}, 200, {}, /the API key is valid/],
    ['/openapi.json', {}, 200, { 'content-type': 'application/json; charset=utf-8' }, /^\{"openapi":"3\./],
    ['/openapi.json', { accept: 'text/csv' }, 200, { 'content-type': 'application/json; charset=utf-8' }, /^\{"openapi":"3\./],
    ['/openapi.json/1', {}, 404, {}],
    ['/workspaces', { 'accept-encoding': 'identity' }, 200, { 'content-encoding': undefined }, /^\[\{"id":1,/],
    // Short of 1,024 bytes nothing is compressed. Whether a short one is packed depends on whether a piece of it had to be waited for; see below.
    ['/workspaces', { 'accept-encoding': 'gzip' }, 200, { vary: 'accept-encoding' }],
    ['/workspaces', { 'accept-encoding': 'gzip', accept: JSON_LINES }, 200, { vary: 'accept-encoding' }],
    ['/openapi.json', { 'accept-encoding': 'gzip' }, 200, { 'content-encoding': 'gzip', vary: 'accept-encoding' }],
    ['/workspaces/1/hosts', { 'accept-encoding': 'gzip;q=0' }, 200, { 'content-encoding': undefined }, /^\[\{"id":1,/],
    ['/workspaces/1/hosts', { 'accept-encoding': 'br' }, 200, { 'content-encoding': undefined }, /^\[\{"id":1,/],
    ['/workspaces/1/hosts', { prefer: 'count=exact' }, 200, { 'x-total-count': '2', 'preference-applied': 'count=exact' }],
    ['/workspaces/1/hosts?state=down&limit=1', { prefer: 'count=exact' }, 200, { 'x-total-count': '1', link: undefined }],
    ['/workspaces/3/hosts', { prefer: 'count=exact' }, 200, { 'x-total-count': '0' }, /^\[\]$/],
    ['/workspaces/9/hosts', { prefer: 'count=exact' }, 404, { 'x-total-count': undefined }],
    ['/workspaces/1/hosts', { prefer: 'count=planned' }, 200, { 'x-total-count': undefined, 'preference-applied': undefined }],
    ['/workspaces/1/hosts/1', { prefer: 'count=exact' }, 200, { 'x-total-count': undefined }, /^\{"id":1,/],
    ['/workspaces', { range: 'bytes=0-3' }, 200, { 'content-range': undefined }, /^\[\{"id":1,.*\]$/],
    ['/workspaces/1', { range: 'bytes=0-3' }, 200, { 'content-range': undefined }, /^\{"id":1,.*\}$/],
    ['/workspaces', { range: 'items=0-0' }, 200, { 'content-range': undefined }, /^\[\{"id":1,.*\]$/],
];

t.test('does not pack a short index of which no piece is waited for', async (t) => {
    for (const [accept, encoding, begins] of [
        ['application/json', 'gzip', '[{"id":1'],
        [JSON_LINES, 'gzip', '{"id":1,'],
        ['application/json', 'zstd, gzip', '[{"id":1'],
    ] as const) {
        const answers: (readonly [encoding: unknown, start: string, hasLength: boolean])[] = [];
        // The machine may be busy for one of them.
        for (let round = 0; round < 5; round += 1) {
            const { headers, body } = await ask('all', '/workspaces', { headers: { accept, 'accept-encoding': encoding } });
            answers.push([headers['content-encoding'], body.slice(0, 8), 'content-length' in headers]);
        }
        t.ok(
            answers.some(([encoding, start, hasLength]) => encoding === undefined && start === begins && hasLength),
            JSON.stringify(answers),
        );
    }
});

t.test('answers as the table of headers says', async (t) => {
    for (const [path, sent, status, expected, body] of HEADERS) {
        const answer = await ask('all', path, { headers: sent });
        const title = `${path} ${JSON.stringify(sent)}`;
        t.equal(answer.status, status, title);
        for (const [name, value] of Object.entries(expected)) {
            t.equal(answer.headers[name], value, `${title}: ${name}`);
        }
        t.match(answer.body, body ?? /./s, title);
    }
});

const DENIED = /^\{"statusCode":403,"error":"Forbidden","message":"[^"]*token[^"]*"\}$/;
const NOT_FOUND = '{"statusCode":404,"error":"Not Found","message":"Not Found"}';

for (const [name, rows] of Object.entries(TABLES)) {
    t.test(`answers as the table says: ${name}`, async (t) => {
        for (const [who, path, expected, accept] of rows) {
            const { status, type, body } = await ask(who, path, accept === undefined ? {} : { accept });
            const title = `${who} ${path} ${accept ?? ''}`;
            const head = await ask(who, path, { method: 'HEAD', ...(accept !== undefined && { accept }) });
            t.strictSame([head.status, head.body], [status, ''], `HEAD ${title}`);
            if (typeof expected === 'number') {
                t.equal(status, expected, title);
                t.match(
                    body,
                    expected === 403 ? DENIED : expected === 404 ? NOT_FOUND : /^\{"statusCode":400,"error":"Bad Request"/,
                    title,
                );
                continue;
            }

            t.equal(status, 200, title);
            if (typeof expected === 'string') {
                t.equal(body, expected, title);
                continue;
            }

            t.equal(type, 'application/json; charset=utf-8', title);
            const answer = JSON.parse(body);
            const found = Array.isArray(answer) ? answer.map(({ id }) => id) : { one: answer.id };
            t.strictSame(found, expected, title);
        }
    });
}

t.test('leads no path and no host to another route', async (t) => {
    server.route({ method: 'GET', path: '/inside', handler: () => 'inside' });
    const cases: readonly (readonly [path: string, host: string, status: 400 | 404])[] = [
        ['/workspaces/..\\..\\..\\inside/', 'localhost', 404],
        ['/%zz\\..\\..\\..\\inside', 'localhost', 404],
        ['/base/', 'x/inside?', 404],
        ['/base/', 'a[b', 404],
        // The server itself finds fault with it.
        ['/%zz', 'x/inside?', 400],
    ];
    for (const [path, host, status] of cases) {
        t.equal((await ask('all', path, { host })).status, status, `${path} ${host}`);
        t.equal((await ask('nobody', path, { host })).status, status === 404 ? 403 : status, `${path} ${host} without a key`);
    }
});

t.test('has rows enough', async (t) => {
    t.ok(Object.values(TABLES).flat().length >= 150);
});
