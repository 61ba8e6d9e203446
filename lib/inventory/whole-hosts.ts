import type { Host } from './host.ts';
import { rowsOf, type ShownHost, servicesOf, withFindings } from './host-pages.ts';
import type { WorkspaceNote } from './resources.ts';
import type { Collection, InventoryStore, ReadOptions } from './store.ts';

/** What is read; what is left out is shown as empty. */
export type WholeInventory = Pick<
    InventoryStore,
    'hosts' | 'services' | 'notes' | 'vulns' | 'hostVulns' | 'workspaceServices' | 'workspaceNotes' | 'workspaceVulns'
>;

/** How hosts are read whole. */
export interface WholeOptions extends ReadOptions {
    /** Whether with notes and vulnerabilities; both are empty otherwise. */
    readonly findings: boolean;
}

/** The hosts of a workspace with what is below them, in ascending id and in constant memory. */
export async function* wholeHosts(
    inventory: WholeInventory,
    workspaceId: number,
    options: WholeOptions,
): AsyncGenerator<ShownHost, void, undefined> {
    const { workspaceServices, workspaceNotes, workspaceVulns } = inventory;
    const needed = options.findings ? [workspaceServices, workspaceNotes, workspaceVulns] : [workspaceServices];
    const together = needed.every((rows) => rows?.selectsHosts === true);
    for await (const batch of inventory.hosts.list([workspaceId], options)) {
        for (const hosts of groupsOf(batch)) {
            yield* together ? await readTogether(inventory, hosts, options) : readOneByOne(inventory, hosts, options);
        }
    }
}

/** So many hosts, and by their counts so many rows below them, are held at once; of one with more rows all of its. */
const HELD = { hosts: 100, rows: 1000 } as const;

function* groupsOf(hosts: readonly Host[]): Generator<readonly Host[]> {
    let group: Host[] = [];
    let rows = 0;
    for (const host of hosts) {
        group.push(host);
        rows += host.service_count + host.note_count + host.vuln_count;
        if (group.length === HELD.hosts || rows >= HELD.rows) {
            yield group;
            group = [];
            rows = 0;
        }
    }
    yield group;
}

/** A statement for each host and kind of row takes most of the time of an export; one for many hosts takes next to none. */
async function readTogether(
    { workspaceServices, workspaceNotes, workspaceVulns }: WholeInventory,
    hosts: readonly Host[],
    { findings, ...options }: WholeOptions,
): Promise<readonly ShownHost[]> {
    const [services, notes, vulns] = await Promise.all([
        rowsByHost(workspaceServices, hosts, options),
        rowsByHost(workspaceNotes, findings ? hosts : [], options),
        rowsByHost(workspaceVulns, findings ? hosts : [], options),
    ]);
    return hosts.map((host) => ({
        ...host,
        services: services.get(host.id) ?? [],
        // Those of a host have one.
        notes: (notes.get(host.id) ?? []) as readonly (WorkspaceNote & { readonly host_id: number })[],
        vulns: vulns.get(host.id) ?? [],
    }));
}

async function rowsByHost<Row extends { readonly id: number; readonly host_id: number | null }>(
    collection: Collection<Row> | undefined,
    hosts: readonly Host[],
    options: ReadOptions,
): Promise<ReadonlyMap<number | null, readonly Row[]>> {
    const byHost = new Map<number | null, Row[]>();
    const [first] = hosts;
    if (first === undefined || collection?.select === undefined) {
        return byHost;
    }

    const rows = await rowsOf(collection.select([first.workspace_id], { hosts: hosts.map(({ id }) => id) }, options));
    for (const row of rows) {
        const others = byHost.get(row.host_id);
        if (others === undefined) {
            byHost.set(row.host_id, [row]);
        } else {
            others.push(row);
        }
    }
    return byHost;
}

async function* readOneByOne(
    inventory: WholeInventory,
    hosts: readonly Host[],
    { findings, ...options }: WholeOptions,
): AsyncGenerator<ShownHost, void, undefined> {
    for (const host of hosts) {
        yield findings
            ? await withFindings(inventory, host, options)
            : { ...host, services: await servicesOf(inventory, host, options), notes: [], vulns: [] };
    }
}
