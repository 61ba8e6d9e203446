import { type AddressRange, inRanges } from '../address-range.ts';
import { ScanwireError } from '../errors.ts';

/** What rows must fulfil, all of it at once; what is left out every row fulfils. */
export interface Filters {
    /** These are whole values, as they go out. */
    readonly state?: string;
    readonly name?: string;
    readonly os_name?: string;
    readonly arch?: string;
    readonly purpose?: string;
    /** Of the row, or of its host. */
    readonly address?: AddressRange;
    /** Stands somewhere in one of {@link SEARCHED}, in upper or lower case. */
    readonly search?: string;
    /** Seen by an import at this instant or later. */
    readonly last_seen_since?: Date;
    /** Changed at this instant or later; the rows come in the order of their last change then. */
    readonly updated_since?: Date;
}

/** Name of a filter. */
export type FilterName = keyof Filters;

/** The fields that `search` looks into, those of them that a row has. */
export const SEARCHED = ['name', 'address', 'os_name', 'info', 'comments'] as const;

type Filtered = 'workspaces' | 'hosts' | 'services' | 'notes' | 'sessions' | 'vulns';
type FilteredByHost = 'workspaceServices' | 'workspaceNotes' | 'workspaceVulns';

/** The filters that the stores of this package have for each collection: those whose fields its rows have, or their hosts. */
export const FILTERS: Readonly<Record<Filtered | FilteredByHost, readonly FilterName[]>> = {
    workspaces: ['name', 'search', 'updated_since'],
    hosts: ['state', 'address', 'name', 'os_name', 'arch', 'purpose', 'search', 'updated_since', 'last_seen_since'],
    services: ['state', 'name', 'search', 'updated_since'],
    notes: ['updated_since'],
    sessions: [],
    vulns: ['name', 'search', 'updated_since'],
    workspaceServices: ['state', 'address', 'name', 'search', 'updated_since'],
    workspaceNotes: ['address', 'updated_since'],
    workspaceVulns: ['address', 'name', 'search', 'updated_since'],
};

/** Where a row stands in its order, in whole milliseconds; the rows behind it are wanted. */
export interface Position {
    readonly id: number;
    /** Of the row's last change, where that is the order. */
    readonly updated_at?: Date;
}

/** A part of a list: in ascending id, or, with `updated_since`, in ascending `updated_at` and id. */
export interface Selection {
    readonly where?: Filters;
    /** Only the rows below these hosts. */
    readonly hosts?: readonly number[];
    readonly after?: Position;
    /** At most so many rows, 1 or more; all without it. */
    readonly limit?: number;
    /** Fields that are not part of a row, to be added to each. */
    readonly extras?: readonly ExtraField[];
}

/** A field that rows have on request only. */
export type ExtraField = keyof typeof EXTRA_FIELDS;

/** When a host was seen by an import last, whether anything was new of it or not; null when never. */
export const EXTRA_FIELDS = { last_seen: 'nullableTime' } as const;

/** A store that is asked by a filter that it does not know gives all rows. @throws ScanwireError `INVALID_INPUT` that names the first of these. */
export function assertFilters(where: Filters, known: readonly FilterName[] = []): void {
    const unknown = Object.keys(where).find((name) => !known.includes(name as FilterName));
    if (unknown !== undefined) {
        throw new ScanwireError('INVALID_INPUT', `${unknown} cannot be met: the store of this list does not know it`, { field: unknown });
    }
}

type Row = Readonly<Record<string, unknown>>;

/** The question whether a row with the values of its fields fulfils the filters, to be asked of many rows. */
export function matching({ address, search, updated_since, last_seen_since, ...whole }: Filters): (row: Row) => boolean {
    const values = Object.entries(whole).filter(([, value]) => value !== undefined);
    const isThere = address === undefined ? () => true : inRanges([address]);
    const text = search?.toLowerCase();
    return (row) =>
        values.every(([field, value]) => row[field] === value) &&
        isThere(row.address) &&
        (updated_since === undefined || isSince(row.updated_at, updated_since)) &&
        (last_seen_since === undefined || isSince(row.last_seen, last_seen_since)) &&
        (text === undefined || isFound(row, text));
}

function isSince(time: unknown, since: Date): boolean {
    return time instanceof Date && time >= since;
}

type Positioned = { readonly id: number; readonly updated_at?: unknown };

/** Negative where the one comes before the other in the order of a selection. */
export function compareRows(byChange: boolean, one: Positioned, other: Positioned): number {
    const earlier = byChange ? Number(one.updated_at ?? 0) - Number(other.updated_at ?? 0) : 0;
    return earlier === 0 ? one.id - other.id : earlier;
}

function isFound(row: Row, search: string): boolean {
    return SEARCHED.some((field) => {
        const value = row[field];
        return typeof value === 'string' && value.toLowerCase().includes(search);
    });
}
