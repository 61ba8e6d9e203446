import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { inventoryContract } from '../../../adapters/contract/index.ts';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { type InventoryFunctions, type Page, readOnlyInventory } from '../../../lib/inventory/index.ts';
import type { InventoryStore } from '../../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../../lib/license/index.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { tapTest } from '../../adapters/contract/tap-test.ts';
import { collect } from '../../support/collect.ts';

const created_at = new Date('2026-11-21T09:30:00Z');
/** The tables of an application, as its SQL would read them. */
const sites = [
    { id: 1, name: 'Oslo', created_at },
    { id: 2, name: 'Lima', created_at },
];
const machines = Array.from({ length: 2501 }, (_, n) => {
    return { id: n + 1, site: n < 2500 ? 1 : 2, address: `10.0.${n >> 8}.${n & 255}`, created_at };
});
const ports = [{ id: 9, machine: 7, port: 443, proto: 'tcp' as const, created_at }];
const weaknesses = [{ id: 4, port: 9, name: 'Weak cipher', created_at }];
const remarks = [{ id: 3, machine: 7, ntype: 'host.comment', created_at }];

function where<Row extends { readonly id: number }>(
    rows: readonly Row[],
    { after, limit }: Page,
    is: (row: Row) => boolean = () => true,
): Row[] {
    return rows.filter((row) => row.id > after && is(row)).slice(0, limit);
}

const functions: InventoryFunctions = {
    workspaces: (_, page) => where(sites, page),
    hosts: async ([siteId], page) => where(machines, page, ({ site }) => site === siteId),
    services: ([, hostId], page) => where(ports, page, ({ machine }) => machine === hostId),
    notes: ([, hostId], page) => where(remarks, page, ({ machine }) => machine === hostId),
    vulns: ([, , serviceId], page) => where(weaknesses, page, ({ port }) => port === serviceId),
    hostVulns: ([, hostId], page) => (hostId === 7 ? where(weaknesses, page).map((weakness) => ({ ...weakness, service_id: 9 })) : []),
    workspaceServices: ([siteId], page) => (siteId === 1 ? where(ports, page).map((port) => ({ ...port, host_id: 7 })) : []),
    workspaceNotes: ([siteId], page) => (siteId === 1 ? where(remarks, page).map((remark) => ({ ...remark, host_id: 7 })) : []),
    workspaceVulns: ([siteId], page) =>
        siteId === 1 ? where(weaknesses, page).map((weakness) => ({ ...weakness, host_id: 7, service_id: 9 })) : [],
};

inventoryContract(tapTest(t), () => ({
    store: readOnlyInventory(functions),
    rows: {
        workspaces: sites,
        hosts: machines.map(({ site, ...machine }) => ({ ...machine, workspace_id: site })),
        services: ports.map(({ machine, ...port }) => ({ ...port, host_id: machine })),
        notes: remarks.map(({ machine, ...remark }) => ({ ...remark, workspace_id: 1, host_id: machine })),
        vulns: weaknesses.map(({ port, ...weakness }) => ({ ...weakness, host_id: 7, service_id: port })),
    },
    openReads: () => 0,
}));

t.test('fills what is missing with what stands for nothing', async (t) => {
    const store = readOnlyInventory(functions);
    const inventory = memoryInventory({ clock: () => created_at });
    const { workspace } = await inventory.importHosts('Oslo', [{ address: '10.0.0.0' }] as never);
    const blank = await inventory.hosts.get([workspace.id], 1);
    t.strictSame(await store.hosts.get([1], 1), { ...blank, workspace_id: 1 }, 'as a store of our own fills it');
    t.strictSame(await store.workspaces.get([], 2), { ...workspace, id: 2, name: 'Lima' });
    t.match(await store.services?.get([1, 7], 9), { host_id: 7, state: 'unknown', name: '', info: null, updated_at: created_at });
    t.match(await store.notes?.get([1, 7], 3), { workspace_id: 1, host_id: 7, service_id: null, data: {}, critical: null });
    t.match(await store.vulns?.get([1, 7, 9], 4), { host_id: 7, service_id: 9, vuln_detail_count: 0, exploited_at: null });
    t.match(await store.workspaceServices?.get([1], 9), { host_id: 7, state: 'unknown', name: '', info: null, updated_at: created_at });
    t.match(await store.workspaceNotes?.get([1], 3), { workspace_id: 1, host_id: 7, service_id: null, data: {} });
    t.equal(store.sessions, undefined);
});

t.test('takes null and empty texts for missing, and times as texts or milliseconds', async (t) => {
    const { hosts, workspaces } = readOnlyInventory({
        workspaces: () => [{ id: 1, name: 'Oslo', description: '', created_at: created_at.getTime() }],
        hosts: () => [{ id: 1, address: '10.0.0.1', name: '', os_name: null, created_at: created_at.toISOString() }],
    });
    t.match(await workspaces.get([], 1), { description: null, created_at, updated_at: created_at });
    t.match(await hosts.get([1], 1), { name: '10.0.0.1', os_name: '', created_at, updated_at: created_at });
});

