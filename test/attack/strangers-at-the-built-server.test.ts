import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { get } from 'node:https';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { cpuTimes } from '../../bench/cpu-time.ts';
import { endpoints } from '../../plugins/admin-console/operations.ts';
import { type Asked, builtServer } from '../support/built-server.ts';
import { fixture } from '../support/served.ts';

/*
 * What strangers, with a key and without one, send to the server that `serve` starts. The files beside this one ask the plugins more closely.
 */

/** Clears the screen, sets the title of the window, and turns the direction round. */
const HOSTILE = 'a\u202etxt.exe\u2066\u001b[2J\u009d0;owned\u2028\u007f';
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not come out
const RAW = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const IN_URL = encodeURIComponent(HOSTILE);
const QUERY = `?${IN_URL}=${IN_URL}`;
/** In a header only what fits into a byte. */
const IN_HEADER = 'a\u009d0;owned\u0085';
const LINES = { 'content-type': 'application/x-ndjson' };

/** Loopback, and closed to receivers unless it is said here. */
const RECEIVER = '127.0.0.2';
const server = await builtServer(t, { args: ['--max-streams', '2'], env: { SCANWIRE_EGRESS_ALLOW: RECEIVER } });

t.test('no answer has a sign of a request that a terminal acts on', async (t) => {
    const token = await server.keyWith('inventory:read', 'records:read', 'records:write', 'deliveries:read', 'events:publish');
    const keyed = { token, authorization: `Bearer ${token}` };
    const line = `${JSON.stringify({ [HOSTILE]: HOSTILE })}\n`;
    const rpc = (call: object): Asked => ({ body: { jsonrpc: '2.0', id: HOSTILE, method: 'db.hosts', ...call } });
    const tool = (params: object): Asked => ({
        headers: { accept: 'application/json, text/event-stream' },
        body: { jsonrpc: '2.0', id: HOSTILE, method: 'tools/call', params },
    });
    const attacks: readonly (readonly [path: string, asked?: Asked])[] = [
        ...[
            '/rest_api/v2/workspaces',
            '/rest_api/v2/workspaces/1/hosts',
            '/https-record-schema/records',
            '/webhook-exporter/deliveries',
            '/api/v1/hosts',
            '/api/v1/workspaces',
            '/admin/sign-in',
            '/-/ready',
            '/',
        ].flatMap((path): readonly (readonly [string, Asked?])[] => [
            [path + QUERY],
            [`${path}/${IN_URL}`],
            [path, { headers: { ...keyed, cookie: `a=${IN_HEADER}`, prefer: IN_HEADER, accept: IN_HEADER, 'accept-language': IN_HEADER } }],
            [path, { method: 'POST', headers: { 'content-type': IN_HEADER }, body: line }],
            [path, { headers: { token: IN_HEADER, authorization: `Bearer ${IN_HEADER}` } }],
        ]),
        [`/rest_api/v2/workspaces/1/hosts?fields=${IN_URL}`],
        [`/rest_api/v2/workspaces/1/hosts?address=${IN_URL}`],
        [`/rest_api/v2/workspaces?after=${IN_URL}`],
        [`/webhook-exporter/deliveries?state=${IN_URL}`],
        ['/webhook-exporter/events', { body: { [HOSTILE]: 1, kind: 'x', body: {} } }],
        ['/webhook-exporter/events', { body: { kind: HOSTILE, body: {} } }],
        [
            '/webhook-exporter/events',
            { body: { kind: 'idr_investigation_created', body: { [HOSTILE]: HOSTILE, actors: { [HOSTILE]: 1 } } } },
        ],
        ['/webhook-exporter/events', { body: { kind: 'idr_investigation_created', body: {}, rules: { [HOSTILE]: HOSTILE } } }],
        ['/webhook-exporter/events', { body: { kind: 'x', body: {}, owner: HOSTILE, orderKey: HOSTILE, idempotencyKey: HOSTILE } }],
        ['/webhook-exporter/events', { headers: { 'idempotency-key': IN_HEADER }, body: { kind: 'x', body: {} } }],
        ['/webhook-exporter/events', { headers: { 'content-type': 'application/json' }, body: `{"${HOSTILE}` }],
        ['/https-record-schema/check', { headers: LINES, body: line }],
        ['/https-record-schema/check', { headers: { ...LINES, accept: 'application/x-ndjson' }, body: line }],
        ['/https-record-schema/check?results=all', { headers: LINES, body: HOSTILE }],
        ['/https-record-schema/records', { headers: LINES, body: line }],
        ['/https-record-schema/records', { headers: { ...LINES, 'content-encoding': IN_HEADER }, body: line }],
        [`/https-record-schema/records?results=${IN_URL}`, { headers: LINES, body: line }],
        ['/api/v1/json-rpc', rpc({})],
        ['/api/v1/json-rpc', rpc({ method: HOSTILE })],
        ['/api/v1/json-rpc', rpc({ [HOSTILE]: HOSTILE, jsonrpc: HOSTILE })],
        ['/api/v1/json-rpc', rpc({ params: [{ workspace: HOSTILE }] })],
        ['/api/v1/json-rpc', rpc({ params: [{ addresses: [HOSTILE] }] })],
        ['/api/v1/json-rpc', rpc({ params: [{ limit: HOSTILE, [HOSTILE]: HOSTILE }] })],
        ['/api/v1/json-rpc', rpc({ params: HOSTILE })],
        ['/api/v1/json-rpc', { body: HOSTILE }],
        ['/mcp', tool({ name: HOSTILE, arguments: {} })],
        ['/mcp', tool({ name: 'hosts', arguments: { [HOSTILE]: HOSTILE } })],
        ['/mcp', tool({ name: 'hosts', arguments: { workspace: HOSTILE } })],
        ['/mcp', tool({ name: 'hosts', arguments: { cursor: HOSTILE } })],
        ['/mcp', tool({ [HOSTILE]: HOSTILE })],
        ['/admin/sign-in', { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: `link=${IN_URL}` }],
    ];
    for (const [path, { headers, ...asked } = {}] of attacks) {
        const answer = await server.asked(path, { ...asked, headers: { ...keyed, ...headers } });
        const about = `${answer.status} of ${asked.body === undefined ? 'GET' : 'POST'} ${encodeURI(path)} ${encodeURI(String(JSON.stringify(asked.body ?? '')).slice(0, 80))}`;
        t.notOk(RAW.test(answer.text), about);
        t.notOk(RAW.test(Object.values(answer.headers).join()), `headers: ${about}`);
        t.not(answer.status, 500, about);
        for (const { text } of path === '/mcp' ? (JSON.parse(answer.text).result?.content ?? []) : []) {
            t.notOk(RAW.test(text), `as an assistant reads it: ${about}`);
        }
    }
    t.notOk(RAW.test(server.output()), 'nor has the log');
});

