import Joi from 'joi';
import { addressRange } from '../address-range.ts';
import { ScanwireError } from '../errors.ts';
import { checked, nameSchema, storableText } from '../schema-validation.ts';
import { MAX_ID } from './fields.ts';
import { HOST_STATES, type Host, type HostState } from './host.ts';
import type { Note, Service, Workspace, WorkspaceVuln } from './resources.ts';
import { assertFilters, type Filters } from './selection.ts';
import type { Collection, InventoryStore, ReadOptions } from './store.ts';
import { isNameable, unknownWorkspace, unnameableWorkspace } from './workspace-names.ts';

/** What is below hosts. What is left out is shown as empty. */
type InventoryBelowHosts = Pick<InventoryStore, 'services' | 'notes' | 'vulns' | 'hostVulns'>;

/** What can be read by the names of workspaces and the addresses of hosts. What is left out is shown as empty. */
export type NamedInventory = InventoryBelowHosts & {
    readonly workspaces: InventoryStore['workspaces'];
    readonly hosts: Collection<Host> & Required<Pick<Collection<Host>, 'select'>>;
};

/** Which hosts of a workspace, in ascending id. */
export interface HostsQuery {
    /** Its name. */
    readonly workspace: string;
    /** An address, a block or a range. */
    readonly address?: string;
    readonly state?: HostState;
    /** Stands in a name, an address, an operating system, the information or the comments. */
    readonly search?: string;
    /** `next` of the page before. */
    readonly after?: number;
    /** 1 to 500, 100 by default. */
    readonly limit?: number;
    /** With the services of each. */
    readonly services?: boolean;
}

/** The rule of a {@link HostsQuery}. */
export const hostsQuerySchema: Joi.ObjectSchema<HostsQuery> = Joi.object({
    workspace: nameSchema.trim().required().description('Name of the workspace'),
    address: Joi.string().max(255).description('An address, a block such as 192.0.2.0/24, or a range such as 192.0.2.1-192.0.2.9'),
    state: Joi.string()
        .valid(...HOST_STATES)
        .description('Only those in this state'),
    search: storableText().max(255).description('Part of a name, an address, an operating system, the information or the comments'),
    after: Joi.number().integer().min(0).max(MAX_ID).description('`next` of the page before'),
    limit: Joi.number().integer().min(1).max(500).default(100).description('At most so many'),
    services: Joi.boolean().description('With the services of each'),
});

/** A host with its services. */
export type HostWithServices = Host & { readonly services: readonly Service[] };

/** A page of hosts. */
export interface HostsPage {
    readonly hosts: readonly (Host | HostWithServices)[];
    /** `after` of the next page, null after the last. */
    readonly next: number | null;
}

/** A host with what is below it. A vulnerability without a service is one of the host as a whole. */
export type ShownHost = HostWithServices & { readonly notes: readonly Note[]; readonly vulns: readonly WorkspaceVuln[] };

/** @throws ScanwireError `NOT_FOUND`, field `workspace`, where there is none that is to be seen. */
export async function workspaceNamed(
    { workspaces }: Pick<InventoryStore, 'workspaces'>,
    name: string,
    { isSeen = () => true, ...options }: ReadOptions & { readonly isSeen?: (id: number) => boolean } = {},
): Promise<Workspace> {
    for await (const batch of workspaces.list([], options)) {
        const found = batch.find((row) => row.name === name && isSeen(row.id));
        if (found !== undefined) {
            return found;
        }
    }
    throw unknownWorkspace(name);
}

/** @throws ScanwireError `INVALID_INPUT`, field `workspace`, for a name that no new workspace gets; one that has it already is as any other. */
export async function refuseUnnameable({ workspaces }: Pick<InventoryStore, 'workspaces'>, name: string): Promise<void> {
    if (!isNameable(name) && !(await rowsOf(workspaces.list([]))).some((workspace) => workspace.name === name)) {
        throw unnameableWorkspace();
    }
}

/** How many rows a workspace holds, by their kinds. */
const COUNTED = { hosts: 'hosts', services: 'workspaceServices', notes: 'workspaceNotes', vulns: 'workspaceVulns' } as const;

/** A workspace with how much it holds; null for what its store does not count. */
export type ShownWorkspace = Workspace & { readonly [Kind in keyof typeof COUNTED]: number | null };

