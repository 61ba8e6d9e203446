import { type Clock, systemClock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type Host, type HostInput, hostFields, newHost, type ServiceInput } from '../../lib/inventory/host.ts';
import { DEFAULT_WORKSPACE, type Note, type Service, type Session, type Vuln, type Workspace } from '../../lib/inventory/resources.ts';
import { compareRows, FILTERS, type FilterName, matches, type Selection } from '../../lib/inventory/selection.ts';
import type { InventoryStore, InventoryWriter, SelectableCollection } from '../../lib/inventory/store.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';

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
        workspaces: collection(workspaces, [], { batchSize, filters: FILTERS.workspaces }),
        hosts: collection(hosts, [workspaces], { batchSize, filters: FILTERS.hosts }),
        services: collection(services, [workspaces, hosts], { batchSize, filters: FILTERS.services }),
        notes: collection(notes, [workspaces, hosts], { batchSize, filters: FILTERS.notes }),
        sessions: collection(sessions, [workspaces, hosts], { batchSize, filters: FILTERS.sessions }),
        vulns: collection(vulns, [workspaces, hosts, services], { batchSize, filters: FILTERS.vulns }),
        workspaceServices: collection(services, [workspaces, hosts], { batchSize, filters: FILTERS.services, below: 1 }),
        workspaceNotes: collection(notes, [workspaces, hosts], { batchSize, filters: FILTERS.notes, below: 1 }),
        workspaceSessions: collection(sessions, [workspaces, hosts], { batchSize, filters: FILTERS.sessions, below: 1 }),
        workspaceVulns: collection(vulns, [workspaces, hosts, services], { batchSize, filters: FILTERS.vulns, below: 1 }),
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

/** The import into the tables. */
function inventoryWriter({ workspaces, hosts, services }: InventoryTables, clock: Clock): MemoryInventoryWriter {
    function storeWorkspace(name: string): Workspace {
        const blank = { boundary: null, description: null, owner_id: null, limit_to_network: false };
        return workspaces.find(ROOT, name) ?? workspaces.insert(ROOT, (id) => ({ id, name, ...blank, ...times(clock()) }), name);
    }

    function storeHost(workspace_id: number, input: HostInput): Host {
        const known = hosts.find(workspace_id, input.address);
        return known === undefined
            ? hosts.insert(workspace_id, (id) => ({ ...newHost(input), id, workspace_id, ...times(clock()) }), input.address)
            : hosts.replace({ ...known, ...hostFields(input), updated_at: clock() });
    }

    function storeService(host_id: number, input: ServiceInput): void {
        const known = services.find(host_id, serviceKey(input));
        if (known === undefined) {
            services.insert(host_id, (id) => ({ ...input, id, host_id, ...times(clock()) }), serviceKey(input));
            count(hosts, host_id, 'service_count');
        } else {
            services.replace({ ...known, ...input, updated_at: clock() });
        }
    }

    function storeEndpoint(workspaceId: number, { address, port, name, isNew }: Endpoint): void {
        const known = hosts.find(workspaceId, address);
        const input = { address, ...(known === undefined && name !== null && { name }) };
        const host = known === undefined || isNew ? storeHost(workspaceId, input) : known;
        const service = services.find(host.id, serviceKey({ port, proto: 'tcp' }));
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
            const workspace = storeWorkspace(workspaceName);
            const [hostsBefore, servicesBefore] = [hosts.size(), services.size()];
            let servicesStored = 0;
            for (const input of complete) {
                const host = storeHost(workspace.id, input);
                for (const service of input.services ?? []) {
                    storeService(host.id, service);
                    servicesStored += 1;
                }
            }

            return {
                workspace,
                hosts: tally(complete.length, hosts.size() - hostsBefore),
                services: tally(servicesStored, services.size() - servicesBefore),
            };
        },

        addEndpoints(workspaceName, endpoints) {
            const { id } = storeWorkspace(workspaceName);
            for (const endpoint of endpoints) {
                storeEndpoint(id, endpoint);
            }
        },
    };
}

function serviceKey({ port, proto }: Pick<ServiceInput, 'port' | 'proto'>): string {
    return `${port}/${proto}`;
}

function tally(stored: number, created: number): { created: number; updated: number } {
    return { created, updated: stored - created };
}

/** The parent of rows that have none. */
const ROOT = 0;

type Row = { readonly id: number };
type Table<R extends Row> = ReturnType<typeof table<R>>;
type InventoryTables = ReturnType<typeof inventoryTables>;