t.test('no answer to its operator has a sign of a stranger that a terminal acts on', async (t) => {
    const named = { name: 'a\u202etxt.exe' };
    const attacks: readonly (readonly [path: string, asked?: Asked])[] = [
        ['/keys', { body: named }],
        ['/keys'],
        [`/keys${QUERY}`],
        [`/keys/${IN_URL}`],
        ['/keys', { body: { [HOSTILE]: HOSTILE } }],
        ['/exporters', { body: { ...named, url: 'https://example.com/', owner: 'a\u202etxt.exe' } }],
        ['/exporters'],
        ['/exporters', { body: { url: `https://example.com/${HOSTILE}`, filter: { [HOSTILE]: HOSTILE } } }],
        ['/exporters', { body: { url: 'https://example.com/', headers: [[HOSTILE, HOSTILE]] } }],
        [`/events/${IN_URL}`, { body: { body: { [HOSTILE]: HOSTILE } } }],
        [`/deliveries?state=${IN_URL}`],
        [`/workspaces/${IN_URL}`],
        [`/hosts?workspace=${IN_URL}`],
        [`/import?workspace=${IN_URL}`, { headers: LINES, body: `${JSON.stringify({ [HOSTILE]: HOSTILE })}\n` }],
        ['/license', { body: { text: HOSTILE } }],
        ['/audit'],
        [`/${IN_URL}`],
    ];
    for (const [path, asked] of attacks) {
        const { status, text } = await server.askedOfSocket(path, asked);
        t.notOk(RAW.test(text), `${status} of ${encodeURI(path)}`);
        t.not(status, 500, encodeURI(path));
    }
    t.notOk(RAW.test(server.output()));
});

