import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../adapters/memory/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../../lib/license/index.ts';
import { protect } from '../../lib/protect/index.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData } from '../../plugins/metasploit-data/index.ts';
import { plugin as metrics } from '../../plugins/metrics/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookAuth } from '../../plugins/webhook-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';

const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

async function inventoryOf(workspace: string) {
    const inventory = memoryInventory();
    await inventory.ensureWorkspace(workspace);
    return inventory;
}

t.test('serves two inventories under two prefixes, each behind keys of its own', async (t) => {
    const server = hapiServer();
    const license = alwaysLicensed();
    await server.register([
        { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } },
        { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring, instance: 'lima' } },
    ]);
    const oslo = { store: await inventoryOf('Oslo'), license };
    const lima = { store: await inventoryOf('Lima'), license, auth: 'lima', instance: 'lima' };
    await server.register({ plugin: restApiV2, options: oslo }, { routes: { prefix: '/oslo' } });
    await server.register({ plugin: restApiV2, options: lima }, { routes: { prefix: '/lima' } });
    const keys = server.plugins['token-auth'];
    const osloKey = (await keys.create('oslo')).key;
    const limaKey = (await keys.of('lima').create('lima')).key;
    const workspaces = async (city: string, token: string): Promise<unknown> => {
        const { statusCode, payload } = await server.inject({ url: `/${city}/rest_api/v2/workspaces`, headers: { token } });
        return statusCode === 200 ? (JSON.parse(payload) as { name: string }[]).map(({ name }) => name) : statusCode;
    };
    t.same(await workspaces('oslo', osloKey), ['default', 'Oslo']);
    t.same(await workspaces('lima', limaKey), ['default', 'Lima']);
    t.equal(await workspaces('oslo', limaKey), 403);
    t.equal(await workspaces('lima', osloKey), 403);
    t.equal((await keys.of('lima').list()).length, 1);
});

t.test('names the instance in the log', async (t) => {
    const server = hapiServer({ debug: false });
    const store = { ...memoryInventory(), workspaces: { ...memoryInventory().workspaces, get: () => Promise.reject(new Error('away')) } };
    const options = { store, license: alwaysLicensed(), auth: false as const, instance: 'lima' };
    await server.register({ plugin: restApiV2, options });
    const tags: string[][] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, event) => tags.push(event.tags));
    t.equal((await server.inject('/rest_api/v2/workspaces/1')).statusCode, 503);
    t.same(tags, [['scanwire', 'rest-api-v2', 'lima', 'error']]);
});

