/** Rows as the framework's own data service shows them, and the lists of them that a request asks for. */

import { addressRange } from '../../lib/address-range.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { referencesOf } from '../../lib/inventory/findings.ts';
import type { Host } from '../../lib/inventory/host.ts';
import { DEFAULT_WORKSPACE, type Service, type Workspace } from '../../lib/inventory/resources.ts';
import { matches } from '../../lib/inventory/selection.ts';
import type { Collection, InventoryStore, ReadOptions } from '../../lib/inventory/store.ts';
import { hasText } from './search.ts';

/** What the data service reads: a store that shows what is below a whole workspace. */
export type WholeInventory = Pick<InventoryStore, 'workspaces' | 'hosts'> &
    Required<Pick<InventoryStore, 'workspaceServices' | 'workspaceNotes' | 'workspaceSessions' | 'workspaceVulns'>>;

/** A row, whatever it is of. */
export type Row = Readonly<Record<string, unknown>> & { readonly id: number };
type Rows = AsyncIterable<readonly Row[]>;

/** Who asks, for which workspaces, and until when. */
export interface Reader extends ReadOptions {
    /** The only workspaces that there are for the key; null for all. */
    readonly seen: ReadonlySet<number> | null;
}

/** What is asked for. What is left out every row fulfils. */
export interface Asked {
    /** By name. */
    readonly workspace?: string | undefined;
    /** Of workspaces. */
    readonly name?: string | undefined;
    readonly id?: number | undefined;
    readonly nonDead?: boolean;
    /** An address, a block or a range; several have one of them. */
    readonly addresses?: readonly string[];
    readonly search?: string | undefined;
}

/** A list that the data service has. */
export type ListName = 'workspaces' | 'hosts' | 'services' | 'vulns' | 'notes' | 'sessions';

const BELOW = {
    services: 'workspaceServices',
    vulns: 'workspaceVulns',
    notes: 'workspaceNotes',
    sessions: 'workspaceSessions',
} as const;

/**
 * The rows that are asked for, as the store has them, in ascending id.
 *
 * @throws ScanwireError `NOT_FOUND`, field `workspace`; `INVALID_INPUT`, field `address`.
 */
export async function* listed(inventory: WholeInventory, name: ListName, asked: Asked, reader: Reader): Rows {
    if (name === 'workspaces') {
        yield* only(
            workspacesOf(inventory, reader),
            ({ id, name: called }) => asked.id === id || (asked.id === undefined && isOr(asked.name, called)),
        );
        return;
    }

    const { id } = await workspaceNamed(inventory, asked.workspace, reader);
    if (name === 'hosts') {
        yield* hostsAsked(inventory, id, asked, reader);
        return;
    }

    const rows = inventory[BELOW[name]] as unknown as Collection<Row>;
    const { addresses } = asked;
    const one = asked.id === undefined ? undefined : await rows.get([id], asked.id);
    const found = one === undefined ? rows.list([id], reader) : ofOne(one);
    // Of one row its host alone is asked for.
    const ofOneHost = one === undefined ? {} : { id: Number(one?.host_id ?? 0) };
    const ofHosts = addresses === undefined ? null : await idsOf(hostsAsked(inventory, id, { addresses, ...ofOneHost }, reader));
    const { search } = asked;
    yield* only(found, (row) => (ofHosts === null || ofHosts.has(row.host_id as number)) && (search === undefined || hasText(row, search)));
}

function hostsAsked({ hosts }: WholeInventory, workspace: number, asked: Asked, reader: Reader): Rows {
    const { addresses, search, nonDead = false, id } = asked;
    const ranges = addresses?.map(addressRange);
    const rows = hosts as unknown as Collection<Row>;
    // One range is what a store has an index for.
    const [address, ...more] = ranges ?? [];
    const isNarrow = address !== undefined && more.length === 0 && rows.select !== undefined && (rows.filters ?? []).includes('address');
    const all = isNarrow
        ? (rows.select as NonNullable<typeof rows.select>)([workspace], { where: { address } }, reader)
        : rows.list([workspace], reader);
    return only(id === undefined ? all : single(rows, workspace, id), (row) => {
        const isThere = ranges === undefined || ranges.some((range) => matches(row, { address: range }));
        return isThere && (!nonDead || row.state !== 'down') && (search === undefined || hasText(row, search));
    });
}

async function* single(rows: Collection<Row>, workspace: number, id: number): Rows {
    yield* ofOne(await rows.get([workspace], id));
}

async function* ofOne(row: Row | null): Rows {
    if (row !== null) {
        yield [row];
    }
}

async function* only(batches: Rows, holds: (row: Row) => boolean): Rows {
    for await (const batch of batches) {
        yield batch.filter(holds);
    }
}

function isOr(wanted: string | undefined, value: unknown): boolean {
    return wanted === undefined || wanted === value;
}

async function idsOf(batches: Rows): Promise<ReadonlySet<number>> {
    const ids = new Set<number>();
    for await (const batch of batches) {
        for (const { id } of batch) {
            ids.add(id);
        }
    }
    return ids;
}

function workspacesOf({ workspaces }: WholeInventory, { seen, ...options }: Reader): Rows {
    return only((workspaces as unknown as Collection<Row>).list([], options), ({ id }) => seen === null || seen.has(id));
}