/** Everything that a stranger could have changed. */
async function everything(): Promise<string> {
    const [keys, exporters, deliveries, workspaces] = await Promise.all([
        server.admin('listKeys', {}),
        server.admin('listExporters', {}),
        server.admin('listDeliveries', {}),
        server.admin('listWorkspaces', {}),
    ]);
    return JSON.stringify([keys.map(({ id, name, revokedAt }) => [id, name, revokedAt]), exporters, deliveries, workspaces]);
}

t.test('nothing of the administration is open to the network, whatever key and cookie somebody has', async (t) => {
    const key = await server.keyWith('admin', 'inventory:read', 'secrets:read', 'records:read', 'records:write', 'deliveries:read');
    const [own] = await server.admin('listKeys', {});
    const { id } = await server.admin('createExporter', { url: 'https://example.com/', name: 'of the operator' });
    const before = await everything();
    const headers = {
        token: key,
        authorization: `Bearer ${key}`,
        cookie: `scanwire-console=${'a'.repeat(43)}; token=${key}`,
        'sec-fetch-site': 'same-origin',
        'x-forwarded-for': '127.0.0.1',
        host: 'localhost',
    };
    const body = { name: 'default', url: 'https://example.com/', workspace: 'default', address: '0.0.0.0/0', body: {}, start: true };
    for (const prefix of ['/admin-console', '/admin', '']) {
        for (const [name, { method, path }] of Object.entries(endpoints)) {
            const filled = path.replace('{id}', path.startsWith('/keys') ? String(own?.id) : id).replace(/\{\w+\}/, 'default');
            const { status } = await server.asked(prefix + filled, { method, headers, ...(method !== 'GET' && { body }) });
            t.ok([302, 403, 404].includes(status), `${name} at ${prefix}${path}: ${status}`);
        }
    }
    const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
    for (const path of ['/admin/keys', '/admin/exporters', `/admin/exporters/${id}/remove`, '/admin/sign-out', '/sign-in', '/backup']) {
        const { status } = await server.asked(path, { headers: form, body: 'name=default&url=https://example.com/' });
        t.ok([302, 403, 404].includes(status), `${path}: ${status}`);
    }
    t.equal(await everything(), before);
});

const MARKUP = `"'><img src=x onerror=alert(1)></textarea></select></script><script>alert(1)</script>{{ 7 | times: 191731 }}`;
const RUN = /<img|<script>|1342117/;

/** The cookie of somebody whom the operator has let in. */
async function signedIn(): Promise<string> {
    const { url } = JSON.parse((await server.askedOfSocket('/sign-in', { body: {} })).text) as { readonly url: string };
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const link = new URL(url).searchParams.get('link');
    const entered = await server.asked('/admin/sign-in', { headers, body: `link=${link}` });
    return String(entered.headers['set-cookie']?.[0]?.split(';')[0]);
}

/** A receiver whose every word is markup. */
async function markingUp(t: Test): Promise<string> {
    const receiver = createServer((request, response) => {
        request.resume().on('end', () => response.writeHead(500, MARKUP, { 'x-about': MARKUP, 'retry-after': MARKUP }).end(MARKUP));
    }).listen(0, RECEIVER);
    await once(receiver, 'listening');
    t.teardown(() => {
        receiver.closeAllConnections();
        receiver.close();
    });
    return `http://${RECEIVER}:${(receiver.address() as AddressInfo).port}/`;
}

