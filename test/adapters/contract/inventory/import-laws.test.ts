import t from 'tap';
import { type InventoryFixture, inventoryContract } from '../../../../adapters/contract/index.ts';
import { importGroups } from '../../../../adapters/contract/inventory/import-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import { lawOf, mapValues, proveLaws } from '../laws.ts';
import { changed, hostsShown, inventoryFixture, type Mutation, readOnlyFixture } from './fixture.ts';

function inputs(store: MemoryInventory, change: (host: HostInput) => HostInput): Pick<MemoryInventory, 'importHosts'> {
    return { importHosts: (name, hosts) => store.importHosts(name, mapped(hosts, change)) };
}

/** Imports host after host, each for itself. */
function oneByOne(store: MemoryInventory): Pick<MemoryInventory, 'importHosts'> {
    return {
        async importHosts(name, hosts) {
            for await (const host of hosts) {
                await store.importHosts(name, only(host));
            }
            return store.importHosts(
                name,
                mapped(hosts, (host) => host),
            );
        },
    };
}

async function* mapped<T>(items: AsyncIterable<T>, change: (item: T) => T): AsyncIterable<T> {
    for await (const item of items) {
        yield change(item);
    }
}

async function* only<T>(item: T): AsyncIterable<T> {
    yield item;
}

/** Shows every row as if each import had written it. */
function touching(store: MemoryInventory, name: 'hosts' | 'services'): Partial<MemoryInventory> {
    let imports = 0;
    const touched = <Row extends { readonly id: number; readonly updated_at: Date }>(row: Row): Row => ({
        ...row,
        updated_at: new Date(row.updated_at.getTime() + imports),
    });
    return {
        importHosts(...input) {
            imports += 1;
            return store.importHosts(...input);
        },
        ...(name === 'hosts' ? { hosts: changed(store.hosts, touched) } : { services: changed(store.services, touched) }),
    };
}

/** Shows ids as if there were gaps between them. */
function burning(store: MemoryInventory, name: 'hosts' | 'services'): Partial<MemoryInventory> {
    const spaced = <Row extends { readonly id: number }>(row: Row): Row => ({ ...row, id: row.id * 2 });
    return name === 'hosts' ? { hosts: changed(store.hosts, spaced) } : { services: changed(store.services, spaced) };
}

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'has the workspace default from the start': (store) => ({
        workspaces: changed(store.workspaces, (workspace) => ({ ...workspace, name: workspace.name.toUpperCase() })),
    }),
    'makes a workspace once': (store) => {
        let made = 0;
        return { ensureWorkspace: (name) => store.ensureWorkspace(`${name}${made++ || ''}`) };
    },
    'gives a bare host the defaults': (store) => hostsShown(store, (host) => ({ ...host, comm: host.comm ?? '' })),
    'keeps every field of a host, in any script': (store) =>
        hostsShown(store, (host) => ({ ...host, name: host.name.replace(/[\u{10000}-\u{10ffff}]/gu, '\ufffd') })),
    'imports nothing when the source fails half-way': oneByOne,
    'shows an import at once': oneByOne,
    'imports no service when the source fails half-way': oneByOne,
    'updates the host that has the address, with the fields that are given': (store) =>
        inputs(store, (host) => ({ mac: '', os_name: '', name: host.address, ...host })),
    'takes the same address twice in one import for one host': (store) => {
        let seen = 0;
        return inputs(store, (host) => ({ ...host, address: seen++ === 0 ? host.address : '192.0.2.8' }));
    },
    'judges an address that is named twice by what all say together, so that the same again writes nothing': oneByOne,
    'takes the same address in two workspaces for two hosts': (store) => ({
        importHosts: async (name, hosts) => ({
            ...(await store.importHosts('one', hosts)),
            workspace: await store.ensureWorkspace(name),
        }),
    }),
    'keeps two imports at the same time apart': (store) => {
        let imports = 0;
        return {
            importHosts(name, hosts) {
                const mark = imports++ === 0 ? 1 : 2;
                return store.importHosts(
                    name,
                    mapped(hosts, (host) => ({ ...host, address: `${mark}.${host.address}` })),
                );
            },
        };
    },
    'finds a service by its port and protocol': (store) =>
        inputs(store, (host) => ({ ...host, services: (host.services ?? []).map((service) => ({ ...service, proto: 'tcp' })) })),
    'counts the services of a host': (store) => hostsShown(store, (host) => ({ ...host, service_count: host.service_count * 2 })),
    'says what has become of each host and service': (store) => ({
        async importHosts(name, hosts) {
            const { hosts: counts, ...summary } = await store.importHosts(name, hosts);
            return { ...summary, hosts: { ...counts, changed: counts.changed + counts.unchanged, unchanged: 0 } };
        },
    }),
    'leaves a host that is so already as it is, the time of its change included': (store) => touching(store, 'hosts'),
    'moves the time of the change of a host with its fields and the number of its services': (store) =>
        hostsShown(store, (host) => ({ ...host, updated_at: host.info === null ? host.updated_at : host.created_at })),
    'makes no host of which nothing is said but for those who know it': (store) => inputs(store, ({ if_known: _ignored, ...host }) => host),
    'closes the services that were seen closed with others, unless they are told otherwise': (store) =>
        inputs(store, ({ closed_ports: _ignored, ...host }) => host),
    'spends no id on what is there': (store) => burning(store, 'hosts'),
    'keeps name and info of a service that is told without them': (store) =>
        inputs(store, (host) => ({ ...host, services: (host.services ?? []).map((service) => ({ name: '', info: null, ...service })) })),
    'takes a guessed name for a service of which none is known, and for no other': (store) =>
        inputs(store, (host) => ({
            ...host,
            services: (host.services ?? []).map(({ guessed_name, ...service }) =>
                guessed_name === undefined ? service : { name: guessed_name, info: null, ...service },
            ),
        })),
    'leaves a service that is so already as it is, and spends no id on it': (store) => burning(store, 'services'),
    'makes the workspace of an empty import': (store) => ({
        async importHosts(name, hosts) {
            const { workspace, ...summary } = await store.importHosts('default', hosts);
            return { ...summary, workspace: { ...workspace, id: workspace.id + 1, name } };
        },
    }),
    'counts the notes and vulnerabilities of a host': (store) => hostsShown(store, (host) => ({ ...host, vuln_count: 0 })),
};

const lawNames = importGroups.filter(({ lacks }) => lacks === undefined).flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);

t.test('catches half of an import', async (t) => {
    const half = { ensureWorkspace: async () => ({}) } as object;
    const law = lawOf(inventoryContract, () => readOnlyFixture(() => half), 'has no half of an import');
    await t.rejects(law(), { code: 'ERR_ASSERTION' });
});

t.test('fails the laws of importing for a store that imports and begins with rows', async (t) => {
    const { rows } = readOnlyFixture();
    const create = () => ({ ...inventoryFixture(), rows }) as unknown as InventoryFixture;
    for (const name of lawNames) {
        await t.rejects(lawOf(inventoryContract, create, name)(), { message: /must supply a store that begins empty/ }, name);
    }
});
