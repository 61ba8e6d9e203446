/** The rows that a request asks for, as the store has them. */

import { DEFAULT_WORKSPACE, type Workspace } from '../../lib/inventory/resources.ts';
import type { Collection, InventoryStore, ReadOptions } from '../../lib/inventory/store.ts';
import { unknownWorkspace } from '../../lib/inventory/workspace-names.ts';
import { isObject } from '../../lib/schema-validation.ts';
import type { AskedAddresses } from './asked-addresses.ts';

/** What the data service reads: a store that shows what is below a whole workspace. */
export type WholeInventory = Pick<InventoryStore, 'workspaces' | 'hosts'> &
    Required<Pick<InventoryStore, 'workspaceServices' | 'workspaceNotes' | 'workspaceSessions' | 'workspaceVulns'>>;

/** A row, whatever it is of. */
export type Row = Readonly<Record<string, unknown>> & { readonly id: number };
/** Rows of one resource, in batches as they are read. */
export type Rows = AsyncIterable<readonly Row[]>;

/** Rows of a store that are asked for one by one, so many at once. */
export const AT_ONCE = 10;

/** Who asks, for which workspaces, and until when. */
export interface Reader extends ReadOptions {
    /** The only workspaces that there are for the key; null for all. */
    readonly seen: ReadonlySet<number> | null;
    /** Whether it may read what was captured. */
    readonly readsSecrets: boolean;
    readonly signal: AbortSignal;
}

/** What is asked for. What is left out every row fulfils. */
export interface Asked {
    /** By name. */
    readonly workspace?: string | undefined;
    /** Of workspaces. */
    readonly name?: string | undefined;
    readonly id?: number | undefined;
    readonly nonDead?: boolean;
    /** It throws ScanwireError `INVALID_INPUT` for what is no address. */
    readonly addresses?: () => AskedAddresses;
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
    const one = asked.id === undefined ? undefined : await rowAt(rows, id, asked.id, reader);
    const found = one === undefined ? rows.list([id], reader) : ofOne(one);
    // Of one row its host alone is asked for.
    yield* ofAddressesAndText(inventory, id, found, { ...asked, id: one === undefined ? undefined : Number(one?.host_id ?? 0) }, reader);
}

/** Of rows below hosts of a workspace those of the addresses and with the text that are asked for; `id` is that of the only host they have. */
export async function* ofAddressesAndText(
    inventory: WholeInventory,
    workspace: number,
    found: Rows,
    { addresses, search, id }: Pick<Asked, 'addresses' | 'search' | 'id'>,
    reader: Reader,
): Rows {
    const ofHosts = addresses === undefined ? null : await idsOf(hostsAsked(inventory, workspace, { addresses, id }, reader));
    yield* only(found, (row) => (ofHosts === null || ofHosts.has(row.host_id as number)) && (search === undefined || hasText(row, search)));
}

function hostsAsked({ hosts }: WholeInventory, workspace: number, asked: Asked, reader: Reader): Rows {
    const { addresses, search, nonDead = false, id } = asked;
    const { single: address, have } = addresses?.() ?? {};
    const rows = hosts as unknown as Collection<Row>;
    const isNarrow = address !== undefined && rows.select !== undefined && (rows.filters ?? []).includes('address');
    const all = isNarrow
        ? (rows.select as NonNullable<typeof rows.select>)([workspace], { where: { address } }, reader)
        : rows.list([workspace], reader);
    return only(id === undefined ? all : oneOf(rows, workspace, id, reader), (row) => {
        const isThere = have === undefined || have(row.address);
        return isThere && (!nonDead || row.state !== 'down') && (search === undefined || hasText(row, search));
    });
}

/** The row of an id below a workspace, null when there is none. `rows[0]` of a store of the application's own is undefined then. */
export async function rowAt<R extends { readonly id: number }>(
    rows: Collection<R>,
    workspace: number,
    id: number,
    options: ReadOptions,
): Promise<R | null> {
    return (await rows.get([workspace], id, options)) ?? null;
}

async function* oneOf(rows: Collection<Row>, workspace: number, id: number, options: ReadOptions): Rows {
    yield* ofOne(await rowAt(rows, workspace, id, options));
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

/** The workspaces that there are for the key. */
export function workspacesOf({ workspaces }: WholeInventory, { seen, ...options }: Reader): Rows {
    return only((workspaces as unknown as Collection<Row>).list([], options), ({ id }) => seen === null || seen.has(id));
}

/** @throws ScanwireError `NOT_FOUND`, field `workspace`. */
export async function workspaceNamed(inventory: WholeInventory, name: string = DEFAULT_WORKSPACE, reader: Reader): Promise<Workspace> {
    for await (const batch of workspacesOf(inventory, reader)) {
        const found = batch.find((workspace) => workspace.name === name);
        if (found !== undefined) {
            return found as unknown as Workspace;
        }
    }
    throw unknownWorkspace(name);
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
            const found = await Promise.all(workspaces.map((workspace) => rowAt(rows, workspace.id, id, reader)));
            const index = found.findIndex((row) => row !== null);
            if (index >= 0) {
                return workspaces[index]?.name as string;
            }
        }
    }
    return undefined;
}

/** Whether a text stands in one of the texts of a row, those within `data` or `datastore` and their keys included, in upper or lower case. */
function hasText(row: Readonly<Record<string, unknown>>, text: string): boolean {
    const wanted = text.toLowerCase();
    return Object.values(row).some((value) => isWithin(value, wanted));
}

function isWithin(value: unknown, wanted: string): boolean {
    if (typeof value === 'string') {
        return value.toLowerCase().includes(wanted);
    }
    if (Array.isArray(value)) {
        return value.some((item) => isWithin(saidOf(item), wanted));
    }
    return (
        isObject(value) &&
        Object.entries(value).some(([key, inner]) => key.toLowerCase().includes(wanted) || isWithin(saidOf(inner), wanted))
    );
}

/** Within a note a number is what a scanner has read somewhere, a port say; in a column it is a count or an id. */
function saidOf(value: unknown): unknown {
    return typeof value === 'number' ? String(value) : value;
}