async function workspaceNamed(inventory: WholeInventory, name: string = DEFAULT_WORKSPACE, reader: Reader): Promise<Workspace> {
    for await (const batch of workspacesOf(inventory, reader)) {
        const found = batch.find((workspace) => workspace.name === name);
        if (found !== undefined) {
            return found as unknown as Workspace;
        }
    }
    throw new ScanwireError('NOT_FOUND', `Unknown workspace ${JSON.stringify(name)}`, { field: 'workspace' });
}

/** The name of the workspace that holds a row, of those that there are for the key: an id is of one of them. Undefined where none does. */
export async function workspaceHolding(
    inventory: WholeInventory,
    name: Exclude<ListName, 'workspaces'>,
    id: number,
    reader: Reader,
): Promise<string | undefined> {
    const rows: Collection<{ readonly id: number }> = name === 'hosts' ? inventory.hosts : inventory[BELOW[name]];
    for await (const batch of workspacesOf(inventory, reader)) {
        for (let start = 0; start < batch.length; start += AT_ONCE) {
            reader.signal?.throwIfAborted();
            const workspaces = batch.slice(start, start + AT_ONCE);
            const found = await Promise.all(workspaces.map((workspace) => rows.get([workspace.id], id)));
            const place = found.findIndex((row) => row !== null);
            if (place >= 0) {
                return workspaces[place]?.name as string;
            }
        }
    }
    return undefined;
}

/** The rows of other lists that rows of one list name, read for a batch at once: a row each would take a request each. */
export interface Relations {
    readonly hosts: ReadonlyMap<number, Host>;
    readonly services: ReadonlyMap<number, Service>;
}

const NOBODY: Relations = { hosts: new Map(), services: new Map() };

/** Batches with what their rows name: their hosts and, where that is asked for, their services. */
export async function* related(
    inventory: WholeInventory,
    { workspace, withServices = false }: { readonly workspace: string | undefined; readonly withServices?: boolean },
    batches: Rows,
    reader: Reader,
): AsyncGenerator<readonly [rows: readonly Row[], relations: Relations]> {
    let id: number | undefined;
    for await (const rows of batches) {
        if (rows.length === 0) {
            continue;
        }

        id ??= (await workspaceNamed(inventory, workspace, reader)).id;
        const named = (field: string): number[] =>
            rows.map((row) => row[field]).filter((value): value is number => typeof value === 'number');
        const hosts = await byId(inventory.hosts, id, named('host_id'), reader);
        const services = withServices ? await byId(inventory.workspaceServices, id, named('service_id'), reader) : NOBODY.services;
        yield [rows, { hosts, services }];
    }
}

/** How far apart ids may be on average for one reading of all between them to be cheaper than many of one. */
const APART = 8;
const AT_ONCE = 10;

async function byId<R extends { readonly id: number }>(
    rows: Collection<R>,
    workspace: number,
    wanted: readonly number[],
    reader: Reader,
): Promise<ReadonlyMap<number, R>> {
    const ids = [...new Set(wanted)].sort((one, other) => one - other);
    const [first = 0, last = 0] = [ids[0], ids.at(-1)];
    const found = new Map<number, R>();
    if (rows.select !== undefined && last - first < ids.length * APART) {
        for await (const batch of rows.select([workspace], { after: { id: first - 1 }, limit: last - first + 1 }, reader)) {
            for (const row of batch) {
                found.set(row.id, row);
            }
            if ((batch.at(-1)?.id ?? 0) >= last) {
                break;
            }
        }
        return found;
    }

    for (let start = 0; start < ids.length; start += AT_ONCE) {
        for (const row of await Promise.all(ids.slice(start, start + AT_ONCE).map((id) => rows.get([workspace], id)))) {
            if (row !== null) {
                found.set(row.id, row);
            }
        }
    }
    return found;
}

/** Columns that the framework does not have, and those that only it has. */
const COLUMNS: Readonly<Record<ListName, { readonly without: readonly string[]; readonly more: Readonly<Record<string, unknown>> }>> = {
    workspaces: { without: [], more: { import_fingerprint: false } },
    hosts: { without: ['nexpose_data_asset_id', 'history_count'], more: { os_family: null } },
    services: { without: [], more: {} },
    vulns: { without: ['nexpose_data_vuln_def_id'], more: { origin_id: null, origin_type: null } },
    notes: { without: [], more: { vuln_id: null } },
    sessions: { without: ['campaign_id'], more: { module_run_id: null } },
};

/** A row in the framework's columns, with what its clients expect inside: its `host`; of a vulnerability `refs` and `module_refs`. */
export function frameworkRow(name: ListName, row: Row, { hosts }: Relations = NOBODY): object {
    const { without, more } = COLUMNS[name];
    const columns = Object.entries(row).filter(([field]) => !without.includes(field));
    const host = hosts.get(row.host_id as number);
    const below = name !== 'workspaces' && name !== 'hosts';
    return {
        ...Object.fromEntries(columns),
        ...more,
        ...(below && { host: host === undefined ? null : frameworkRow('hosts', host as unknown as Row) }),
        ...(name === 'vulns' && { refs: referencesOf(row).map((ref, index) => ({ id: index + 1, name: ref })), module_refs: [] }),
    };
}
