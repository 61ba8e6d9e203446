import type { Clock } from '../../../lib/clock.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { Deletions } from '../../../lib/inventory/deletions.ts';
import type { Host } from '../../../lib/inventory/host.ts';
import type { Note, Service, Session, Vuln, Workspace, WorkspaceVuln } from '../../../lib/inventory/resources.ts';
import { compareRows, type FilterName, matching, type Selection } from '../../../lib/inventory/selection.ts';
import type { SelectableCollection } from '../../../lib/inventory/store.ts';
import { ROOT, type Row, type Table, table } from './table.ts';
import { type Tombstones, tombstones } from './tombstones.ts';

/** The tables of an inventory. */
export interface InventoryTables {
    readonly workspaces: Table<Workspace>;
    readonly hosts: Table<Host>;
    readonly services: Table<Service>;
    readonly notes: Table<Note>;
    readonly sessions: Table<Session>;
    /** Below hosts; those of services have a `service_id`. */
    readonly vulns: Table<WorkspaceVuln>;
    /** Ids of the notes and of the vulnerabilities that imports have made. */
    readonly imported: { readonly notes: Set<number>; readonly vulns: Set<number> };
    /** When hosts were seen by an import last, by their ids; null when never. One that is missing was seen when it was changed last. */
    readonly sightings: Map<number, Date | null>;
    /** What was deleted. */
    readonly tombstones: Tombstones;
}

/** Empty tables of an inventory. */
export function inventoryTables(clock: Clock): InventoryTables {
    return {
        workspaces: table(),
        hosts: table(),
        services: table(),
        notes: table(),
        sessions: table(),
        vulns: table(),
        imported: { notes: new Set(), vulns: new Set() },
        sightings: new Map(),
        tombstones: tombstones(clock),
    };
}

/** Notes how all of an inventory is, and gives what brings that back. */
export function saveTables({
    workspaces,
    hosts,
    services,
    notes,
    sessions,
    vulns,
    sightings,
    imported,
    tombstones,
}: InventoryTables): () => void {
    const restore = [workspaces, hosts, services, notes, sessions, vulns, tombstones].map((table) => table.save());
    const [seen, made] = [new Map(sightings), { notes: new Set(imported.notes), vulns: new Set(imported.vulns) }];
    return () => {
        for (const back of restore) {
            back();
        }
        sightings.clear();
        for (const [id, at] of seen) {
            sightings.set(id, at);
        }
        for (const name of ['notes', 'vulns'] as const) {
            imported[name].clear();
            for (const id of made[name]) {
                imported[name].add(id);
            }
        }
    };
}

/**
 * The table as a store shows it.
 *
 * @param ancestors Tables of the parents, from the outside in.
 * @param below How many of these the path names; the rows below all that is below it are meant. All by default.
 */
export function collection<R extends Row>(
    rows: Pick<Table<R>, 'get' | 'parentOf' | 'idsBelow'>,
    ancestors: readonly Pick<Table<Row>, 'parentOf' | 'idsBelow'>[],
    { batchSize, filters, below = ancestors.length, lastSeen, addressOf, deletions }: CollectionShown<R>,
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

    const between = ancestors.slice(1).reverse();

    /** Ids of what is above a row, from the outside in. */
    function pathOf(id: number): readonly number[] {
        const path = [rows.parentOf(id) ?? ROOT];
        for (const level of between) {
            path.unshift(level.parentOf(path[0] as number) ?? ROOT);
        }
        return path;
    }

    function selected(path: readonly number[], { where = {}, hosts, after = { id: 0 }, limit, extras = [] }: Selection): readonly R[] {
        const wantedHosts = hosts && new Set(hosts);
        const byChange = where.updated_since !== undefined;
        const ids = wantedHosts === undefined ? idsBelow(path) : idsBelow(path).filter((id) => wantedHosts.has(rows.parentOf(id) ?? ROOT));
        const found = ids.flatMap((id) => rows.get(id) ?? []);
        const seen = (row: R): R => (lastSeen === undefined ? row : { ...row, last_seen: lastSeen(row) });
        const { address, ...others } = where;
        const fulfils = matching(addressOf === undefined ? where : others);
        const isThere = addressOf === undefined || address === undefined ? null : matching({ address });
        const wanted = found.filter(
            (row) =>
                fulfils(where.last_seen_since === undefined ? row : seen(row)) &&
                (isThere === null || isThere({ address: addressOf?.(row) })) &&
                compareRows(byChange, row, after) > 0,
        );
        const part = wanted.sort((one, other) => compareRows(byChange, one, other)).slice(0, limit);
        return extras.length === 0 ? part : part.map(seen);
    }

    return {
        filters,
        ...(lastSeen !== undefined && { extras: ['last_seen'] }),
        ...(deletions !== undefined && { deletions }),
        ...(below === 1 && ancestors.length === 2 && { selectsHosts: true }),

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
            const isBelow = exists(path) && pathOf(id).every((above, depth) => depth >= below || above === path[depth]);
            return isBelow ? (rows.get(id) ?? null) : null;
        },
    };
}

