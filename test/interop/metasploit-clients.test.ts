/*
 * Clients of Metasploit's remote data service, from checkouts that variables name, on `metasploit-data`: the framework's own client classes
 * under Ruby (`METASPLOIT_CHECKOUT`), those of JSON-RPC too, and libmsf (`LIBMSF_CHECKOUT`). What they asked, and the answers that they accepted, are kept and asked
 * again where no checkout is at hand.
 */
import { execFile, execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import Hapi, { type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryApiKeys, memoryInventory } from '../../adapters/memory/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { VERSION } from '../../lib/version.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { holdsTranscript, keptTranscript } from './transcript.ts';

interface Asked {
    readonly method: string;
    readonly path: string;
    /** Of a call of JSON-RPC. What is sent with an event, the only thing that is written, is dropped. */
    readonly body?: string;
}

interface Exchange extends Asked {
    readonly status: number;
    readonly type: string;
    readonly answer: unknown;
}

const NOW = new Date('2026-11-21T09:30:00.123Z');
const https = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' } as const;
const dns = { port: 53, proto: 'udp', state: 'closed', name: '', info: null } as const;
const HOSTS: readonly HostInput[] = [
    { address: '192.0.2.1', name: 'web', os_name: 'Linux', mac: '00:11:22:33:44:55', services: [https, dns] },
    { address: '192.0.2.2', state: 'down' },
    { address: '2001:db8::1', services: [https], comments: 'Größe – 😀' },
];

/** A data service whose rows are the same in every run. */
async function dataService(t: Test): Promise<{ readonly server: Server; readonly key: string; readonly asked: Asked[] }> {
    const store = memoryInventory({ clock: () => NOW });
    await store.importHosts('default', each(HOSTS));
    await store.importHosts('lab', each([{ address: '10.0.0.1', services: [https] }]));
    await store.addVuln(1, { name: 'Heartbleed', info: 'CVE-2014-0160' });
    await store.addVuln(3, { name: 'Weak cipher' });
    await store.addNote(1, { ntype: 'host.os', data: { os: 'Linux', nested: [1, { deep: null }] }, service_id: 2 });
    await store.addNote(3, { ntype: 'x' });
    await store.addSession(1, { stype: 'shell', port: 4444 });

    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    const asked: Asked[] = [];
    server.ext('onPreHandler', ({ method, url, payload }, h) => {
        const body = typeof payload === 'string' && { body: payload.replace(RANDOM_ID, `"id":${ID}`) };
        asked.push({ method: method.toUpperCase(), path: url.pathname + url.search, ...body });
        return h.continue;
    });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    await server.register({ plugin: metasploitData, options: { store, license: alwaysLicensed() } });
    await server.start();
    t.teardown(() => server.stop());
    const { key } = await server.plugins['token-auth'].create('client');
    return { server, key, asked };
}

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

/** The framework's client makes up ids of 63 bits. Kept is one of them, in an answer as a text: a number here has 53. */
const RANDOM_ID = /"id":\d{16,}/;
const ID = '9223372036854775806';

async function exchange(server: Server, key: string, { method, path, body }: Asked): Promise<Exchange> {
    const sent = { method, url: path, ...(body !== undefined && { payload: body }) };
    const { statusCode, headers, payload } = await server.inject({ ...sent, headers: { authorization: `Bearer ${key}` } });
    const text = payload.replace(`scanwire ${VERSION}`, 'scanwire <version>').replace(RANDOM_ID, (id) => `"id":"${id.slice(5)}"`);
    const asked = { method, path, ...(body !== undefined && { body }) };
    return { ...asked, status: statusCode, type: String(headers['content-type']), answer: JSON.parse(text) as unknown };
}

/** Asks by a program of `drivers/`; holds what was asked and answered to the transcript, and returns what the client made of it. */
async function drive(t: Test, name: string, program: readonly string[], checkout: string): Promise<unknown> {
    const { server, key, asked } = await dataService(t);
    const [command = '', driver = ''] = program;
    const path = fileURLToPath(new URL(`../../../test/interop/drivers/${driver}`, import.meta.url));
    const { stdout } = await promisify(execFile)(command, [path, checkout, server.info.uri, key]);
    const requests = asked.splice(0);
    const exchanges = [];
    for (const one of requests) {
        exchanges.push(await exchange(server, key, one));
    }
    holdsTranscript(t, name, { with: `${name}, ${revision(checkout)}`, exchanges });
    return JSON.parse(stdout) as unknown;
}

/** The commit of a checkout that is one of git. */
function revision(checkout: string): string {
    try {
        return execFileSync('git', ['-C', checkout, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim();
    } catch {
        return 'files without a commit';
    }
}

async function asks(t: Test, name: string, ...paths: string[]): Promise<void> {
    const { server, key } = await dataService(t);
    const { exchanges } = keptTranscript<Exchange>(name);
    t.strictSame(
        paths.filter((path) => !exchanges.some((one) => one.path.startsWith(path))),
        [],
        'it asked for all that there is',
    );
    for (const kept of exchanges) {
        t.strictSame(await exchange(server, key, kept), kept, `${kept.method} ${kept.path}`);
    }
}

const { METASPLOIT_CHECKOUT: framework, LIBMSF_CHECKOUT: libmsf, PYTHON: python = 'python3' } = process.env;
const CREATED = '2026-11-21 09:30:00 UTC';
const SECOND = '2026-11-21T09:30:00Z';
const TIMES = { created_at: SECOND, updated_at: SECOND };
const HOST = { state: 'alive', os_flavor: '', os_service_pack: '', os_language: '', purpose: '', info: '' };

t.test(
    "the framework's own client reads the inventory",
    { skip: framework === undefined && 'METASPLOIT_CHECKOUT names no checkout' },
    async (t) => {
        const understood = await drive(t, 'metasploit-framework', ['ruby', 'framework_client.rb'], framework ?? '');
        t.strictSame(understood, {
            workspace: [{ id: 1, name: 'default', limit_to_network: false, created_at: CREATED }],
            hosts: [
                { id: 1, address: '192.0.2.1', state: 'alive', os_name: 'Linux', name: 'web', created_at: CREATED },
                { id: 3, address: '2001:db8::1', state: 'alive', os_name: '', name: '2001:db8::1', created_at: CREATED },
            ],
            all_hosts: ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
            searched: ['192.0.2.1'],
            by_address: ['192.0.2.2'],
            shown: [{ id: 1, address: '192.0.2.1', service_count: 2 }],
            services: [
                ['192.0.2.1', 443, 'tcp', 'open', 'https', 'nginx'],
                ['192.0.2.1', 53, 'udp', 'closed', '', null],
                ['2001:db8::1', 443, 'tcp', 'open', 'https', 'nginx'],
            ],
            vulns: [
                ['192.0.2.1', 'Heartbleed', 'CVE-2014-0160', ['CVE-2014-0160']],
                ['2001:db8::1', 'Weak cipher', null, []],
            ],
            notes: [
                ['192.0.2.1', 'host.os', { os: 'Linux', nested: [1, { deep: null }] }],
                ['2001:db8::1', 'x', {}],
            ],
            sessions: [{ id: 1, stype: 'shell', port: 4444 }],
            loots: [],
            credentials: [],
            event: '{"data":""}',
        });
    },
);

const FOUND = { id: true };

t.test(
    "the framework's own clients of JSON-RPC read the inventory",
    { skip: framework === undefined && 'METASPLOIT_CHECKOUT names no checkout' },
    async (t) => {
        const understood = await drive(t, 'metasploit-json-rpc', ['ruby', 'json_rpc_clients.rb'], framework ?? '');
        t.match(understood, {
            framework: {
                workspaces: { ...FOUND, result: { workspaces: [{ name: 'default' }, { name: 'lab' }] } },
                hosts: { ...FOUND, result: { hosts: ['192.0.2.1', '192.0.2.2', '2001:db8::1'].map((address) => ({ address })) } },
                some_hosts: { ...FOUND, result: { hosts: [{ address: '2001:db8::1' }] } },
                by_keyword: { ...FOUND, result: { hosts: [{ address: '10.0.0.1' }] } },
                services: { ...FOUND, result: { services: [{ host: '192.0.2.1', port: 53, proto: 'udp' }] } },
                vulns: { ...FOUND, result: { vulns: [{ name: 'Heartbleed', refs: 'CVE-2014-0160' }, { name: 'Weak cipher' }] } },
                notes: { ...FOUND, result: { notes: [{ type: 'host.os', service: 53 }, { type: 'x' }] } },
                loots: { ...FOUND, result: { loots: [] } },
                creds: { ...FOUND, result: { creds: [] } },
                nobody: { ...FOUND, failed: 'Msf::RPC::JSON::ErrorResponse', code: 404, message: 'Unknown workspace "nobody"' },
                unknown: { ...FOUND, failed: 'Msf::RPC::JSON::ErrorResponse', code: -32_601 },
            },
        });
        t.strictSame((understood as { readonly mcp: unknown }).mcp, {
            hosts: [{ ...TIMES, ...HOST, address: '192.0.2.1', hostname: 'web', mac_address: '00:11:22:33:44:55', os_name: 'Linux' }],
            services: [
                {
                    ...{ host_address: '192.0.2.1', ...TIMES, port: 443, protocol: 'tcp', state: 'open' },
                    ...{ name: 'https', info: 'nginx', parents: [] },
                },
            ],
            vulns: [
                { host: '192.0.2.1', port: 443, protocol: 'tcp', name: 'Heartbleed', references: ['CVE-2014-0160'], created_at: SECOND },
            ],
            other_vulns: [],
            notes: [
                {
                    ...{ host: '192.0.2.1', service_name_or_port: 53, note_type: 'host.os' },
                    ...{ data: '{"os":"Linux","nested":[1,{"deep":null}]}', created_at: SECOND },
                },
            ],
            other_notes: [],
            creds: [],
            loots: [],
            nobody: 'Msf::MCP::Metasploit::APIError: Unknown workspace "nobody"',
            stranger: 'Msf::MCP::Metasploit::AuthenticationError: Invalid authentication token',
        });
    },
);

t.test('libmsf reads the inventory', { skip: libmsf === undefined && 'LIBMSF_CHECKOUT names no checkout' }, async (t) => {
    const understood = await drive(t, 'libmsf', [python, 'libmsf_client.py'], libmsf ?? '');
    t.match(understood, {
        workspaces: [{ name: 'default' }, { name: 'lab' }],
        hosts: [{ address: '192.0.2.1' }, { address: '192.0.2.2', state: 'down' }, { address: '2001:db8::1' }],
        shown: { address: '192.0.2.1', service_count: 2 },
        services: [{ port: 443 }, { port: 53 }, { port: 443 }],
        vulns: [{ name: 'Heartbleed' }, { name: 'Weak cipher' }],
        notes: [{ ntype: 'host.os' }, { ntype: 'x' }],
        loots: [],
        credentials: [],
        logins: [],
    });
});

const LISTS = ['workspaces', 'hosts', 'services', 'vulns', 'notes', 'loots', 'credentials'].map((list) => `/api/v1/${list}`);

t.test("what the framework's own client asked is answered as it accepted it", (t) =>
    asks(t, 'metasploit-framework', '/api/v1/msf/version', '/api/v1/sessions', '/api/v1/events', ...LISTS),
);

t.test('what libmsf asked is answered as it accepted it', (t) => asks(t, 'libmsf', '/api/v1/logins', ...LISTS));

t.test("what the framework's own clients of JSON-RPC asked is answered as they accepted it", async (t) => {
    await asks(t, 'metasploit-json-rpc', '/api/v1/json-rpc');
    const called = keptTranscript<Exchange>('metasploit-json-rpc').exchanges.map(({ body = '{}' }) => JSON.parse(body).method);
    const methods = ['workspaces', 'hosts', 'services', 'vulns', 'notes', 'loots', 'creds'].map((name) => `db.${name}`);
    t.strictSame(
        methods.filter((method) => !called.includes(method)),
        [],
    );
});
