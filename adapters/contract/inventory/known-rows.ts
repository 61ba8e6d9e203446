import type Joi from 'joi';
import { type HostInput, hostSchema } from '../../../lib/inventory/host.ts';
import {
    noteSchema,
    serviceSchema,
    sessionSchema,
    vulnSchema,
    type Workspace,
    workspaceNoteSchema,
    workspaceSchema,
    workspaceVulnSchema,
} from '../../../lib/inventory/resources.ts';
import type { Collection, InventoryStore } from '../../../lib/inventory/store.ts';
import { present } from '../assertions.ts';
import { type AnyInventoryFixture, each, fullHost, https, type InventoryFixture, type InventoryRows, manyHosts, rows } from './fixture.ts';

type ParentKey = 'workspace_id' | 'host_id' | 'service_id';
type Row = { readonly id: number } & Partial<Readonly<Record<ParentKey, number | null>>>;

/** Rows of a collection that have the same parents. */
export interface KnownList {
    readonly name: keyof InventoryStore;
    readonly schema: Joi.ObjectSchema;
    readonly collection: Collection<Row>;
    /** Ids of the parents, from the outside in. */
    readonly path: readonly number[];
    /** All rows below them, in ascending id. */
    readonly known: readonly Row[];
}

/** So many lists of a collection, the longest ones, are enough to test it. */
const MAX_LISTS = 20;

interface KnownCollection extends Pick<KnownList, 'name' | 'schema'> {
    readonly parents: readonly ParentKey[];
    /** Where its rows are among those that are known; by its own name by default. */
    readonly rows?: keyof InventoryRows;
}

const COLLECTIONS: readonly KnownCollection[] = [
    { name: 'workspaces', schema: workspaceSchema, parents: [] },
    { name: 'hosts', schema: hostSchema, parents: ['workspace_id'] },
    { name: 'services', schema: serviceSchema, parents: ['host_id'] },
    { name: 'notes', schema: noteSchema, parents: ['host_id'] },
    { name: 'sessions', schema: sessionSchema, parents: ['host_id'] },
    { name: 'vulns', schema: vulnSchema, parents: ['host_id', 'service_id'] },
    { name: 'hostVulns', schema: workspaceVulnSchema, parents: ['host_id'], rows: 'vulns' },
    { name: 'workspaceServices', schema: serviceSchema, parents: ['workspace_id'], rows: 'services' },
    { name: 'workspaceNotes', schema: workspaceNoteSchema, parents: ['workspace_id'], rows: 'notes' },
    { name: 'workspaceSessions', schema: sessionSchema, parents: ['workspace_id'], rows: 'sessions' },
    { name: 'workspaceVulns', schema: workspaceVulnSchema, parents: ['workspace_id'], rows: 'vulns' },
];

/**
 * Lists of every collection that the store has: of the rows of a fixture that only reads, else of rows that are imported and added now.
 *
 * @param count At least so many hosts are imported.
 */
export async function knownLists(fixture: AnyInventoryFixture, count = 3): Promise<readonly KnownList[]> {
    const held = fixture.rows ?? (await seed(fixture, count));
    const workspaceOf = new Map(held.hosts.map(({ id, workspace_id }) => [id, workspace_id]));
    const workspaceIn = ({ host_id, workspace_id }: Row): number => workspaceOf.get(host_id ?? 0) ?? workspace_id ?? 0;
    const pathOf = (row: Row, parents: readonly ParentKey[]): readonly number[] => {
        const ids = parents.map((key) => (key === 'workspace_id' ? workspaceIn(row) : (row[key] ?? 0)));
        return parents[0] === 'host_id' ? [workspaceIn(row), ...ids] : ids;
    };

    return COLLECTIONS.flatMap(({ name, schema, parents, rows: from = name as keyof InventoryRows }) => {
        const collection = fixture.store[name];
        const below = (held[from] ?? []).filter((row: Row) => parents.every((key) => key === 'workspace_id' || row[key] !== null));
        const lists = grouped(below, (row) => pathOf(row, parents));
        return collection === undefined ? [] : lists.map((list) => ({ ...list, name, schema, collection }));
    });
}

/** The longest of these lists of one collection. */
export async function knownList(fixture: AnyInventoryFixture, name: keyof InventoryStore, count?: number): Promise<KnownList> {
    const lists = await knownLists(fixture, count);
    return present(
        lists.find((list) => list.name === name),
        `a known list of ${name}`,
    );
}

/** Rows of the same path together, the longest lists first. */
function grouped(held: readonly Row[], pathOf: (row: Row) => readonly number[]): readonly Pick<KnownList, 'path' | 'known'>[] {
    const lists = new Map<string, { readonly path: readonly number[]; readonly known: Row[] }>();
    for (const row of held.toSorted((a, b) => a.id - b.id)) {
        const path = pathOf(row);
        const list = lists.get(path.join()) ?? { path, known: [] };
        lists.set(path.join(), list);
        list.known.push(row);
    }

    return [...lists.values()].sort((a, b) => b.known.length - a.known.length).slice(0, MAX_LISTS);
}

async function seed({ store, add }: InventoryFixture, count: number): Promise<InventoryRows> {
    const inputs = [{ ...fullHost, services: [https] }, ...manyHosts(count)];
    const others = [{ address: '192.0.2.9' }];
    const { workspace } = await store.importHosts('default', each(inputs));
    const { workspace: other } = await store.importHosts('other', each(others));
    const hosts = await imported(store, workspace, inputs);
    const host_id = hosts[0]?.id ?? 0;
    const services = store.services === undefined ? [] : await rows(store.services, [workspace.id, host_id]);
    const service_id = services[0]?.id ?? 0;
    const note = { workspace_id: workspace.id, host_id };

    return {
        workspaces: [workspace, other],
        hosts: [...hosts, ...(await imported(store, other, others))],
        services: services.map(({ id }) => ({ ...https, id, host_id })),
        notes: [...(await added(add?.note, host_id, note)), ...(await added(add?.note, host_id, note))],
        sessions: await added(add?.session, host_id, { host_id }),
        vulns: services.length === 0 ? [] : await added(add?.vuln, service_id, { host_id, service_id }),
    };
}

/** The hosts of an import as the workspace must show them. */
async function imported({ hosts }: InventoryFixture['store'], { id: workspace_id }: Workspace, inputs: readonly HostInput[]) {
    const ids = new Map((await rows(hosts, [workspace_id])).map(({ address, id }) => [address, id]));
    return inputs.map(({ services: _services, ...fields }) => {
        return { ...fields, workspace_id, id: present(ids.get(fields.address), `the host ${fields.address}`) };
    });
}

async function added<Fields>(insert: ((parent: number) => Promise<number>) | undefined, parent: number, fields: Fields) {
    return insert === undefined ? [] : [{ ...fields, id: await insert(parent) }];
}
