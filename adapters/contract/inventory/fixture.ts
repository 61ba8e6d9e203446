import assert from 'node:assert/strict';
import type { Host, HostInput, hostFields, ServiceInput } from '../../../lib/inventory/host.ts';
import type { Service, Session, Workspace, WorkspaceNote, WorkspaceVuln } from '../../../lib/inventory/resources.ts';
import type { Collection, InventoryStore, InventoryWriter } from '../../../lib/inventory/store.ts';
import { present, until } from '../assertions.ts';
import type { Ability, ContractFixture, LawGroup } from '../register-laws.ts';

interface ReadingFixture extends ContractFixture {
    /** How many readings hold something now (connections, cursors); `() => 0` where none holds anything between two batches. */
    openReads(): number | Promise<number>;
}

/** For a store that imports. */
export interface InventoryFixture extends ReadingFixture {
    /** Once started, it holds the workspace `default` and nothing else. */
    readonly store: InventoryStore & InventoryWriter;
    /** Adds a row that no import brings and resolves to its id; needed for each of these collections that the store has. */
    readonly add?: {
        note?(hostId: number): Promise<number>;
        session?(hostId: number): Promise<number>;
        vuln?(serviceId: number): Promise<number>;
        /** Limits a workspace to a boundary; needed where the store keeps them. */
        boundary?(workspaceId: number, boundary: string): Promise<unknown>;
    };
    readonly rows?: undefined;
}

/** For a store that only reads, from tables that others fill. */
export interface ReadOnlyInventoryFixture extends ReadingFixture {
    readonly store: InventoryStore;
    /** All that the tables hold once started, in any order: two workspaces or more, and a row for each collection that the store has. */
    readonly rows: InventoryRows;
    readonly add?: undefined;
}

/** For a store that imports, or for one that only reads. */
export type AnyInventoryFixture = InventoryFixture | ReadOnlyInventoryFixture;

type Known<Row, Key extends keyof Row> = Pick<Row, Key> & Partial<Row>;

/** Rows as the store must show them: with the ids of their parents and, of the other fields, those that are given. */
export interface InventoryRows {
    readonly workspaces: readonly Known<Workspace, 'id'>[];
    /** One workspace has at least 2,500, more than any sensible batch holds. */
    readonly hosts: readonly Known<Host, 'id' | 'workspace_id'>[];
    readonly services?: readonly Known<Service, 'id' | 'host_id'>[];
    /** One without a host is in the index of its workspace alone. */
    readonly notes?: readonly Known<WorkspaceNote, 'id' | 'workspace_id' | 'host_id'>[];
    readonly sessions?: readonly Known<Session, 'id' | 'host_id'>[];
    /** One without a service is in the index of its workspace alone. */
    readonly vulns?: readonly Known<WorkspaceVuln, 'id' | 'host_id' | 'service_id'>[];
}

/** More than any sensible batch holds. */
export const MANY = 2500;

/** Name of something that not every inventory can do, or that cannot be seen without help from the fixture. */
export type InventoryAbility =
    | 'imports'
    | 'selects'
    | 'filters'
    | 'selectsHosts'
    | 'changes'
    | 'counts'
    | 'tellsDeletions'
    | 'sightings'
    | 'expires'
    | 'removes'
    | 'moves'
    | 'updatesWorkspaces'
    | 'renames'
    | 'replaces'
    | 'keepsFindings'
    | 'dryRuns'
    | 'keepsBoundaries'
    | 'remembersImports'
    | 'texts'
    | 'rows'
    | 'many-hosts'
    | 'reads-open'
    | 'services'
    | 'notes'
    | 'sessions'
    | 'vulns'
    | 'hostVulns'
    | 'workspaceServices'
    | 'workspaceNotes'
    | 'workspaceSessions'
    | 'workspaceVulns';

/** Laws of an inventory. */
export type InventoryLaws = readonly LawGroup<InventoryFixture, InventoryAbility>[];

