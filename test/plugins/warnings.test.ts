import { randomBytes } from 'node:crypto';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryInventory, memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { countKeeping } from '../../adapters/postgres/webhooks/delivery-counts.ts';
import type { ImportOptions, ImportSummary } from '../../lib/inventory/store.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { alwaysLicensed } from '../../lib/license/index.ts';
import type { SweepOptions } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';
import { failingOnceAt } from '../adapters/postgres/failing-pools.ts';
import { migratedMemory } from '../support/migrated-database.ts';

/*
 * What is not as it should be, and keeps nothing from working, is for the log of the host: stderr of the process is nobody's.
 */

/** A schema that leaves the types of its fields open. */
const open = {
    schema: { '~standard': { version: 1 as const, vendor: 'x', validate: (value: unknown) => ({ value }) } },
    fields: ['id', 'name'],
};
const OPEN = /: without jsonSchema the types of its fields are unknown/;

/** A server whose log is kept, and what the process has been warned of. */
function listening(t: Test) {
    const server: Server = hapiServer({ debug: false });
    const logged: [tags: readonly string[], data: unknown][] = [];
    server.events.on('log', ({ tags, data }) => logged.push([tags, data]));
    server.events.on({ name: 'request', channels: 'app' }, (_, { tags, data }) => logged.push([tags, data]));
    const warned: unknown[] = [];
    const { emitWarning } = process;
    process.emitWarning = ((message: unknown) => warned.push(message)) as never;
    t.teardown(async () => {
        process.emitWarning = emitWarning;
        await server.stop();
    });
    return { server, logged, warned };
}

t.test('webhook-exporter: schemas of events, and what a store could not do besides, are in the log of the server', async (t) => {
    const { server, logged, warned } = listening(t);
    const stores = memoryWebhooks();
    const { sweep } = stores.deliveries;
    const deliveries = Object.assign(Object.create(stores.deliveries), {
        sweep: async (options: SweepOptions) => {
            options.onWarning?.('Deliveries that have ended are not counted: no right');
            return await sweep(options);
        },
    });
    const options = {
        stores: { ...stores, deliveries },
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k1', keys: { k1: randomBytes(32) } }),
        kinds: [{ name: 'scan_finished', ...open }],
        instance: 'b',
    };
    await server.register({ plugin: webhookExporter, options });
    await server.initialize();
    await until(() => logged.length >= 2);
    const tags = ['scanwire', 'webhook-exporter', 'b', 'warn'];
    t.match(logged, [
        [tags, OPEN],
        [tags, 'Deliveries that have ended are not counted: no right'],
    ]);
    t.same(warned, []);
});

t.test('rest-api-v2: schemas of resources are in the log of the server', async (t) => {
    const { server, logged, warned } = listening(t);
    const store = { list: async function* () {}, get: async () => null };
    const resources = [{ path: '/workspaces/{workspace_id}/campaigns', ...open, store }];
    await server.register({ plugin: restApiV2, options: { store: memoryInventory(), license: alwaysLicensed(), auth: false, resources } });
    t.match(logged, [[['scanwire', 'rest-api-v2', 'warn'], OPEN]]);
    t.equal(logged.length, 1);
    t.same(warned, []);
});

t.test('admin-console: what went wrong without making an import fail is in the log of its request', async (t) => {
    const { server, logged, warned } = listening(t);
    const importHosts = async (_name: string, _hosts: unknown, { onWarning }: ImportOptions = {}): Promise<ImportSummary> => {
        onWarning?.('Listings may be slow: no right');
        return { hosts: 0 } as unknown as ImportSummary;
    };
    await server.register({
        plugin: adminConsole,
        options: { system: { inventory: { importHosts } }, auth: false, authorize: () => true },
    });
    const { statusCode } = await server.inject({
        method: 'POST',
        url: '/admin-console/import?workspace=default',
        headers: { 'content-type': 'application/x-ndjson' },
        payload: '{"address":"192.0.2.7"}\n',
    });
    t.equal(statusCode, 200);
    t.same(logged, [[['scanwire', 'admin-console', 'warn'], 'Listings may be slow: no right']]);
    t.same(warned, []);
});

t.test('admin-console: so is what a scan leaves open', async (t) => {
    const { server, logged } = listening(t);
    await server.register({
        plugin: adminConsole,
        options: { system: { inventory: memoryInventory() }, auth: false, authorize: () => true },
    });
    const closed = '<ports><extraports state="closed" count="7"/><extraports state="filtered" count="2"/></ports>';
    const { statusCode } = await server.inject({
        method: 'POST',
        url: '/admin-console/import?workspace=default',
        headers: { 'content-type': 'application/xml' },
        payload: `<nmaprun><host><status state="up"/><address addr="192.0.2.7"/>${closed}</host></nmaprun>`,
    });
    t.equal(statusCode, 200);
    t.match(logged, [[['scanwire', 'admin-console', 'warn'], /not which: 1\./]]);
});

t.test('the stores in PostgreSQL tell who asks, and the process where nobody listens', async (t) => {
    const { warned } = listening(t);
    const keep = countKeeping({ query: () => Promise.reject(new Error('no right')) });
    const told: string[] = [];
    const onWarning = (message: string): void => void told.push(message);
    for (let sweep = 0; sweep < 20; sweep += 1) {
        await keep(onWarning);
    }
    const message = 'Deliveries that have ended are not counted: no right';
    t.same(told.splice(0), [message], 'once for all of the same');
    t.same(warned, []);
    const unheard = countKeeping({ query: () => Promise.reject(new Error('no right')) });
    for (let sweep = 0; sweep < 10; sweep += 1) {
        await unheard();
    }
    t.same(warned.splice(0), [message]);

    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const inventory = (statement: RegExp) => postgresInventory({ pool: failingOnceAt(pool, statement) });
    async function* hosts(count: number) {
        yield* Array.from({ length: count }, (_, n) => ({ address: `10.0.${n >> 8}.${n & 255}` }));
    }
    await inventory(/^analyze/).importHosts('many', hosts(1500), { onWarning });
    await inventory(/delete from scanwire.staged_hosts/).importHosts('few', hosts(1), { onWarning });
    t.match(told, [/^Listings may be slow until .*: failed/, /^The import is shown, and the next one finishes it: failed/]);
    t.same(warned, []);
});