async function receiver(t: Test): Promise<{ url: string; names: string[]; bodies: string[] }> {
    const names: string[] = [];
    const bodies: string[] = [];
    const server = createServer((request, response) => {
        void text(request).then((body) => {
            names.push(request.headers['user-agent'] ?? '');
            bodies.push(body);
            response.writeHead(204).end();
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, names, bodies };
}

t.test('delivers by two exporters with two sets of stores', async (t) => {
    const own = () => ({ stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring, egress: { allow: ['127.0.0.0/8'] } });
    const server = hapiServer();
    await server.register([
        { plugin: webhookExporter, options: { ...own(), vendor: 'Acme' } },
        { plugin: webhookExporter, options: { ...own(), vendor: 'Umbrella', instance: 'umbrella' } },
    ]);
    await server.initialize();
    t.teardown(() => server.stop());
    const unnamed = server.plugins['webhook-exporter'];
    const named = unnamed.of('umbrella');
    const [acme, umbrella] = [await receiver(t), await receiver(t)];
    for (const [{ exporters }, { url }] of [
        [unnamed, acme],
        [named, umbrella],
    ] as const) {
        const { exporter } = await exporters.create({ url });
        await exporters.start(exporter.id);
    }

    const investigation = {
        timestamp: new Date(),
        title: 'Weak cipher',
        link: 'https://example.com/1',
        investigationId: '0a8a1f6e-3c9c-4b0e-8a5f-0f2f4f6a7b10',
        investigationRrn: 'rrn:acme:1',
        actors: { users: [], assets: [] },
    };
    const { deliveries } = await named.publish('idr_investigation_created', investigation);
    await until(async () => (await named.deliveries.show(deliveries[0] ?? '')).state === 'delivered');
    t.same(umbrella.names, ['Umbrella Webhook Data Exporter', 'Umbrella Webhook Data Exporter']);
    t.same(acme.names, ['Acme Webhook Data Exporter'], 'its test, and no event of the other');
    t.equal((await unnamed.exporters.list()).length, 1);
    t.match(await unnamed.readiness(), { ready: true });
});

/** What each plugin needs at least; a new one says here what it needs. */
function everyPlugin(): Readonly<Record<string, Registration>> {
    const inventory = memoryInventory();
    const api = { store: inventory, license: alwaysLicensed(), auth: false };
    return {
        'token-auth': [{ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } }],
        'rest-api-v2': [{ plugin: restApiV2, options: api }, {}, { routes: { prefix: '/b' } }],
        'metasploit-data': [{ plugin: metasploitData, options: api }, {}, { routes: { prefix: '/b' } }],
        mcp: [{ plugin: mcp, options: api }, { path: '/b-mcp' }],
        'webhook-exporter': [{ plugin: webhookExporter, options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring } }],
        metrics: [{ plugin: metrics, options: { auth: false } }, { path: '/b-metrics' }],
        // Its scheme and its strategy have the name of the instance as those of token-auth have.
        'webhook-auth': [
            { plugin: webhookAuth, options: { secrets: ['s'] } },
            { scheme: 'b-hook', strategy: 'b-hook' },
        ],
        'https-record-schema': [{ plugin: httpsRecordSchema, options: { records: memoryRecords(), auth: false } }, { path: '/b-records' }],
        'admin-console': [
            { plugin: adminConsole, options: { system: { inventory }, auth: false, authorize: () => true } },
            { prefix: '/b-admin' },
        ],
    };
}

/** The first registration, and what the options and the registration of a second one must have besides its name. */
type Registration = readonly [first: { readonly plugin: object; readonly options: object }, apart?: object, more?: object];

t.test('registers every plugin twice, and no name twice', async (t) => {
    const every = everyPlugin();
    const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly exports: object };
    const offered = Object.keys(exports).map((subpath) => subpath.slice('./'.length));
    t.strictSame(Object.keys(every).sort(), offered.filter((subpath) => existsSync(`plugins/${subpath}`)).sort(), 'none is left out');

    const server = hapiServer();
    for (const [name, [first, apart = {}, more = {}]] of Object.entries(every)) {
        const refused = { code: 'MISCONFIGURED', field: 'instance', message: new RegExp(`^${name} options: instance must be`) };
        const second = { ...first, options: { ...first.options, ...apart, instance: 'b' }, ...more };
        await server.register(first as never);
        await t.rejects(server.register(first as never), refused);
        await server.register(second as never);
        await t.rejects(server.register(second as never), refused);
    }
    await server.initialize();
    t.teardown(() => server.stop());
    t.equal(server.lookup('admin-console.importScan')?.path, '/admin-console/import');
    t.equal(server.lookup('admin-console.b.importScan')?.path, '/b-admin/import');
    t.match(server.plugins['https-record-schema'].of('b').validate({}), { ok: false });
    t.throws(() => server.plugins['https-record-schema'].of('c'), { code: 'NOT_FOUND', field: 'instance' });
    const odd = { store: memoryInventory(), license: alwaysLicensed(), auth: false as const, instance: 'a b' };
    await t.rejects(server.register({ plugin: restApiV2, options: odd }), {
        code: 'MISCONFIGURED',
        field: 'instance',
        message: /instance must be 1 to 64 letters/,
    });
});

/** What is set of a listener, and how many listen to it. */
function stateOf({ listener }: Server): object {
    const { maxHeadersCount, timeout, keepAliveTimeout, headersTimeout, requestTimeout, maxConnections, maxRequestsPerSocket } = listener;
    return {
        ...{ maxHeadersCount, timeout, keepAliveTimeout, headersTimeout, requestTimeout, maxConnections, maxRequestsPerSocket },
        heard: Object.fromEntries(listener.eventNames().map((name) => [String(name), listener.listenerCount(name)])),
    };
}

t.test('no plugin changes the listener of the server', async (t) => {
    const bare = hapiServer({ host: '127.0.0.1', port: 0 });
    const all = hapiServer({ host: '127.0.0.1', port: 0 });
    for (const [first] of Object.values(everyPlugin())) {
        await all.register(first as never);
    }
    for (const server of [bare, all]) {
        await server.start();
        t.teardown(() => server.stop());
    }
    t.strictSame(stateOf(all), stateOf(bare));
    protect(all.listener);
    t.notSame(stateOf(all), stateOf(bare), 'one that is changed is seen');
});
