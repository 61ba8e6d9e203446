import ipaddr from 'ipaddr.js';
import { type Address, canonicalAddress, parseAddress } from './addresses.ts';
import { ScanwireError } from './errors.ts';
import { type Interval, isWithinOne, mergedIntervals } from './intervals.ts';

/** Addresses of one family from `first` to `last`, both included, in canonical text. */
export interface AddressRange {
    readonly first: string;
    readonly last: string;
}

/**
 * The question whether a text is an address of one of the ranges, to be asked of many texts: the ranges are parsed and sorted once, so that many
 * cost each text hardly more than one. A text with a zone is in none.
 */
export function inRanges(ranges: readonly AddressRange[]): (text: unknown) => boolean {
    const merged = mergedIntervals(ranges.flatMap(intervalOf));
    return (text) => {
        const address = parseAddress(String(text));
        return address !== null && isWithinOne(merged, sortable(address));
    };
}

/** None where a bound is no address, or the first lies behind the last. */
function intervalOf({ first, last }: AddressRange): readonly Interval<string>[] {
    const [from, to] = [parseAddress(first), parseAddress(last)];
    const isRange = from !== null && to !== null && sortable(from) <= sortable(to);
    return isRange ? [[sortable(from), sortable(to)]] : [];
}

/** A text in whose order addresses are. Those of version 4 come before those of version 6, as PostgreSQL has them. */
function sortable(address: Address): string {
    const bytes = address.toByteArray();
    return String.fromCharCode(bytes.length, ...bytes);
}

/** In how many blocks of so many bytes in common the addresses of a range lie; of very many about. Of all bytes: how many addresses it has. */
export function blocksIn({ first, last }: AddressRange, bytes: number): number {
    const from = parseAddress(first)?.toByteArray() ?? [];
    const to = parseAddress(last)?.toByteArray() ?? [];
    // Byte by byte: of version 6 the difference is exact where both addresses are not.
    return to.slice(0, bytes).reduce((sum, byte, index) => sum * 256 + byte - (from[index] as number), 0) + 1;
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
    if (another !== undefined || lower.kind() !== upper.kind() || sortable(lower) > sortable(upper)) {
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
