import Joi from 'joi';
import type { Clock } from '../../../lib/clock.ts';
import { checkedWorkspaceChanges } from '../../../lib/inventory/boundary.ts';
import type { Host } from '../../../lib/inventory/host.ts';
import { checkedHostMove, targetOf } from '../../../lib/inventory/host-moves.ts';
import { DEFAULT_WORKSPACE, type Note, type Session, type Vuln, type Workspace } from '../../../lib/inventory/resources.ts';
import { FILTERS, matching } from '../../../lib/inventory/selection.ts';
import type { InventoryStore, InventoryWriter, RemovedHosts } from '../../../lib/inventory/store.ts';
import { newWorkspaceName, unknownWorkspace, workspaceNameTaken } from '../../../lib/inventory/workspace-names.ts';
import { checked, clockSchema } from '../../../lib/schema-validation.ts';
import { BLANK_FINDINGS, type InventoryImport, inventoryImport } from './import-hosts.ts';
import {
    collection,
    count,
    existing,
    type InventoryTables,
    inventoryTables,
    moveHost,
    removeHost,
    times,
    vulnsOfServices,
} from './inventory-tables.ts';
import { ROOT } from './table.ts';

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
export interface MemoryInventory extends Required<InventoryStore & InventoryWriter>, Pick<InventoryImport, 'addEndpoints'> {
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addNote(hostId: number, note: NewNote): Promise<Note>;
    /** @throws ScanwireError `NOT_FOUND` without such a host. */
    addSession(hostId: number, session: NewSession): Promise<Session>;
    /** @throws ScanwireError `NOT_FOUND` without such a service. */
    addVuln(serviceId: number, vuln: NewVuln): Promise<Vuln>;
    /**
     * Limits a workspace to addresses, blocks and ranges, with commas between them.
     *
     * @throws ScanwireError `NOT_FOUND` without such a workspace.
     */
    limitWorkspace(id: number, boundary: string): Promise<Workspace>;
}

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

const optionsSchema: Joi.ObjectSchema<Required<MemoryInventoryOptions>> = Joi.object({
    clock: clockSchema,
    batchSize: Joi.number().integer().min(1).default(500),
});

