import Hapi, { type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../../adapters/memory/records.ts';
import { postgresInventory, postgresRecords } from '../../../adapters/postgres/index.ts';
import type { InventoryStore } from '../../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import type { HttpsRecord, RecordStore } from '../../../lib/records/index.ts';
import { plugin as httpsRecordSchema } from '../../../plugins/https-record-schema/index.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { databases, startAfresh } from '../../adapters/postgres/databases.ts';
import { allTold, linesOf, posting, record, type Told } from './record-server.ts';

interface Stores {
    readonly records: RecordStore;
    /** Over the same rows, as another process has them. */
    readonly others: RecordStore;
    readonly inventory: InventoryStore;
}

const places: readonly { readonly name: string; open(t: Test): Promise<Stores> }[] = [
    {
        name: 'memory',
        async open() {
            const inventory = memoryInventory();
            const records = memoryRecords({ inventory });
            return { inventory, records, others: records };
        },
    },
    ...databases.map(({ name, openMigrated }) => ({
        name,
        async open(t: Test): Promise<Stores> {
            const { pool, stop } = await openMigrated();
            t.teardown(stop);
            await startAfresh(pool);
            return { inventory: postgresInventory({ pool }), records: postgresRecords({ pool }), others: postgresRecords({ pool }) };
        },
    })),
];

async function started(t: Test, { records, inventory }: Omit<Stores, 'others'>): Promise<Server> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    await server.register([
        { plugin: httpsRecordSchema, options: { records, auth: false, enrich: {} } },
        { plugin: restApiV2, options: { store: inventory, license: alwaysLicensed(), auth: false } },
    ]);
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    return server;
}

async function rows(server: Server, path: string): Promise<readonly Told[]> {
    const { payload } = await server.inject(`/rest_api/v2/workspaces/1${path}`);
    return JSON.parse(payload) as readonly Told[];
}

function sent(server: Server, records: readonly HttpsRecord[]): Promise<readonly Told[]> {
    const request = posting(server);
    request.end(linesOf(records));
    return allTold(request);
}

for (const { name, open } of places) {
    t.test(`shows imported records as hosts and services in ${name}`, async (t) => {
        const server = await started(t, await open(t));
        const records = [record(), record({ port: 8443 }), record({ ip: '2001:DB8::7', host: '2001:db8::7' })];
        t.match(await sent(server, records), [{ complete: true, new: 3 }]);
        const hosts = await rows(server, '/hosts');

        t.match(hosts, [
            { address: '192.0.2.7', name: 'www.example.com', state: 'alive', service_count: 2 },
            { address: '2001:db8::7', name: '2001:db8::7', state: 'alive', service_count: 1 },
        ]);
        t.match(await rows(server, `/hosts/${hosts[0]?.id}/services`), [
            { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null },
            { port: 8443, proto: 'tcp', state: 'open', name: 'https', info: null },
        ]);
        t.match(await sent(server, records), [{ complete: true, new: 0 }]);
        t.same(await rows(server, '/hosts'), hosts);
    });

    t.test(`takes two imports at once of the same addresses in ${name}`, async (t) => {
        const stores = await open(t);
        const servers = await Promise.all([started(t, stores), started(t, { ...stores, records: stores.others })]);
        const records = Array.from({ length: 1500 }, (_, index) => record({ ip: `10.0.${index % 5}.${index % 250}`, path: `/${index}` }));
        const orders = [records, records.toReversed(), records];
        const told = await Promise.all(orders.map((order, index) => sent(servers[index % 2] as Server, order)));
        const summaries = told.map((lines) => lines.at(-1));

        t.ok(summaries.every((summary) => summary?.complete === true && summary.ok === true));
        t.equal(
            summaries.reduce((sum, summary) => sum + Number(summary?.new), 0),
            1500,
        );
        const hosts = await rows(servers[0] as Server, '/hosts');
        t.equal(hosts.length, new Set(records.map(({ ip }) => ip)).size);
        t.ok(hosts.every(({ service_count }) => service_count === 1));
    });
}
