import type { InventoryFixture, InventoryRows, ReadOnlyInventoryFixture } from '../../../../adapters/contract/index.ts';
import { each, fullHost, https, manyHosts, rows } from '../../../../adapters/contract/inventory/fixture.ts';
import { type MemoryInventory, memoryInventory } from '../../../../adapters/memory/index.ts';
import type { Host } from '../../../../lib/inventory/host.ts';
import type { Collection, InventoryStore } from '../../../../lib/inventory/store.ts';

type Collections = Required<InventoryStore>;

/** Replaces parts of an honest fixture. */
export type Mutation<Store> = (store: Store) => Partial<Store & Pick<InventoryFixture, 'openReads'>>;

/** A fixture around a memory inventory that shows every ability that a law can ask for. */
export function inventoryFixture(mutate: Mutation<MemoryInventory> = () => ({})): InventoryFixture {
    const store = memoryInventory();
    return {
        ...mutated(store, mutate),
        add: {
            note: async (hostId) => (await store.addNote(hostId, {})).id,
            session: async (hostId) => (await store.addSession(hostId, {})).id,
            vuln: async (serviceId) => (await store.addVuln(serviceId, { name: 'CVE-2026-0001' })).id,
            boundary: store.limitWorkspace,
        },
    };
}

/** Only the collections of an inventory that others have filled, with the rows in it. */
export function readOnlyFixture(mutate: Mutation<Collections> = () => ({})): ReadOnlyInventoryFixture {
    return { ...mutated(filled.store, mutate), rows: filled.rows };
}

function mutated<Store extends Collections>(
    honest: Store,
    mutate: Mutation<Store>,
): Pick<InventoryFixture, 'openReads'> & { store: Store } {
    let open = 0;
    const counted = async function* <Batch>(batches: AsyncIterable<Batch>): AsyncGenerator<Batch> {
        open += 1;
        try {
            yield* batches;
        } finally {
            open -= 1;
        }
    };
    const { hosts: known } = honest;
    const hosts = {
        hosts: {
            ...known,
            list: (path, options) => counted(known.list(path, options)),
            select: (path, selection, options) => counted((known as Required<typeof known>).select(path, selection, options)),
        } satisfies Collection<Host>,
    };
    const { openReads = () => open, ...changes } = mutate(honest);
    return { store: { ...honest, ...hosts, ...changes }, openReads };
}

async function fill(): Promise<{ readonly store: Collections; readonly rows: InventoryRows }> {
    const { addNote, addSession, addVuln, ensureWorkspace: _, importHosts, keepsBoundaries: _kept, ...store } = memoryInventory();
    await importHosts('default', each([{ ...fullHost, services: [https] }, ...manyHosts()]));
    await importHosts('other', each([{ address: '192.0.2.9' }]));
    await addVuln(1, { name: 'CVE-2026-0001' });

    return {
        store,
        rows: {
            notes: [await addNote(1, {}), await addNote(1, { data: { seen: 'twice' } })],
            sessions: [await addSession(1, {})],
            workspaces: await rows(store.workspaces, []),
            hosts: [...(await rows(store.hosts, [2])), ...(await rows(store.hosts, [1]))],
            services: await rows(store.services, [1, 1]),
            vulns: await rows(store.vulns, [1, 1, 1]),
        },
    };
}

const filled: Awaited<ReturnType<typeof fill>> = await fill();

/** The hosts as another listing shows them. */
export function listing(store: Collections, list: Collection<Host>['list']): Pick<Collections, 'hosts'> {
    return { hosts: { ...store.hosts, list } };
}

export function hostsShown(store: Collections, change: (host: Host) => Host): Pick<Collections, 'hosts'> {
    return { hosts: changed(store.hosts, change) };
}

/** A collection whose rows look different. */
export function changed<Row extends { readonly id: number }>(collection: Collection<Row>, change: (row: Row) => Row): Collection<Row> {
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
export function anywhere<Row extends { readonly id: number }>(
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

/** A collection that never has a row. */
export function empty<Row extends { readonly id: number }>(): Collection<Row> {
    return { async *list() {}, get: async () => null };
}