t.test('no page shows markup of strangers as markup, or is sent a form from elsewhere', async (t) => {
    const body = { ...JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')), title: MARKUP };
    const url = await markingUp(t);
    await server.admin('createKey', { name: MARKUP });
    const { id } = await server.admin('createExporter', { url, name: MARKUP, owner: MARKUP, start: true });
    const published = { kind: 'idr_investigation_created', body, owner: MARKUP };
    const token = await server.keyWith('events:publish');
    const { deliveries } = JSON.parse((await server.asked('/webhook-exporter/events', { headers: { token }, body: published })).text);
    await until(async () => (await server.admin('showDelivery', { id: deliveries[0] })).lastCode !== null);

    const cookie = await signedIn();
    const asked = encodeURIComponent(MARKUP);
    for (const path of [
        '/overview',
        '/keys',
        '/exporters',
        `/exporters/${id}?done=${asked}&warning=${asked}`,
        `/exporters/${id}/edit`,
        '/deliveries',
        `/deliveries?kind=${asked}&eventId=${asked}&since=${asked}&state=${asked}`,
        `/deliveries/${deliveries[0]}`,
        `/deliveries/${asked}`,
    ]) {
        const { status, text } = await server.asked(`/admin${path}`, { headers: { cookie } });
        t.ok(status < 500 && status !== 302, `${status} of ${path}`);
        t.notMatch(text, RUN, path);
        t.ok(status === 404 || /&lt;img src=x/.test(text), `${path} shows it as it is`);
    }

    const before = await everything();
    const { text } = await server.asked('/admin/keys', { headers: { cookie } });
    const formToken = / name="(\w+)" value="([^"]+)"/.exec(text)?.slice(1).join('=');
    for (const [name, value] of [
        ['sec-fetch-site', 'cross-site'],
        ['sec-fetch-site', 'same-site'],
        ['origin', 'https://evil.example.com'],
    ] as const) {
        for (const fields of ['name=forged', `name=forged&${formToken}`]) {
            const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded', [name]: value };
            t.equal((await server.asked('/admin/keys', { headers, body: fields })).status, 403, `${name} ${value}: ${fields}`);
        }
    }
    const signed = { cookie, 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
    t.equal((await server.asked('/admin/keys', { headers: signed, body: 'name=forged' })).status, 403, 'without the token of the form');
    t.equal(await everything(), before);
});

t.test('an owner or a key that no database keeps is refused, beside events of others', async (t) => {
    const headers = { token: await server.keyWith('events:publish') };
    const body = JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8'));
    const published = async (more: object): Promise<number> =>
        (await server.asked('/webhook-exporter/events', { headers, body: { kind: 'idr_investigation_created', body, ...more } })).status;
    for (const field of ['owner', 'orderKey', 'idempotencyKey']) {
        for (const text of ['\0', 'a\0', '\ud800', 'a\udc00']) {
            const others = Array.from({ length: 8 }, (_, number) => published({ [field]: `of others ${number}` }));
            const [status, ...statuses] = await Promise.all([published({ [field]: text }), ...others]);
            t.equal(status, 400, `${field} ${JSON.stringify(text)}`);
            t.same(new Set(statuses), new Set([202]), `beside ${field} ${JSON.stringify(text)}`);
        }
    }
});

/** CPU time of the server for what is asked, in milliseconds; the least of up to three, since what else goes on only ever adds to it. */
async function leastCost(work: () => Promise<unknown>, allowed = 0): Promise<number> {
    const spent = async (): Promise<number> => ((await cpuTimes({ server: server.pid })).server ?? 0) / 1000;
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && least > allowed; tries += 1) {
        const before = await spent();
        await work();
        least = Math.min(least, (await spent()) - before);
    }
    return least;
}

