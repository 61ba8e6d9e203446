import t from 'tap';
import { type InventoryFixture, inventoryContract } from '../../../adapters/contract/inventory.ts';
import { type MemoryInventory, memoryInventory } from '../../../adapters/memory/inventory.ts';
import type { Host, HostInput } from '../../../lib/inventory/host.ts';
import type { Collection } from '../../../lib/inventory/store.ts';
import { inventoryFixture } from './inventory-fixture.ts';
import { lawsOf } from './laws.ts';

type Break = (store: MemoryInventory, fixture: InventoryFixture) => Partial<MemoryInventory & Pick<InventoryFixture, 'openReads'>>;

/** The hosts as another listing shows them. */
const listing = (store: MemoryInventory, list: Collection<Host>['list']) => ({ hosts: { get: store.hosts.get, list } });

const inputs = (store: MemoryInventory, change: (host: HostInput) => HostInput) => ({
    importHosts: (name: string, hosts: AsyncIterable<HostInput>) => store.importHosts(name, mapped(hosts, change)),
});

const hostsShown = (store: MemoryInventory, change: (host: Host) => Host) => ({ hosts: changed(store.hosts, change) });

function changed<Row extends { readonly id: number }>(collection: Collection<Row>, change: (row: Row) => Row): Collection<Row> {
    return {
        async *list(path, options) {
            for await (const batch of collection.list(path, options)) {
                yield batch.map(change);
            }
        },
        async get(path, id) {
            const row = await collection.get(path, id);
            return row === null ? null : change(row);
        },
    };
}

/** Shows rows below every parent that exists in `store`, as a query without the outer parent would. */
function anywhere<Row extends { readonly id: number }>(
    collection: Collection<Row>,
    paths: readonly (readonly number[])[],
): Collection<Row> {
    return {
        list: collection.list,
        async get(_path, id) {
            const found = await Promise.all(paths.map((path) => collection.get(path, id)));
            return found.find((row) => row !== null) ?? null;
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

/** One way to break each law; a law that its mutant passes is no law. */
const mutants: Record<string, Break> = {
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
    'lists rows in ascending id, each once': (store) =>
        listing(store, async function* (path, options) {
            for await (const batch of store.hosts.list(path, options)) {
                yield batch.toReversed();
            }
        }),
    'gives a long list in batches': (store) =>
        listing(store, async function* (path) {
            const rows: Host[] = [];
            for await (const batch of store.hosts.list(path)) {
                rows.push(...batch);
            }
            yield rows;
        }),
    'ends the reading when its signal aborts': (store) => listing(store, (path) => store.hosts.list(path)),
    'reads nothing when the signal was aborted before': (store) => listing(store, (path) => store.hosts.list(path)),
    'frees what a reading held when it ends early': (store) => {
        let open = 0;
        return {
            openReads: () => open,
            ...listing(store, async function* (path, options) {
                open += 1;
                yield* store.hosts.list(path, options);
                open -= 1;
            }),
        };
    },
    'shows a host only below its own workspace': (store) => ({ hosts: anywhere(store.hosts, [[1], [2]]) }),
    'shows a service only below its own host and workspace': (store) => ({
        services: anywhere(store.services, [
            [1, 1],
            [1, 2],
        ]),
    }),
    'takes ids beyond 32 bits for unknown, not for an error': (store) => ({
        hosts: {
            list: store.hosts.list,
            async get(path, id) {
                if ([...path, id].some((id) => id > 2 ** 31 - 1)) {
                    throw Object.assign(new Error('out of range for type integer'), { code: '22003' });
                }
                return store.hosts.get(path, id);
            },
        },
    }),
    'imports nothing when the source fails half-way': (store) => ({
        async importHosts(name, hosts) {
            for await (const host of hosts) {
                await store.importHosts(name, only(host));
            }
            return store.importHosts(
                name,
                mapped(hosts, (host) => host),
            );
        },
    }),
    'updates the host that has the address, with the fields that are given': (store) =>
        inputs(store, (host) => ({ mac: '', os_name: '', name: host.address, ...host })),
    'takes the same address twice in one import for one host': (store) => {
        let seen = 0;
        return inputs(store, (host) => ({ ...host, address: seen++ === 0 ? host.address : '192.0.2.8' }));
    },
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
    'says how much an import made and updated': (store) => ({
        async importHosts(name, hosts) {
            const summary = await store.importHosts(name, hosts);
            return { ...summary, hosts: { created: summary.hosts.created + summary.hosts.updated, updated: 0 } };
        },
    }),
    'makes the workspace of an empty import': (store) => ({
        async importHosts(name, hosts) {
            const { workspace, ...summary } = await store.importHosts('default', hosts);
            return { ...summary, workspace: { ...workspace, id: workspace.id + 1, name } };
        },
    }),
    'shows notes, sessions and vulnerabilities only below their own parents': (store) => ({
        vulns: anywhere(store.vulns, [[1, 1, 1]]),
    }),
    'counts the notes and vulnerabilities of a host': (store) => hostsShown(store, (host) => ({ ...host, vuln_count: 0 })),
};

function broken(mutate: Break) {
    return (): InventoryFixture => {
        const store = memoryInventory();
        const fixture = inventoryFixture(store);
        const { openReads, ...changes } = mutate(store, fixture);
        return { ...fixture, ...(openReads === undefined ? {} : { openReads }), store: { ...fixture.store, ...changes } };
    };
}

t.test('catches a store that breaks a law', async (t) => {
    const names = [
        ...lawsOf(
            inventoryContract,
            broken(() => ({})),
        ).keys(),
    ];
    t.same(Object.keys(mutants).sort(), names.sort());
    for (const [name, mutate] of Object.entries(mutants)) {
        const law = lawsOf(inventoryContract, broken(mutate)).get(name);
        await t.rejects(law?.() ?? Promise.resolve(), { code: /ERR_ASSERTION|22003/ }, name);
    }
});