/** What the laws of inventories may need. */
export const inventoryAbilities: Readonly<Record<InventoryAbility, Ability<AnyInventoryFixture>>> = {
    imports: {
        has: imports,
        shows: ({ rows }) => rows === undefined,
        supply: 'a store that begins empty, without rows, since it imports',
    },
    rows: {
        has: () => true,
        shows: ({ store, rows }) => (rows === undefined ? imports({ store }) : rows.workspaces.length > 1 && rows.hosts.length > 1),
        supply: 'rows, all that the tables hold, with two workspaces and two hosts at least',
    },
    'many-hosts': {
        has: () => true,
        shows: ({ rows }) => rows === undefined || hasLongList(rows),
        supply: `rows with a workspace of at least ${MANY} hosts`,
    },
    'reads-open': {
        has: () => true,
        shows: ({ openReads }) => openReads !== undefined,
        supply: 'openReads(), the number of readings that hold something',
    },
    selects: evident(({ hosts }) => typeof hosts.select === 'function'),
    filters: evident(({ hosts }) => hosts.filters !== undefined && hosts.filters.length > 0),
    selectsHosts: evident(({ workspaceServices }) => workspaceServices?.selectsHosts === true),
    changes: evident(({ hosts }) => hosts.filters?.includes('updated_since') ?? false),
    tellsDeletions: evident(({ hosts }) => hosts.deletions !== undefined),
    counts: evident(({ hosts }) => typeof hosts.count === 'function'),
    sightings: evident(({ hosts }) => hosts.extras?.includes('last_seen') ?? false),
    expires: evident((store) => typeof (store as Partial<InventoryWriter>).expireHosts === 'function'),
    removes: evident((store) => typeof (store as Partial<InventoryWriter>).removeWorkspace === 'function'),
    moves: evident((store) => typeof (store as Partial<InventoryWriter>).moveHosts === 'function'),
    updatesWorkspaces: evident((store) => typeof (store as Partial<InventoryWriter>).updateWorkspace === 'function'),
    renames: evident((store) => typeof (store as Partial<InventoryWriter>).renameWorkspace === 'function'),
    replaces: evident((store) => (store as Partial<InventoryWriter>).replaces === true),
    keepsFindings: evident((store) => (store as Partial<InventoryWriter>).keepsFindings === true),
    dryRuns: evident((store) => (store as Partial<InventoryWriter>).dryRuns === true),
    remembersImports: evident((store) => (store as Partial<InventoryWriter>).remembersImports === true),
    keepsBoundaries: {
        has: ({ store }) => (store as Partial<InventoryWriter>).keepsBoundaries === true,
        shows: ({ add }) => add?.boundary !== undefined,
        supply: 'add.boundary()',
    },
    texts: evident(({ hosts }) => typeof hosts.listText === 'function'),
    services: serviceAbility('services'),
    notes: childAbility('notes', 'note'),
    sessions: childAbility('sessions', 'session'),
    // They are below services, so without those there are none.
    vulns: { ...childAbility('vulns', 'vuln'), has: ({ store }) => isCollection(store.services) && isCollection(store.vulns) },
    hostVulns: childAbility('vulns', 'vuln', 'hostVulns'),
    workspaceServices: serviceAbility('workspaceServices'),
    workspaceNotes: childAbility('notes', 'note', 'workspaceNotes'),
    workspaceSessions: childAbility('sessions', 'session', 'workspaceSessions'),
    workspaceVulns: childAbility('vulns', 'vuln', 'workspaceVulns'),
};

/** What the rows that there are anyway put to the test. */
function evident(has: (store: InventoryStore) => boolean): Ability<AnyInventoryFixture> {
    return { has: ({ store }) => has(store), shows: () => true, supply: 'nothing more' };
}

