import cookie from '@hapi/cookie';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys, memoryInventory, memoryRecords } from '../../adapters/memory/index.ts';
import { SCOPES } from '../../lib/keys/scopes.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { healthRoutes } from '../../plugins/health.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { exporterRoutes } from '../../plugins/webhook-exporter/routes.ts';
import { admin, host, register, systemOf } from './admin-console/host.ts';

/*
 * In a server of somebody else, whose strategies and extensions look at cookies on every route.
 */

const READING = { store: memoryInventory(), license: alwaysLicensed() };
const RPC = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** One request to each plugin that takes the strategy of an application, which is answered with 200. */
const REQUESTS: readonly { readonly method: string; readonly url: string; readonly payload?: object }[] = [
    { method: 'GET', url: '/rest_api/v2/base' },
    { method: 'GET', url: '/rest_api/v2/workspaces' },
    { method: 'GET', url: '/rest_api/v2/openapi.json' },
    { method: 'GET', url: '/api/v1/msf/version' },
    { method: 'GET', url: '/api/v1/workspaces' },
    { method: 'POST', url: '/mcp', payload: RPC },
];

/** Cookies of which hapi takes none, and of which it takes some. */
const MALFORMED = ['a="', 'a=\u0001', 'a', '=', 'lang=de; sid=%zz; b=c d', 'sid=Fe26.2**x', '__proto__=1', ';;;', 'ü=ü'];

async function asked(server: Server, headers: Readonly<Record<string, string>>) {
    const accept = 'application/json, text/event-stream';
    const answers = [];
    for (const request of REQUESTS) {
        const { statusCode, headers: answered } = await server.inject({ ...request, headers: { accept, ...headers } });
        answers.push([request.url, statusCode, answered['set-cookie']]);
    }
    return answers;
}

const all = (status: number): unknown[] => REQUESTS.map(({ url }) => [url, status, undefined]);

t.test('lets in who has the session of an application, by a cookie', async (t) => {
    const server = hapiServer({ debug: false });
    await server.register(cookie);
    server.auth.strategy('session', 'cookie', {
        cookie: { name: 'sid', password: 'p'.repeat(32), isSecure: false },
        validate: async (_, session) => ({ isValid: (session as { readonly id?: string }).id === 'ada' }),
    });
    server.route({
        method: 'POST',
        path: '/sign-in',
        handler(request) {
            request.cookieAuth.set({ id: 'ada' });
            return 'in';
        },
    });
    await server.register([
        { plugin: restApiV2, options: { ...READING, auth: 'session' } },
        { plugin: metasploitData, options: { ...READING, auth: 'session' } },
        { plugin: mcp, options: { ...READING, auth: 'session' } },
    ]);

    const [signedIn = ''] = [(await server.inject({ method: 'POST', url: '/sign-in' })).headers['set-cookie']].flat();
    const session = signedIn.split(';')[0] ?? '';
    t.match(session, /^sid=./);
    t.same(await asked(server, { cookie: session }), all(200));
    t.same(await asked(server, { cookie: `lang=de; ${session}; b=c d` }), all(200), 'beside one that is malformed');
    t.same(await asked(server, {}), all(401));
    for (const malformed of MALFORMED) {
        t.same(await asked(server, { cookie: malformed }), all(401), malformed);
    }
});

t.test('lets in who has a key where the application looks at cookies first, malformed ones too, and sets none', async (t) => {
    const server = hapiServer({ debug: false });
    const languages = new Set<unknown>();
    server.ext('onPreAuth', ({ state }, h) => {
        languages.add(state.lang);
        return h.continue;
    });
    await server.register([
        { plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } },
        { plugin: restApiV2, options: READING },
        { plugin: metasploitData, options: READING },
        { plugin: mcp, options: READING },
    ]);
    const { key } = await server.plugins['token-auth'].create('all', { scopes: SCOPES });
    t.same(await asked(server, { token: key }), all(200));
    for (const malformed of MALFORMED) {
        t.same(await asked(server, { token: key, cookie: malformed }), all(200), malformed);
    }
    t.same([...languages], [undefined, 'de'], 'what can be read of them is');
});

t.test('takes cookies that are malformed for none on the JSON routes of the administration and of records', async (t) => {
    const server = await host({ debug: false });
    await register(server, { system: systemOf(server) });
    await server.register({ plugin: httpsRecordSchema, options: { records: memoryRecords() } });
    const { key } = await server.plugins['token-auth'].create('all', { scopes: SCOPES });
    const record = JSON.stringify({ data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 8443 });
    const lines = { 'content-type': 'application/x-ndjson' };
    const requests = [
        { method: 'GET', url: '/admin-console/keys' },
        { method: 'POST', url: '/admin-console/keys', payload: { name: 'another' } },
        { method: 'GET', url: '/https-record-schema' },
        { method: 'GET', url: '/https-record-schema/records' },
        { method: 'POST', url: '/https-record-schema/records', payload: record, headers: lines },
        { method: 'POST', url: '/https-record-schema/check', payload: record, headers: lines },
    ];
    for (const cookie of MALFORMED) {
        for (const { headers, ...request } of requests) {
            const { statusCode } = await server.inject({ ...request, headers: { ...headers, ...admin, token: key, cookie } });
            t.equal(statusCode, 200, `${request.method} ${request.url} with ${cookie}`);
        }
    }
});

t.test('shows cookies that can be read to the application on routes of all plugins', async (t) => {
    const server = await host({ debug: false });
    await register(server, { system: systemOf(server), screens: {} });
    await server.register([
        { plugin: restApiV2, options: { ...READING, openapi: { page: '/api-docs' } } },
        { plugin: metasploitData, options: READING },
        { plugin: mcp, options: READING },
        { plugin: metrics, options: { auth: false } },
        { plugin: httpsRecordSchema, options: { records: memoryRecords() } },
    ]);
    server.route(healthRoutes(server.plugins['webhook-exporter'].readiness));
    const { publish, deliveries } = server.plugins['webhook-exporter'];
    server.route(exporterRoutes({ publish, deliveries }, { prefix: '/webhook-exporter', auth: 'token' }, 1_000_000));

    const unread = server.table().filter(({ settings: { state } }) => state?.parse !== true || state.failAction !== 'ignore');
    t.same(
        unread.map(({ path }) => path),
        [],
    );
});
