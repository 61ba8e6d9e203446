import { type Clock, systemClock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type Host, type HostInput, hostFields, newHost, type ServiceInput } from '../../lib/inventory/host.ts';
import { DEFAULT_WORKSPACE, type Note, type Service, type Session, type Vuln, type Workspace } from '../../lib/inventory/resources.ts';
import type { ImportSummary, InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';
import { collection, ROOT, type Table, table } from './table.ts';

/** How the inventory is read and stamped. */
export interface MemoryInventoryOptions {
    readonly clock?: Clock;
    /** Rows per batch of a list. Default 500. */
    readonly batchSize?: number;
}

/** A note to add; what is left open starts as null or empty. */
export type NewNote = Partial<Omit<Note, 'id' | 'workspace_id' | 'host_id'>>;
/** A session to add; what is left open starts as null or empty, and it opens now. */
export type NewSession = Partial<Omit<Session, 'id' | 'host_id'>>;
/** A vulnerability to add; what is left open starts as null or 0. */
export type NewVuln = Partial<Omit<Vuln, 'id' | 'host_id' | 'service_id'>> & Pick<Vuln, 'name'>;

/** All collections, the import, and a way to add what no import brings. Nothing outlives the process. */
export interface MemoryInventory extends Required<InventoryStore>, MemoryInventoryWriter {
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addNote(hostId: number, note: NewNote): Promise<Note>;
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addSession(hostId: number, session: NewSession): Promise<Session>;
    /** @throws ScanwireError `NOT_FOUND` without such a service. */
    addVuln(serviceId: number, vuln: NewVuln): Promise<Vuln>;
}

const BLANK_NOTE = { service_id: null, ntype: null, data: {}, critical: null, seen: null };

const BLANK_SESSION = {
    stype: null,
    via_exploit: null,
    via_payload: null,
    desc: null,
    port: null,
    platform: null,
    datastore: {},
    closed_at: null,
    close_reason: null,
    local_id: null,
    last_seen: null,
    campaign_id: null,
};

const BLANK_VULN = { info: null, exploited_at: null, vuln_detail_count: 0, vuln_attempt_count: 0, nexpose_data_vuln_def_id: null };

/** An inventory in memory, with the workspace `default`: for tests, trials and small things. */
export function memoryInventory({ clock = systemClock, batchSize = 500 }: MemoryInventoryOptions = {}): MemoryInventory {
    const tables = inventoryTables();
    const { workspaces, hosts, services, notes, sessions, vulns } = tables;
    const writer = inventoryWriter(tables, clock);
    // Made before this returns: nothing in it waits.
    void writer.ensureWorkspace(DEFAULT_WORKSPACE);

    return {
        workspaces: collection(workspaces, [], batchSize),
        hosts: collection(hosts, [workspaces], batchSize),
        services: collection(services, [workspaces, hosts], batchSize),
        notes: collection(notes, [workspaces, hosts], batchSize),
        sessions: collection(sessions, [workspaces, hosts], batchSize),
        vulns: collection(vulns, [workspaces, hosts, services], batchSize),
        ...writer,
        ...childAdding(tables, clock),
    };
}

/** Adds what no import brings. */
function childAdding(
    { hosts, services, notes, sessions, vulns }: InventoryTables,
    clock: Clock,
): Pick<MemoryInventory, 'addNote' | 'addSession' | 'addVuln'> {
    return {
        async addNote(hostId, note) {
            const { workspace_id } = existing(hosts.get(hostId), 'host');
            count(hosts, hostId, 'note_count');
            return notes.insert(hostId, (id) => ({ ...BLANK_NOTE, ...times(clock()), ...note, id, workspace_id, host_id: hostId }));
        },

        async addSession(hostId, session) {
            existing(hosts.get(hostId), 'host');
            return sessions.insert(hostId, (id) => ({ ...BLANK_SESSION, opened_at: clock(), ...session, id, host_id: hostId }));
        },

        async addVuln(serviceId, vuln) {
            const { host_id } = existing(services.get(serviceId), 'service');
            count(hosts, host_id, 'vuln_count');
            return vulns.insert(serviceId, (id) => ({ ...BLANK_VULN, ...times(clock()), ...vuln, id, host_id, service_id: serviceId }));
        },
    };
}

/** What this store offers to writers. */
export interface MemoryInventoryWriter extends InventoryWriter {
    /** Puts endpoints into the workspace of that name as `RecordStore.add` says; at once, so that `memoryRecords` need not wait. */
    addEndpoints(workspaceName: string, endpoints: readonly Endpoint[]): void;
}

interface Stored<Row> {
    readonly row: Row;
    readonly created: boolean;
}

/** Finds the row that bears a key. */
type Index = Map<string, number>;

/** The import into the tables. */
function inventoryWriter(tables: InventoryTables, clock: Clock): MemoryInventoryWriter {
    const storeWorkspace = workspaceStoring(tables, clock);
    const hostsByAddress: Index = new Map();
    const servicesByPort: Index = new Map();
    const storeHost = hostStoring(tables, hostsByAddress, clock);
    const storeService = serviceStoring(tables, servicesByPort, clock);

    function storeAll(workspaceName: string, inputs: readonly HostInput[]): ImportSummary {
        const workspace = storeWorkspace(workspaceName);
        const hosts = { created: 0, updated: 0 };
        const services = { created: 0, updated: 0 };
        for (const input of inputs) {
            const { row: host, created } = storeHost(workspace.id, input);
            tally(hosts, created);
            for (const service of input.services ?? []) {
                tally(services, storeService(host.id, service));
            }
        }

        return { workspace, hosts, services };
    }

    function storeEndpoint(workspaceId: number, { address, port, name, isNew }: Endpoint): void {
        const known = indexed(tables.hosts, hostsByAddress, hostKey(workspaceId, address));
        const input = { address, ...(known === undefined && name !== null && { name }) };
        const host = known === undefined || isNew ? storeHost(workspaceId, input).row : known;
        const service = indexed(tables.services, servicesByPort, serviceKey(host.id, { port, proto: 'tcp' }));
        if (service === undefined || isNew) {
            storeService(host.id, { port, proto: 'tcp', state: 'open', name: 'https', info: service?.info ?? null });
        }
    }

    return {
        async ensureWorkspace(name) {
            return storeWorkspace(name);
        },

        async importHosts(workspaceName, inputs) {
            const complete: HostInput[] = [];
            for await (const input of inputs) {
                complete.push(input);
            }

            // From here on nothing waits and nothing fails: all or nothing.
            return storeAll(workspaceName, complete);
        },

        addEndpoints(workspaceName, endpoints) {
            const { id } = storeWorkspace(workspaceName);
            for (const endpoint of endpoints) {
                storeEndpoint(id, endpoint);
            }
        },
    };
}

function workspaceStoring({ workspaces }: InventoryTables, clock: Clock): (name: string) => Workspace {
    const byName: Index = new Map();

    return (name) => {
        const known = indexed(workspaces, byName, name);
        if (known !== undefined) {
            return known;
        }

        const blank = { boundary: null, description: null, owner_id: null, limit_to_network: false };
        const workspace = workspaces.insert(ROOT, (id) => ({ id, name, ...blank, ...times(clock()) }));
        byName.set(name, workspace.id);
        return workspace;
    };
}

function hostStoring({ hosts }: InventoryTables, byAddress: Index, clock: Clock): (workspaceId: number, input: HostInput) => Stored<Host> {
    return (workspaceId, input) => {
        const key = hostKey(workspaceId, input.address);
        const known = indexed(hosts, byAddress, key);
        if (known !== undefined) {
            return { row: hosts.replace({ ...known, ...hostFields(input), updated_at: clock() }), created: false };
        }

        const row = hosts.insert(workspaceId, (id) => ({ ...newHost(input), id, workspace_id: workspaceId, ...times(clock()) }));
        byAddress.set(key, row.id);
        return { row, created: true };
    };
}

/** Says whether the service is new. */
function serviceStoring(
    { hosts, services }: InventoryTables,
    byPort: Index,
    clock: Clock,
): (hostId: number, input: ServiceInput) => boolean {
    return (hostId, input) => {
        const key = serviceKey(hostId, input);
        const known = indexed(services, byPort, key);
        if (known !== undefined) {
            services.replace({ ...known, ...input, updated_at: clock() });
            return false;
        }

        const { id } = services.insert(hostId, (id) => ({ ...input, id, host_id: hostId, ...times(clock()) }));
        byPort.set(key, id);
        count(hosts, hostId, 'service_count');
        return true;
    };
}

function hostKey(workspaceId: number, address: string): string {
    return `${workspaceId} ${address}`;
}

function serviceKey(hostId: number, { port, proto }: Pick<ServiceInput, 'port' | 'proto'>): string {
    return `${hostId} ${port}/${proto}`;
}

function indexed<Row extends { readonly id: number }>(rows: Table<Row>, index: Index, key: string): Row | undefined {
    const id = index.get(key);
    return id === undefined ? undefined : rows.get(id);
}

function tally(counts: { created: number; updated: number }, created: boolean): void {
    counts[created ? 'created' : 'updated'] += 1;
}

interface InventoryTables {
    readonly workspaces: Table<Workspace>;
    readonly hosts: Table<Host>;
    readonly services: Table<Service>;
    readonly notes: Table<Note>;
    readonly sessions: Table<Session>;
    readonly vulns: Table<Vuln>;
}

function inventoryTables(): InventoryTables {
    return { workspaces: table(), hosts: table(), services: table(), notes: table(), sessions: table(), vulns: table() };
}

/** Counts one more child of a host. */
function count(hosts: Table<Host>, hostId: number, counter: 'note_count' | 'service_count' | 'vuln_count'): void {
    const host = existing(hosts.get(hostId), 'host');
    hosts.replace({ ...host, [counter]: host[counter] + 1 });
}

/** @throws ScanwireError `NOT_FOUND` without the row. */
function existing<Row>(row: Row | undefined, what: string): Row {
    if (row === undefined) {
        throw new ScanwireError('NOT_FOUND', `Unknown ${what}`);
    }

    return row;
}

function times(now: Date): { created_at: Date; updated_at: Date } {
    return { created_at: now, updated_at: now };
}
