import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import Hapi from '@hapi/hapi';
import t from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import { startMetrics } from '../../cli/metrics-server.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { webhookMetrics, webhookTracing } from '../../lib/webhooks/index.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';

/*
 * A host that has not installed what is optional. In this process Node looks for these packages under names that nobody has taken, and so
 * says itself that they are not there.
 */

const LEFT_OUT =
    /^(?:@modelcontextprotocol\/sdk|@opentelemetry\/api|@picocss\/pico|htmx\.org|pg|prom-client|rate-limiter-flexible|swagger-ui-dist)(?:\/|$)/;

const hooks = `export const resolve = (name, context, next) => next(${LEFT_OUT}.test(name) ? 'left-out-' + name.replace('@', '') : name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const options = { store: memoryInventory(), license: alwaysLicensed(), auth: false } as const;

t.test('mcp names the package that it needs, and the line that installs it', async (t) => {
    await t.rejects(Hapi.server().register({ plugin: mcp, options }), {
        code: 'MISCONFIGURED',
        message: 'The plugin mcp needs the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk@1',
    });
});

t.test('rest-api-v2 names what the page of its document needs, and goes without', async (t) => {
    const withPage = { ...options, openapi: { page: '/api-docs' } };
    await t.rejects(Hapi.server().register({ plugin: restApiV2, options: withPage }), {
        code: 'MISCONFIGURED',
        message: 'rest-api-v2 options: openapi.page needs the package swagger-ui-dist: npm install swagger-ui-dist@5',
    });
    const server = Hapi.server();
    await server.register({ plugin: restApiV2, options });
    t.equal((await server.inject('/rest_api/v2/openapi.json')).statusCode, 200);
});

t.test('the command line serves health without metrics, and says what they need', async (t) => {
    const said: string[] = [];
    const source = { readiness: async () => ({ ready: true, reasons: [] }), overview: () => Promise.reject(new Error('not asked')) };
    const server = await startMetrics(
        { host: '127.0.0.1', port: 0 },
        { source: () => source, onError: ({ message }) => void said.push(message) },
    );
    t.teardown(() => server.stop());
    t.strictSame(said, ['GET /metrics needs the package prom-client: npm install prom-client@15']);
    server.hear({ type: 'event.accepted', eventId: 'e', kind: 'scan_finished', deliveries: 1, inTransaction: false });
    const statuses = ['/health/live', '/health/ready', '/metrics'].map(async (path) => (await fetch(`${server.uri}${path}`)).status);
    t.strictSame(await Promise.all(statuses), [200, 200, 404]);
});

t.test('whatever needs an optional package says which, and the line that installs it', async (t) => {
    const { optionalDependencies, peerDependenciesMeta } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, object>;
    const system = { inventory: memoryInventory() };
    const screens = { system, auth: 'session', authorize: () => true, screens: {} };
    const needs: Readonly<Record<string, () => unknown>> = {
        '@modelcontextprotocol/sdk': () => Hapi.server().register({ plugin: mcp, options }),
        '@opentelemetry/api': () => webhookTracing(),
        '@picocss/pico': () => withSession().register({ plugin: adminConsole, options: screens }),
        pg: () => openScanDatabase({ connectionString: 'postgres://127.0.0.1:1/x' }),
        'prom-client': () => webhookMetrics({ source: () => null }),
        'rate-limiter-flexible': () => Hapi.server().register({ plugin: restApiV2, options: { ...options, rateLimit: { requests: 1 } } }),
        'swagger-ui-dist': () => Hapi.server().register({ plugin: restApiV2, options: { ...options, openapi: { page: '/api-docs' } } }),
    };
    for (const [name, use] of Object.entries(needs)) {
        const message = new RegExp(`needs the package ${name}: npm install ${name}(?:@\\d+)?$`);
        await t.rejects(async () => use(), { code: 'MISCONFIGURED', message }, name);
    }
    t.strictSame(
        Object.keys({ ...optionalDependencies, ...peerDependenciesMeta }).filter((name) => !(name in needs)),
        ['@electric-sql/pglite', 'ioredis', 'selfsigned', 'htmx.org'],
        'three are left out in test/peers, and htmx.org is loaded with @picocss/pico',
    );
});

function withSession(): Hapi.Server {
    const server = Hapi.server();
    server.auth.scheme('session', () => ({ authenticate: (_, h) => h.authenticated({ credentials: { user: 'ada' } }) }));
    server.auth.strategy('session', 'session');
    return server;
}
