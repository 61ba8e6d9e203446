import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { server as hapiServer } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryApiKeys, memoryInventory, memoryQueue, memoryRecords, memoryWebhooks } from '../../adapters/memory/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../../lib/license/index.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
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

t.test('registers every plugin twice, and no name twice', async (t) => {
    const server = hapiServer();
    const twice = async (first: object, second: object): Promise<void> => {
        await server.register(first as never);
        await t.rejects(server.register(first as never), { code: 'MISCONFIGURED', field: 'instance' });
        await server.register(second as never);
        await t.rejects(server.register(second as never), { code: 'MISCONFIGURED', field: 'instance' });
    };
    const inventory = memoryInventory();
    const api = { store: inventory, license: alwaysLicensed(), auth: false };
    const admin = { system: { inventory }, auth: false, authorize: () => true };
    await twice({ plugin: restApiV2, options: api }, { plugin: restApiV2, options: { ...api, instance: 'b' }, routes: { prefix: '/b' } });
    await twice(
        { plugin: adminConsole, options: admin },
        { plugin: adminConsole, options: { ...admin, instance: 'b', prefix: '/b-admin' } },
    );
    await twice(
        { plugin: httpsRecordSchema, options: { records: memoryRecords() } },
        { plugin: httpsRecordSchema, options: { records: memoryRecords(), path: '/b-records', instance: 'b' } },
    );
    t.equal(server.lookup('admin-console.importScan')?.path, '/admin-console/import');
    t.equal(server.lookup('admin-console.b.importScan')?.path, '/b-admin/import');
    t.match(server.plugins['https-record-schema'].of('b').validate({}), { ok: false });
    t.throws(() => server.plugins['https-record-schema'].of('c'), { code: 'NOT_FOUND', field: 'instance' });
    await t.rejects(server.register({ plugin: restApiV2, options: { ...api, auth: false as const, instance: 'a b' } }), {
        code: 'MISCONFIGURED',
        field: 'instance',
        message: /instance must be 1 to 64 letters/,
    });
});