/** An inventory in memory, with the workspace `default`: for tests, trials and small things. */
export function memoryInventory(options: MemoryInventoryOptions = {}): MemoryInventory {
    const { clock, batchSize } = checked(optionsSchema, options, { subject: 'memoryInventory options', code: 'MISCONFIGURED' });
    const tables = inventoryTables(clock);
    const { workspaces, hosts, services, notes, sessions, vulns, sightings, tombstones } = tables;
    const buried = tombstones.of;
    const lastSeen = ({ id, updated_at }: Host): Date | null => sightings.get(id) ?? (sightings.has(id) ? null : updated_at);
    const imports = inventoryImport(tables, clock);
    // Made before this returns: nothing in it waits.
    void imports.ensureWorkspace(DEFAULT_WORKSPACE);

    function remove(workspaceId: number, isMeant: (host: Host) => boolean, dryRun: boolean): RemovedHosts {
        const meant = hosts.idsBelow(workspaceId).filter((hostId) => isMeant(existing(hosts.get(hostId), 'host')));
        for (const hostId of dryRun ? [] : meant) {
            removeHost(tables, hostId);
        }
        return { hosts: meant.length };
    }

    const belowHost = [workspaces, hosts];
    const addressOf = ({ host_id }: { readonly host_id: number | null }): string | undefined => hosts.get(host_id ?? ROOT)?.address;
    const ofWorkspace = { batchSize, below: 1, addressOf };
    return {
        workspaces: collection(workspaces, [], { batchSize, filters: FILTERS.workspaces, deletions: buried('workspaces', 0) }),
        hosts: collection(hosts, [workspaces], { batchSize, filters: FILTERS.hosts, lastSeen, deletions: buried('hosts', 1) }),
        services: collection(services, belowHost, { batchSize, filters: FILTERS.services, deletions: buried('services', 2) }),
        notes: collection(notes, belowHost, { batchSize, filters: FILTERS.notes, deletions: buried('notes', 2) }),
        sessions: collection(sessions, belowHost, { batchSize, filters: FILTERS.sessions }),
        vulns: collection(vulnsOfServices(tables), [...belowHost, services], {
            batchSize,
            filters: FILTERS.vulns,
            deletions: buried('vulns', 3),
        }),
        hostVulns: collection(vulns, belowHost, { batchSize, filters: FILTERS.vulns, deletions: buried('vulns', 2) }),
        workspaceServices: collection(services, belowHost, {
            ...ofWorkspace,
            filters: FILTERS.workspaceServices,
            deletions: buried('services', 1),
        }),
        workspaceNotes: collection(notes, belowHost, { ...ofWorkspace, filters: FILTERS.workspaceNotes, deletions: buried('notes', 1) }),
        workspaceSessions: collection(sessions, belowHost, { ...ofWorkspace, filters: FILTERS.sessions }),
        workspaceVulns: collection(vulns, belowHost, { ...ofWorkspace, filters: FILTERS.workspaceVulns, deletions: buried('vulns', 1) }),
        ...imports,

        async expireHosts(workspaceName, { notSeenSince, dryRun = false }) {
            const isUnseen = (host: Host): boolean => (lastSeen(host) ?? host.updated_at) < notSeenSince;
            return remove(workspaceNamed(tables, workspaceName).id, isUnseen, dryRun);
        },

        async removeHosts(workspaceName, { address, dryRun = false }) {
            const isMeant: (host: Host) => boolean = matching(address === undefined ? {} : { address });
            return remove(workspaceNamed(tables, workspaceName).id, isMeant, dryRun);
        },

        async removeWorkspace(name) {
            const { id } = workspaceNamed(tables, name);
            const removed = remove(id, () => true, false);
            workspaces.remove(id);
            tombstones.bury('workspaces', id, []);
            return removed;
        },

        async moveHosts(ids, to) {
            const move = checkedHostMove({ ids, to });
            const workspace = workspaces.find(ROOT, move.to);
            const found = move.ids.flatMap((id) => hosts.get(id) ?? []);
            const held = found.flatMap(({ address }) => hosts.find(workspace?.id ?? ROOT, address)?.address ?? []);
            const target = targetOf({ ...move, hosts: found, workspace, held });
            const at = clock();
            for (const id of move.ids) {
                moveHost(tables, id, target.id, at);
            }
            return { hosts: found.length };
        },

        async updateWorkspace(name, changes) {
            const checkedChanges = checkedWorkspaceChanges(changes);
            return workspaces.replace({ ...workspaceNamed(tables, name), ...checkedChanges, updated_at: clock() });
        },

        async renameWorkspace(name, newName) {
            const to = newWorkspaceName(newName);
            const workspace = workspaceNamed(tables, name);
            if (workspaces.find(ROOT, to) !== undefined) {
                throw workspaceNameTaken(to);
            }

            const renamed = { ...workspace, name: to, updated_at: clock() };
            workspaces.move(renamed, ROOT, to);
            return renamed;
        },

        ...childAdding(tables, clock),
    };
}

/** @throws ScanwireError `NOT_FOUND` without the workspace. */
function workspaceNamed({ workspaces }: InventoryTables, name: string): Workspace {
    const workspace = workspaces.find(ROOT, name);
    if (workspace === undefined) {
        throw unknownWorkspace(name);
    }

    return workspace;
}

/** Adds what no import brings. */
function childAdding(
    { workspaces, hosts, services, notes, sessions, vulns }: InventoryTables,
    clock: Clock,
): Pick<MemoryInventory, 'addNote' | 'addSession' | 'addVuln' | 'limitWorkspace'> {
    return {
        async limitWorkspace(id, boundary) {
            return workspaces.replace({
                ...existing(workspaces.get(id), 'workspace'),
                boundary,
                limit_to_network: true,
                updated_at: clock(),
            });
        },

        async addNote(hostId, note) {
            const { workspace_id } = existing(hosts.get(hostId), 'host');
            count(hosts, hostId, 'note_count');
            return notes.insert(hostId, (id) => ({
                ...BLANK_FINDINGS.notes,
                ...times(clock()),
                ...note,
                id,
                workspace_id,
                host_id: hostId,
            }));
        },

        async addSession(hostId, session) {
            existing(hosts.get(hostId), 'host');
            return sessions.insert(hostId, (id) => ({ ...BLANK_SESSION, opened_at: clock(), ...session, id, host_id: hostId }));
        },

        async addVuln(serviceId, vuln) {
            const { host_id } = existing(services.get(serviceId), 'service');
            count(hosts, host_id, 'vuln_count');
            const row = { ...BLANK_FINDINGS.vulns, ...times(clock()), ...vuln, host_id, service_id: serviceId };
            return { ...row, id: vulns.insert(host_id, (id) => ({ ...row, id })).id };
        },
    };
}
