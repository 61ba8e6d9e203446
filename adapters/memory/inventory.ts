import { type Clock, systemClock } from '../../lib/clock.ts';
import type { Host, HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import { hostFields, newHost } from '../../lib/inventory/new-host.ts';
import type { Note, Service, Session, Vuln } from '../../lib/inventory/resources.ts';
import type { ImportSummary, InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import { DEFAULT_WORKSPACE, type Workspace } from '../../lib/inventory/workspace.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { collection, ROOT, table } from './table.ts';

export interface MemoryInventoryOptions {
    readonly clock?: Clock;
    /** Rows per batch of a list. Default 500. */
    readonly batchSize?: number;
}

/** A note to add; what is left open starts as null or empty. */
export type NewNote = Partial<Omit<Note, 'id' | 'workspace_id' | 'host_id'>>;
export type NewSession = Partial<Omit<Session, 'id' | 'host_id'>>;
export type NewVuln = Partial<Omit<Vuln, 'id' | 'host_id' | 'service_id'>> & Pick<Vuln, 'name'>;

/** All collections, the import, and a way to add what no import brings. Nothing outlives the process. */
export interface MemoryInventory extends Required<InventoryStore>, InventoryWriter {
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addNote(hostId: number, note: NewNote): Promise<Note>;
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addSession(hostId: number, session: NewSession): Promise<Session>;
    /** @throws ScanwireError `NOT_FOUND` without such a service. */
    addVuln(serviceId: number, vuln: NewVuln): Promise<Vuln>;
}

interface Counts {
    created: number;
    updated: number;
}

type Counter = 'note_count' | 'service_count' | 'vuln_count';

/** An inventory in memory, with the workspace `default`: for tests, trials and small things. */
export function memoryInventory({ clock = systemClock, batchSize = 500 }: MemoryInventoryOptions = {}): MemoryInventory {
    const workspaces = table<Workspace>();
    const hosts = table<Host>();
    const services = table<Service>();
    const notes = table<Note>();
    const sessions = table<Session>();
    const vulns = table<Vuln>();

    const workspaceIds = new Map<string, number>();
    const hostIds = new Map<string, number>();
    const serviceIds = new Map<string, number>();

    function workspaceNamed(name: string): Workspace {
        const known = workspaces.get(workspaceIds.get(name) ?? ROOT);
        const workspace = known ?? workspaces.insert(ROOT, (id) => newWorkspace(id, name, clock()));
        workspaceIds.set(name, workspace.id);
        return workspace;
    }

    function storeHost(workspaceId: number, input: HostInput, now: Date): { host: Host; created: boolean } {
        const key = `${workspaceId} ${input.address}`;
        const known = hosts.get(hostIds.get(key) ?? ROOT);
        if (known !== undefined) {
            const host = { ...known, ...hostFields(input), updated_at: now };
            hosts.replace(host);
            return { host, created: false };
        }

        const host = hosts.insert(workspaceId, (id) => ({ ...newHost(input), id, workspace_id: workspaceId, ...times(now) }));
        hostIds.set(key, host.id);
        return { host, created: true };
    }

    function storeService(hostId: number, input: ServiceInput, now: Date): boolean {
        const key = `${hostId} ${input.port}/${input.proto}`;
        const known = services.get(serviceIds.get(key) ?? ROOT);
        if (known !== undefined) {
            services.replace({ ...known, ...input, updated_at: now });
            return false;
        }

        const { id } = services.insert(hostId, (id) => ({ ...input, id, host_id: hostId, ...times(now) }));
        serviceIds.set(key, id);
        count(hostId, 'service_count');
        return true;
    }

    function count(hostId: number, counter: Counter): void {
        const host = existing(hosts.get(hostId), 'host');
        hosts.replace({ ...host, [counter]: host[counter] + 1 });
    }

    function storeAll(workspaceName: string, inputs: readonly HostInput[]): ImportSummary {
        const now = clock();
        const workspace = workspaceNamed(workspaceName);
        const summary = { hosts: { created: 0, updated: 0 }, services: { created: 0, updated: 0 } };
        for (const input of inputs) {
            const { host, created } = storeHost(workspace.id, input, now);
            tally(summary.hosts, created);
            for (const service of input.services ?? []) {
                tally(summary.services, storeService(host.id, service, now));
            }
        }

        return { workspace, ...summary };
    }

    workspaceNamed(DEFAULT_WORKSPACE);

    return {
        workspaces: collection(workspaces, [], batchSize),
        hosts: collection(hosts, [workspaces], batchSize),
        services: collection(services, [workspaces, hosts], batchSize),
        notes: collection(notes, [workspaces, hosts], batchSize),
        sessions: collection(sessions, [workspaces, hosts], batchSize),
        vulns: collection(vulns, [workspaces, hosts, services], batchSize),

        async ensureWorkspace(name) {
            return workspaceNamed(name);
        },

        async importHosts(workspaceName, inputs) {
            const complete: HostInput[] = [];
            for await (const input of inputs) {
                complete.push(input);
            }

            // From here on nothing waits and nothing fails: all or nothing.
            return storeAll(workspaceName, complete);
        },

        async addNote(hostId, note) {
            const { workspace_id } = existing(hosts.get(hostId), 'host');
            count(hostId, 'note_count');
            return notes.insert(hostId, (id) => ({ ...BLANK_NOTE, ...times(clock()), ...note, id, workspace_id, host_id: hostId }));
        },

        async addSession(hostId, session) {
            existing(hosts.get(hostId), 'host');
            return sessions.insert(hostId, (id) => ({ ...BLANK_SESSION, opened_at: clock(), ...session, id, host_id: hostId }));
        },

        async addVuln(serviceId, vuln) {
            const { host_id } = existing(services.get(serviceId), 'service');
            count(host_id, 'vuln_count');
            return vulns.insert(serviceId, (id) => ({ ...BLANK_VULN, ...times(clock()), ...vuln, id, host_id, service_id: serviceId }));
        },
    };
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

function newWorkspace(id: number, name: string, now: Date): Workspace {
    return { id, name, boundary: null, description: null, owner_id: null, limit_to_network: false, ...times(now) };
}

function times(now: Date): { created_at: Date; updated_at: Date } {
    return { created_at: now, updated_at: now };
}

function tally(counts: Counts, created: boolean): void {
    counts[created ? 'created' : 'updated'] += 1;
}

function existing<Row>(row: Row | undefined, what: string): Row {
    if (row === undefined) {
        throw new ScanwireError('NOT_FOUND', `Unknown ${what}`);
    }

    return row;
}
