import type { Host } from '../../../lib/inventory/host.ts';
import type { Service } from '../../../lib/inventory/resources.ts';
import type { InventoryStore, InventoryWriter } from '../../../lib/inventory/store.ts';
import type { HttpsRecord } from '../../../lib/records/record.ts';
import type { RecordQuery, RecordStore, StoredRecord } from '../../../lib/records/store.ts';
import { ids, present } from '../assertions.ts';
import { rows } from '../inventory/fixture.ts';
import type { Ability, ContractFixture } from '../register-laws.ts';

/** For a store of records. */
export interface RecordStoreFixture extends ContractFixture {
    /** Empty once started. */
    readonly store: RecordStore;
    /** What the store enriches, with nothing in it but the workspace `default`; needed where `store.enriches` is true. */
    readonly inventory?: InventoryStore & InventoryWriter;
    /** Sets the clock of the store and its inventory, which begins at any time. */
    setTime(now: Date): void;
}

/** Name of something that not every store of records can do. */
export type RecordAbility = 'enriches' | 'boundaries' | 'counts';

/** What the laws of records may need. */
export const recordAbilities: Readonly<Record<RecordAbility, Ability<RecordStoreFixture>>> = {
    enriches: {
        has: ({ store }) => store.enriches,
        shows: ({ inventory }) => inventory?.services !== undefined,
        supply: 'inventory, which the store enriches, with its services',
    },
    boundaries: {
        has: ({ inventory }) => inventory?.keepsBoundaries === true,
        shows: ({ inventory }) => inventory?.updateWorkspace !== undefined,
        supply: 'inventory with updateWorkspace()',
    },
    counts: { has: ({ store }) => store.count !== undefined, shows: () => true, supply: 'nothing more' },
};

/** A time. */
export const FIRST: Date = new Date('2026-01-02T03:04:05.678Z');
/** A later one. */
export const SECOND: Date = new Date('2026-05-06T07:08:09.012Z');
/** A millisecond after that. */
export const THIRD: Date = new Date('2026-05-06T07:08:09.013Z');

/** A record, with some fields set. */
export function record(fields: Partial<HttpsRecord> = {}): HttpsRecord {
    return { data: 'SFRUUC8xLjEgMjAwIE9LDQoNCg==', host: 'www.example.com', ip: '192.0.2.7', port: 443, ...fields };
}

/** So many different records, each of an address of its own. */
export function manyRecords(count: number): HttpsRecord[] {
    return Array.from({ length: count }, (_, index) => record({ ip: `10.0.${index >> 8}.${index & 255}`, path: `/${index}` }));
}

/** The ids of all records that the query finds, read in one answer. */
export async function idsOf(store: RecordStore, query: Partial<RecordQuery> = {}): Promise<number[]> {
    return ids(await all(store, query));
}

/** All records that the query finds, read in one answer. */
export async function all(store: RecordStore, query: Partial<RecordQuery> = {}): Promise<readonly StoredRecord[]> {
    return await store.list({ limit: 10_000, ...query });
}

/** All hosts of the workspace, which must exist, and their services, by the address of the host. */
export async function seenIn(
    inventory: InventoryStore,
    workspaceName: string,
): Promise<{ readonly hosts: readonly Host[]; readonly services: Readonly<Record<string, readonly Service[]>> }> {
    const workspaces = await rows(inventory.workspaces, []);
    const found = workspaces.find(({ name }) => name === workspaceName);
    const { id: workspaceId } = present(found, `the workspace ${workspaceName}`);
    const hosts = await rows(inventory.hosts, [workspaceId]);
    const services: Record<string, readonly Service[]> = {};
    for (const { id, address } of hosts) {
        services[address] = await rows(present(inventory.services), [workspaceId, id]);
    }

    return { hosts, services };
}