t.test('no long text takes long', async (t) => {
    const token = await server.keyWith('inventory:read', 'records:write', 'deliveries:read', 'events:publish');
    const kind = 'idr_investigation_created';
    const texts = [' ', '\t', 'a', '"', '\\', ',', '%20', '.', '::', '=;'].map(
        (sign) => (length: number) => `a${sign.repeat(length / sign.length)}!`,
    );
    const inQuery = (text: string): string => encodeURIComponent(text).slice(0, 14_000);
    const headers = ['token', 'authorization', 'cookie', 'accept', 'accept-encoding', 'prefer', 'range', 'if-none-match', 'content-type'];
    const attacks: Readonly<Record<string, (long: string, inHead: string) => readonly [path: string, asked?: Asked]>> = {
        event: (long) => ['/webhook-exporter/events', { body: { kind: long, body: { [long]: long }, owner: long, orderKey: long } }],
        'body of an event': (long) => ['/webhook-exporter/events', { body: { kind, body: { [long]: long }, idempotencyKey: long } }],
        'key of an event': (_, inHead) => [
            '/webhook-exporter/events',
            { headers: { 'idempotency-key': inHead }, body: { kind, body: {} } },
        ],
        record: (long) => ['/https-record-schema/check', { headers: LINES, body: `{"data":"${long}` }],
        call: (long) => ['/api/v1/json-rpc', { body: `{"id":9007199254740993,"x":"${long}` }],
        'options of a call': (address) => [
            '/api/v1/json-rpc',
            { body: { jsonrpc: '2.0', id: 1, method: 'db.hosts', params: { address } } },
        ],
        address: (_, inHead) => [`/rest_api/v2/workspaces/1/hosts?address=${inQuery(inHead)}`],
        time: (_, inHead) => [`/webhook-exporter/deliveries?since=${inQuery(inHead)}`],
        ...Object.fromEntries(headers.map((name) => [name, (_, inHead) => ['/rest_api/v2/workspaces', { headers: { [name]: inHead } }]])),
    };
    for (const [name, attack] of Object.entries(attacks)) {
        const all = async (): Promise<void> => {
            for (const text of texts) {
                const [path, { headers, ...asked } = {}] = attack(text(60_000), text(14_000));
                await server.asked(path, { ...asked, headers: { token, ...headers } });
            }
        };
        const spent = await leastCost(all, 500);
        t.ok(spent <= 500, `${name}: ${spent} ms`);
    }
});

t.test('who reads much, or asks much, keeps nobody out', async (t) => {
    const token = await server.keyWith();
    const about = 'x'.repeat(1_000);
    const line = (_: unknown, number: number): string =>
        `${JSON.stringify({ address: `10.0.${number >> 8}.${number & 255}`, comments: about, info: about })}\n`;
    const source = (async function* () {
        yield Buffer.from(Array.from({ length: 5_000 }, line).join(''));
    })();
    await server.admin('importScan', { workspace: 'default', source });

    t.test('indexes are given out so often at once and no more', async (t) => {
        const path = '/rest_api/v2/workspaces/1/hosts';
        const readers = await Promise.all(
            [path, '/api/v1/hosts'].map(async (one) => {
                const headers = { token, authorization: `Bearer ${token}` };
                const reader = get(server.origin + one, { headers, rejectUnauthorized: false, agent: false });
                t.teardown(() => reader.destroy());
                reader.on('error', () => {});
                const [response] = await once(reader, 'response');
                t.equal(response.on('error', () => {}).statusCode, 200);
                return reader;
            }),
        );
        const refused = await server.asked(path, { headers: { token } });
        t.match(refused, { status: 503, headers: { 'retry-after': '5' }, text: /Too many indexes are being read/ });
        t.equal((await server.asked(`${path}?limit=1`, { headers: { token } })).status, 200);
        readers[0]?.destroy();
        await until(async () => (await server.asked('/rest_api/v2/workspaces', { headers: { token } })).status === 200);
    });

    t.test('a list costs little more with a thousand ranges than with a few', async (t) => {
        const listed = async (ranges: number): Promise<void> => {
            const addresses = Array.from({ length: ranges }, (_, number) => `172.${16 + (number >> 8)}.${number & 255}.0/24`);
            const headers = { authorization: `Bearer ${token}` };
            const body = { jsonrpc: '2.0', method: 'db.hosts', id: 1, params: [{ addresses }] };
            t.match(JSON.parse((await server.asked('/api/v1/json-rpc', { headers, body })).text), { result: { hosts: [] } });
        };
        // A single one is left to the database.
        await listed(2);
        const allowed = Math.max(5 * (await leastCost(() => listed(2))), 100);
        const spent = await leastCost(() => listed(1_000), allowed);
        t.ok(spent <= allowed, `${spent} of ${allowed} ms`);
    });
});
