import type { Clock } from '../../lib/clock.ts';
import type { Host, HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import { hostFields, newHost } from '../../lib/inventory/new-host.ts';
import type { ImportSummary, InventoryWriter } from '../../lib/inventory/store.ts';
import type { Workspace } from '../../lib/inventory/workspace.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';
import { count, type InventoryTables, times } from './inventory-tables.ts';
import { ROOT, type Table } from './table.ts';

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
export function inventoryWriter(tables: InventoryTables, clock: Clock): MemoryInventoryWriter {
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