/** @throws ScanwireError `NOT_FOUND`, field `workspace`. */
export async function shownWorkspace(inventory: Pick<InventoryStore, 'workspaces' | 'hosts'>, name: string): Promise<ShownWorkspace> {
    const workspace = await workspaceNamed(inventory, name);
    const counts = Object.entries(COUNTED).map(async ([kind, collection]) => {
        const count = (await (inventory as InventoryStore)[collection]?.count?.([workspace.id], {})) ?? null;
        return [kind, count] as const;
    });
    return { ...workspace, ...Object.fromEntries(await Promise.all(counts)) } as ShownWorkspace;
}

/** @throws ScanwireError `NOT_FOUND` for the workspace, `INVALID_INPUT` with the field. */
export async function hostsPage(inventory: NamedInventory, query: HostsQuery): Promise<HostsPage> {
    const { workspace, address, state, search, after, limit = 100, services = false } = checked(hostsQuerySchema, query);
    const where: Filters = {
        ...(address !== undefined && { address: addressRange(address) }),
        ...(state !== undefined && { state }),
        ...(search !== undefined && { search }),
    };
    assertFilters(where, inventory.hosts.filters);
    const { id } = await workspaceNamed(inventory, workspace);
    const behind = after === undefined ? {} : { after: { id: after } };
    const found = await rowsOf(inventory.hosts.select([id], { where, limit: limit + 1, ...behind }));
    const hosts = found.slice(0, limit);
    return {
        hosts: services ? await Promise.all(hosts.map((host) => withServices(inventory, host))) : hosts,
        next: found.length > limit ? (hosts.at(-1)?.id ?? null) : null,
    };
}

/** @throws ScanwireError `NOT_FOUND` for the workspace or the host, `INVALID_INPUT` for what is no address. */
export async function hostAt(inventory: NamedInventory, workspace: string, address: string): Promise<ShownHost> {
    const range = addressRange(address);
    assertFilters({ address: range }, inventory.hosts.filters);
    const { id } = await workspaceNamed(inventory, workspace);
    const [host] = range.first === range.last ? await rowsOf(inventory.hosts.select([id], { where: { address: range }, limit: 1 })) : [];
    if (host === undefined) {
        throw new ScanwireError('NOT_FOUND', `There is no host ${address} in the workspace ${JSON.stringify(workspace)}`, {
            field: 'address',
        });
    }

    return await withFindings(inventory, host);
}

/** Of a page, where hosts that have none would cost the most. */
async function withServices(inventory: InventoryBelowHosts, host: Host): Promise<HostWithServices> {
    return { ...host, services: host.service_count > 0 ? await servicesOf(inventory, host) : [] };
}

/** The services of a host, whatever it has counted: other people's counters are not always right. */
export async function servicesOf(
    { services }: InventoryBelowHosts,
    { workspace_id, id }: Host,
    options: ReadOptions = {},
): Promise<readonly Service[]> {
    return services === undefined ? [] : await rowsOf(services.list([workspace_id, id], options));
}

/** A host with all that is below it. */
export async function withFindings(inventory: InventoryBelowHosts, host: Host, options: ReadOptions = {}): Promise<ShownHost> {
    const { workspace_id, id } = host;
    const shown = { ...host, services: await servicesOf(inventory, host, options) };
    const notes = inventory.notes === undefined ? [] : await rowsOf(inventory.notes.list([workspace_id, id], options));
    return { ...shown, notes, vulns: await vulnsOf(inventory, shown, options) };
}

/** A store without those of a whole host has those of its services. */
async function vulnsOf(
    { vulns, hostVulns }: InventoryBelowHosts,
    { workspace_id, id, services }: HostWithServices,
    options: ReadOptions,
): Promise<readonly WorkspaceVuln[]> {
    if (hostVulns !== undefined) {
        return await rowsOf(hostVulns.list([workspace_id, id], options));
    }

    const lists = vulns === undefined ? [] : services.map((service) => rowsOf(vulns.list([workspace_id, id, service.id], options)));
    return (await Promise.all(lists)).flat();
}

/** All rows of a list. */
export async function rowsOf<Row>(batches: AsyncIterable<readonly Row[]>): Promise<readonly Row[]> {
    const rows: Row[] = [];
    for await (const batch of batches) {
        rows.push(...batch);
    }
    return rows;
}