function serviceAbility(collection: 'services' | 'workspaceServices'): Ability<AnyInventoryFixture> {
    return {
        has: ({ store }) => isCollection(store[collection]),
        shows: ({ rows }) => rows === undefined || hasRows(rows.services),
        supply: 'rows.services',
    };
}

/** Of a collection that no import fills. */
function childAbility(
    name: 'notes' | 'sessions' | 'vulns',
    one: 'note' | 'session' | 'vuln',
    collection: keyof InventoryStore = name,
): Ability<AnyInventoryFixture> {
    return {
        has: ({ store }) => isCollection(store[collection]),
        shows: ({ rows, add }) => hasRows(rows?.[name]) || add?.[one] !== undefined,
        supply: `add.${one}() or rows.${name}`,
    };
}

function imports({ store }: { readonly store: InventoryStore & Partial<InventoryWriter> }): boolean {
    return typeof store.importHosts === 'function' && typeof store.ensureWorkspace === 'function';
}

function isCollection(collection: Collection<{ readonly id: number }> | undefined): boolean {
    return typeof collection?.list === 'function' && typeof collection.get === 'function';
}

function hasRows(rows: readonly unknown[] | undefined): boolean {
    return rows !== undefined && rows.length > 0;
}

function hasLongList({ workspaces, hosts }: InventoryRows): boolean {
    return workspaces.some(({ id }) => hosts.filter(({ workspace_id }) => workspace_id === id).length >= MANY);
}

/** A host with a value in every field that an import gives. */
export const fullHost: Required<ReturnType<typeof hostFields>> = {
    address: 'fe80::1',
    mac: '00:50:56:aa:bb:cc',
    comm: '',
    name: 'köln 🖥 主机',
    state: 'down',
    os_name: 'Linux',
    os_flavor: 'Debian',
    os_sp: '12',
    os_lang: 'de',
    arch: 'Unknown',
    purpose: 'server',
    info: 'line\nbreak "quoted" \\',
    comments: '💾',
    scope: 'eth0',
    virtual_host: 'VMWare',
    nexpose_data_asset_id: 2_147_483_647,
    detected_arch: 'riscv64',
};

/** A service to import. */
export const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null };
/** Another one. */
export const dns: ServiceInput = { port: 53, proto: 'tcp', state: 'open', name: 'domain', info: 'dnsmasq 🦆' };

/** All rows below the path, in the batches of the store. */
export async function batches<Row extends { readonly id: number }>(
    collection: Collection<Row>,
    path: readonly number[],
): Promise<(readonly Row[])[]> {
    const all: (readonly Row[])[] = [];
    for await (const batch of collection.list(path)) {
        assert.ok(Array.isArray(batch), 'a batch is an array of rows');
        all.push(batch);
    }

    return all;
}

/** All rows below the path. */
export async function rows<Row extends { readonly id: number }>(collection: Collection<Row>, path: readonly number[]): Promise<Row[]> {
    return (await batches(collection, path)).flat();
}

/** The workspace `default` and the host as it holds it after the import. */
export async function oneHost(store: InventoryFixture['store'], input: HostInput): Promise<{ workspace: Workspace; host: Host }> {
    const { workspace } = await store.importHosts('default', each([input]));
    const host = (await rows(store.hosts, [workspace.id])).find(({ address }) => address === input.address);
    return { workspace, host: present(host, 'the imported host') };
}

/** So many hosts to import, each with an address of its own. */
export function manyHosts(count: number = MANY): HostInput[] {
    return Array.from({ length: count }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}` }));
}

/** The items one after the other, as an import takes them. */
export async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

/** The names of workspaces. */
export function names(workspaces: readonly Workspace[]): string[] {
    return workspaces.map(({ name }) => name);
}

/** The same from a source that fails after the last one. */
export async function* failing<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
    throw new Error('the source broke');
}

/** Resolves when it is later than now for every clock that counts milliseconds. */
export async function nextMillisecond(): Promise<void> {
    const now = Date.now();
    await until(() => Date.now() > now + 1);
}
