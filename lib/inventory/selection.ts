import ipaddr from 'ipaddr.js';
import { type Address, canonicalAddress, parseAddress } from '../addresses.ts';
import { ScanwireError } from '../errors.ts';

/** Addresses of one family from `first` to `last`, both included, in canonical text. */
export interface AddressRange {
    readonly first: string;
    readonly last: string;
}

/** What rows must fulfil, all of it at once; what is left out every row fulfils. */
export interface Filters {
    /** These are whole values, as they go out. */
    readonly state?: string;
    readonly name?: string;
    readonly os_name?: string;
    readonly arch?: string;
    readonly purpose?: string;
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

/** The filters that the stores of this package have for each collection: those whose fields its rows have. */
export const FILTERS: Readonly<Record<'workspaces' | 'hosts' | 'services' | 'notes' | 'sessions' | 'vulns', readonly FilterName[]>> = {
    workspaces: ['name', 'search', 'updated_since'],
    hosts: ['state', 'address', 'name', 'os_name', 'arch', 'purpose', 'search', 'updated_since', 'last_seen_since'],
    services: ['state', 'name', 'search', 'updated_since'],
    notes: ['updated_since'],
    sessions: [],
    vulns: ['name', 'search', 'updated_since'],
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

type Row = Readonly<Record<string, unknown>>;

/** Whether a row with the values of its fields fulfils the filters. */
export function matches(row: Row, { address, search, updated_since, last_seen_since, ...whole }: Filters): boolean {
    return (
        Object.entries(whole).every(([field, value]) => value === undefined || row[field] === value) &&
        (address === undefined || isInRange(row.address, address)) &&
        (updated_since === undefined || isSince(row.updated_at, updated_since)) &&
        (last_seen_since === undefined || isSince(row.last_seen, last_seen_since)) &&
        (search === undefined || isFound(row, search.toLowerCase()))
    );
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

/** Whether a text is an address of the range. */
export function isInRange(text: unknown, { first, last }: AddressRange): boolean {
    const [address, from, to] = [parseAddress(String(text)), parseAddress(first), parseAddress(last)];
    return address !== null && from !== null && to !== null && compare(from, address) <= 0 && compare(address, to) <= 0;
}

/** Addresses of version 4 come before those of version 6, as PostgreSQL has them. */
function compare(one: Address, other: Address): number {
    return Buffer.compare(
        Buffer.from([one.toByteArray().length, ...one.toByteArray()]),
        Buffer.from([other.toByteArray().length, ...other.toByteArray()]),
    );
}

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/**
 * The addresses that a text names: `192.0.2.7`, `192.0.2.0/24`, `192.0.2.1-192.0.2.9`, the same in IPv6.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `address`.
 */
export function addressRange(text: string): AddressRange {
    const [network = '', bits, tooMuch] = text.split('/');
    if (bits !== undefined) {
        const { address } = plainAddress(network);
        const parsed = parseAddress(address) as Address;
        const length = PREFIX_LENGTH.test(bits) ? Number(bits) : Number.POSITIVE_INFINITY;
        if (tooMuch !== undefined || length > parsed.toByteArray().length * 8) {
            throw noRange();
        }
        return { first: atEdge(parsed, length, 0), last: atEdge(parsed, length, 255) };
    }

    const [from = '', to = from, another] = text.split('-');
    const [first, last] = [plainAddress(from).address, plainAddress(to).address];
    const [lower, upper] = [parseAddress(first) as Address, parseAddress(last) as Address];
    if (another !== undefined || lower.kind() !== upper.kind() || compare(lower, upper) > 0) {
        throw noRange();
    }
    return { first, last };
}

/** The first address of a block, whose bits behind the prefix are 0, or its last, where they are 1. */
function atEdge(address: Address, prefixLength: number, filling: 0 | 255): string {
    const bytes = address.toByteArray().map((byte, index) => {
        const kept = Math.min(8, Math.max(0, prefixLength - index * 8));
        const mask = (0xff << (8 - kept)) & 0xff;
        return (byte & mask) | (filling & ~mask & 0xff);
    });
    return canonicalAddress(ipaddr.fromByteArray(bytes).toString()).address;
}

function plainAddress(text: string): { readonly address: string } {
    if (text === '' || parseAddress(text) === null) {
        throw noRange();
    }
    return canonicalAddress(text);
}

function noRange(): ScanwireError {
    const message = 'address must be an IP address, a block such as 192.0.2.0/24, or a range such as 192.0.2.1-192.0.2.9';
    return new ScanwireError('INVALID_INPUT', message, { field: 'address' });
}