interface CollectionShown<R> {
    readonly batchSize: number;
    readonly filters: readonly FilterName[];
    readonly below?: number;
    readonly lastSeen?: (row: R) => Date | null;
    /** Of its host, where that is looked for. */
    readonly addressOf?: (row: R) => string | undefined;
    readonly deletions?: Deletions;
}

/** By which a service is found below its host. */
export function serviceKey({ port, proto }: Pick<Service, 'port' | 'proto'>): string {
    return `${port}/${proto}`;
}

/** The vulnerabilities below services. */
export function vulnsOfServices({ services, vulns }: InventoryTables): Pick<Table<Vuln>, 'get' | 'parentOf' | 'idsBelow'> {
    const get = (id: number): Vuln | undefined => {
        const vuln = vulns.get(id);
        return vuln === undefined || vuln.service_id === null ? undefined : { ...vuln, service_id: vuln.service_id };
    };
    return {
        get,
        parentOf: (id) => get(id)?.service_id,
        idsBelow: (service) => vulns.idsBelow(services.parentOf(service) ?? ROOT).filter((id) => get(id)?.service_id === service),
    };
}

/** Counts one more child of a host. */
export function count(hosts: Table<Host>, hostId: number, counter: 'note_count' | 'service_count' | 'vuln_count'): void {
    const host = existing(hosts.get(hostId), 'host');
    hosts.replace({ ...host, [counter]: host[counter] + 1 });
}

/** @throws ScanwireError `NOT_FOUND` without the row. */
export function existing<Row>(row: Row | undefined, what: string): Row {
    if (row === undefined) {
        throw new ScanwireError('NOT_FOUND', `Unknown ${what}`);
    }

    return row;
}

/** Of a row that is made now. */
export function times(now: Date): { created_at: Date; updated_at: Date } {
    return { created_at: now, updated_at: now };
}

/** Removes a host and all below it. */
export function removeHost({ hosts, services, notes, sessions, vulns, sightings, tombstones }: InventoryTables, id: number): void {
    tombstones.bury('hosts', id, [hosts.parentOf(id) ?? ROOT]);
    for (const below of [services, notes, sessions, vulns]) {
        removeBelow(below, id);
    }
    sightings.delete(id);
    hosts.remove(id);
}

/** Moves a host and all below it. It was seen last when it was seen last before. */
export function moveHost(
    { hosts, services, notes, vulns, sightings, tombstones }: InventoryTables,
    id: number,
    workspace_id: number,
    at: Date,
): void {
    const host = existing(hosts.get(id), 'host');
    tombstones.move(id, host.workspace_id, workspace_id);
    if (!sightings.has(id)) {
        sightings.set(id, host.updated_at);
    }

    hosts.move({ ...host, workspace_id, updated_at: at }, workspace_id, host.address);
    changeBelow(services, id, { updated_at: at });
    changeBelow(notes, id, { updated_at: at, workspace_id });
    changeBelow(vulns, id, { updated_at: at });
}

function changeBelow<R extends Row>({ idsBelow, get, replace }: Table<R>, parent: number, fields: Partial<R>): void {
    for (const row of idsBelow(parent).flatMap((id) => get(id) ?? [])) {
        replace({ ...row, ...fields });
    }
}

/** Where a host has the number of its notes and vulnerabilities. */
export const FINDING_COUNTS = { notes: 'note_count', vulns: 'vuln_count' } as const;

function removeBelow({ idsBelow, remove }: Pick<Table<Row>, 'idsBelow' | 'remove'>, parent: number): void {
    for (const id of idsBelow(parent)) {
        remove(id);
    }
}
