/** Rows as the framework's own data service shows them. */

import { referencesOf } from '../../lib/inventory/findings.ts';
import type { Host } from '../../lib/inventory/host.ts';
import type { Service } from '../../lib/inventory/resources.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import {
    type Asked,
    AT_ONCE,
    type ListName,
    listed,
    type Reader,
    type Row,
    type Rows,
    rowAt,
    type WholeInventory,
    workspaceHolding,
    workspaceNamed,
} from './rows.ts';

/** The row of an id, or none, in the framework's form. Its clients ask for an id alone: it means the same row whatever workspace that is in. */
export async function* rowOf(
    store: WholeInventory,
    name: ListName,
    asked: Asked & { readonly id: number },
    reader: Reader,
): AsyncIterable<readonly object[]> {
    if (name === 'workspaces' || asked.workspace !== undefined) {
        yield* shownRows(store, name, asked, reader);
        return;
    }

    const workspace = await workspaceHolding(store, name, asked.id, reader);
    if (workspace !== undefined) {
        yield* shownRows(store, name, { ...asked, workspace }, reader);
    }
}

/** The rows of a list that are asked for, in the framework's form. */
export async function* shownRows(store: WholeInventory, name: ListName, asked: Asked, reader: Reader): AsyncIterable<readonly object[]> {
    const rows = listed(store, name, asked, reader);
    if (name === 'workspaces' || name === 'hosts') {
        for await (const batch of rows) {
            yield batch.map((row) => frameworkRow(name, row));
        }
        return;
    }

    for await (const [batch, relations] of related(store, asked as { workspace: string | undefined }, rows, reader)) {
        yield batch.map((row) => frameworkRow(name, row, relations));
    }
}

/** The rows of other lists that rows of one list name, read for a batch at once: a row each would take a request each. */
export interface Relations {
    readonly hosts: ReadonlyMap<number, Host>;
    readonly services: ReadonlyMap<number, Service>;
}

interface Related {
    readonly workspace: string | undefined;
    readonly withHosts?: boolean;
    readonly withServices?: boolean;
}

const NOBODY: Relations = { hosts: new Map(), services: new Map() };

/** Batches with what their rows name: their hosts, unless these are not asked for, and their services where they are. */
export async function* related(
    inventory: WholeInventory,
    { workspace, withHosts = true, withServices = false }: Related,
    batches: Rows,
    reader: Reader,
): AsyncGenerator<readonly [rows: readonly Row[], relations: Relations]> {
    let id: number | undefined;
    for await (const rows of batches) {
        if (rows.length === 0) {
            yield [rows, NOBODY];
            continue;
        }

        id ??= (await workspaceNamed(inventory, workspace, reader)).id;
        const named = (field: string): number[] =>
            rows.map((row) => row[field]).filter((value): value is number => typeof value === 'number');
        const hosts = withHosts ? await byId(inventory.hosts, id, named('host_id'), reader) : NOBODY.hosts;
        const services = withServices ? await byId(inventory.workspaceServices, id, named('service_id'), reader) : NOBODY.services;
        yield [rows, { hosts, services }];
    }
}

/** How far apart ids may be on average for one reading of all between them to be cheaper than many of one. */
const APART = 8;

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
        reader.signal.throwIfAborted();
        for (const row of await Promise.all(ids.slice(start, start + AT_ONCE).map((id) => rowAt(rows, workspace, id, reader)))) {
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
function frameworkRow(name: ListName, row: Row, { hosts }: Relations = NOBODY): object {
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