function inventoryTables() {
    return {
        workspaces: table<Workspace>(),
        hosts: table<Host>(),
        services: table<Service>(),
        notes: table<Note>(),
        sessions: table<Session>(),
        vulns: table<Vuln>(),
    };
}

/** Rows of one resource, each below one parent. */
function table<R extends Row>() {
    const rows = new Map<number, R>();
    const parents = new Map<number, number>();
    const children = new Map<number, number[]>();
    const idsByKey = new Map<string, number>();

    return {
        /** Adds a row with the next id, counted from 1. With a key it can be found below its parent. */
        insert(parent: number, make: (id: number) => R, key?: string): R {
            const row = make(rows.size + 1);
            const siblings = children.get(parent) ?? [];
            siblings.push(row.id);
            children.set(parent, siblings);
            parents.set(row.id, parent);
            rows.set(row.id, row);
            if (key !== undefined) {
                idsByKey.set(`${parent} ${key}`, row.id);
            }

            return row;
        },

        replace(row: R): R {
            rows.set(row.id, row);
            return row;
        },

        size: () => rows.size,
        get: (id: number) => rows.get(id),
        find: (parent: number, key: string) => rows.get(idsByKey.get(`${parent} ${key}`) ?? 0),
        /** Id of the parent; undefined when there is no such row. */
        parentOf: (id: number) => parents.get(id),
        /** Ids below a parent, ascending. */
        idsBelow: (parent: number): readonly number[] => children.get(parent) ?? [],
    };
}

/**
 * The table as a store shows it.
 *
 * @param ancestors Tables of the parents, from the outside in.
 * @param below How many of these the path names; the rows below all that is below it are meant. All by default.
 */
function collection<R extends Row>(
    rows: Table<R>,
    ancestors: readonly Pick<Table<Row>, 'parentOf' | 'idsBelow'>[],
    { batchSize, filters, below = ancestors.length }: CollectionShown,
): SelectableCollection<R> {
    const exists = (path: readonly number[]): boolean =>
        path.length === below && path.every((id, depth) => ancestors[depth]?.parentOf(id) === (path[depth - 1] ?? ROOT));

    function idsBelow(path: readonly number[]): readonly number[] {
        const parent = path.at(-1) ?? ROOT;
        if (!exists(path) || below === ancestors.length) {
            return exists(path) ? rows.idsBelow(parent) : [];
        }

        const levels = [...ancestors.slice(below), rows];
        return levels.reduce((ids, level) => ids.flatMap((id) => level.idsBelow(id)), [parent]).sort((one, other) => one - other);
    }

    /** Ids of what is above a row, from the outside in. */
    function pathOf(id: number): readonly number[] {
        const path = [rows.parentOf(id) ?? ROOT];
        for (const level of ancestors.slice(1).reverse()) {
            path.unshift(level.parentOf(path[0] as number) ?? ROOT);
        }
        return path;
    }

    function selected(path: readonly number[], { where = {}, after = { id: 0 }, limit }: Selection): readonly R[] {
        const byChange = where.updated_since !== undefined;
        const found = idsBelow(path).flatMap((id) => rows.get(id) ?? []);
        const wanted = found.filter((row) => matches(row, where) && compareRows(byChange, row, after) > 0);
        return wanted.sort((one, other) => compareRows(byChange, one, other)).slice(0, limit);
    }

    return {
        filters,

        async *select(path, selection, { signal } = {}) {
            const wanted = selected(path, selection);
            for (let start = 0; start < wanted.length; start += batchSize) {
                signal?.throwIfAborted();
                yield wanted.slice(start, start + batchSize);
            }
        },

        async count(path, where) {
            return selected(path, { where }).length;
        },

        async *list(path, { signal } = {}) {
            // As many as there were when the reading began; rows that come meanwhile are appended behind them.
            const ids = idsBelow(path);
            const end = ids.length;
            for (let start = 0; start < end; start += batchSize) {
                signal?.throwIfAborted();
                yield ids.slice(start, Math.min(start + batchSize, end)).flatMap((id) => rows.get(id) ?? []);
            }
        },

        async get(path, id) {
            const isBelow = exists(path) && pathOf(id).slice(0, below).join() === path.join();
            return isBelow ? (rows.get(id) ?? null) : null;
        },
    };
}

interface CollectionShown {
    readonly batchSize: number;
    readonly filters: readonly FilterName[];
    readonly below?: number;
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