type Wrong = Readonly<Record<'workspaces' | 'hosts', () => unknown>>;

const wrong: readonly [what: string, given: () => unknown, field: string, message: RegExp][] = [
    ['undefined', () => undefined, 'hosts', /must give an array of rows.*it gave undefined$/],
    ['null', () => null, 'hosts', /it gave null$/],
    ['a result of a driver', async () => ({ rows: [] }), 'hosts', /it gave an object: return its rows$/],
    ['one row', () => ({ id: 1 }), 'hosts', /it gave an object$/],
    [
        'a generator',
        function* () {
            yield [];
        },
        'hosts',
        /it gave an object$/,
    ],
    ['batches', () => [[{ id: 1 }]], 'hosts[0]', /must be a row.*it is an array/],
    ['a row that is not there', () => [undefined], 'hosts[0]', /must be a row.*it is undefined/],
    ['ids as texts', () => [{ id: '1', address: 'a' }], 'hosts[0].id', /must be a whole number.*is a string.*id::integer/],
    ['ids as BigInt', () => [{ id: 1n, address: 'a' }], 'hosts[0].id', /must be a whole number.*a bigint, which JSON has no form for/],
    ['rows without ids', () => [{ address: 'a' }], 'hosts[0].id', /must be a whole number.*is undefined/],
    ['no address', () => [{ id: 1, created_at }], 'hosts[0].address', /is not allowed to be empty/],
    ['no time', () => [{ id: 1, address: 'a' }], 'hosts[0].created_at', /must be a valid date; it is null/],
    ['a BigInt', () => [{ id: 1, address: 'a', created_at, note_count: 2n }], 'hosts[0].note_count', /must be a number; it is a bigint/],
    [
        'a count as text',
        () => [{ id: 1, address: 'a', created_at, note_count: '2' }],
        'hosts[0].note_count',
        /must be a number.*is a string/,
    ],
    [
        'a host of another workspace',
        () => [{ id: 1, workspace_id: 2, address: 'a', created_at }],
        'hosts[0].workspace_id',
        /the id in the path/,
    ],
    ['rows in descending order', () => [2, 1].map((id) => ({ id, address: 'a', created_at })), 'hosts', /ascending id/],
];

for (const [what, given, field, message] of wrong) {
    t.test(`says what is wrong with ${what}`, async (t) => {
        const odd: Wrong = { workspaces: () => [], hosts: given };
        const { hosts } = readOnlyInventory(odd as unknown as InventoryFunctions);
        const read = async (): Promise<unknown> => collect(hosts.list([1]));
        await t.rejects(read(), { code: 'MISCONFIGURED', field, message });
    });
}

t.test('does not ask for ever where a function takes no notice of its page', async (t) => {
    const { hosts } = readOnlyInventory({ workspaces: () => [], hosts: () => machines.slice(0, 500) });
    await t.rejects(collect(hosts.list([1])), { code: 'MISCONFIGURED', message: /where id > after/ });
});

t.test('looks at fields in development only', async (t) => {
    const hosts = () => [{ id: 1, address: 'a', created_at, note_count: '2' as unknown as number }];
    const store = (check: boolean): InventoryStore => readOnlyInventory({ workspaces: () => [], hosts }, { check });
    await t.rejects(store(true).hosts.get([1], 1));
    t.match(await store(false).hosts.get([1], 1), { id: 1 });

    const environment = process.env.NODE_ENV;
    t.teardown(() => {
        process.env.NODE_ENV = environment;
    });
    process.env.NODE_ENV = 'production';
    t.match(await readOnlyInventory({ workspaces: () => [], hosts }).hosts.get([1], 1), { id: 1 });
});

t.test('is served, and a store of other mistakes is refused rather than shown as empty', async (t) => {
    const served = async (store: InventoryStore) => {
        const server = hapiServer({ debug: false });
        await server.register({ plugin: restApiV2, options: { store, license: alwaysLicensed(), auth: false } });
        return async (path: string) => {
            const { statusCode, payload } = await server.inject(`/rest_api/v2${path}`);
            return [statusCode, statusCode === 200 ? JSON.parse(payload).length : undefined];
        };
    };
    const get = await served(readOnlyInventory(functions));
    t.same(await get('/workspaces/1/hosts'), [200, 2500]);
    t.same(await get('/workspaces/3/hosts'), [404, undefined]);
    t.same(await get('/workspaces/1/hosts/7/services/9/vulns'), [200, 1]);

    const row = { id: 1, name: 'Oslo', created_at };
    const rowsOneByOne = async function* () {
        yield row;
    };
    const careless = { list: rowsOneByOne, get: async () => undefined };
    const mistaken = await served({ workspaces: careless, hosts: careless } as unknown as InventoryStore);
    t.same(await mistaken('/workspaces'), [503, undefined], 'a row where a batch belongs');
    t.same(await mistaken('/workspaces/1'), [404, undefined], 'undefined for no row');
});
