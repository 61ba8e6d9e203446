import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { ScanwireError } from './errors.ts';

/** An IP address as a value: to be compared, matched with blocks and written. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * The address that a text names, or null for anything but its usual notation: no zone, no brackets, no octal or hexadecimal parts of
 * IPv4 (`010.0.0.1` means different addresses to different programs). So it takes what {@link IP_PATTERN} matches, and what Node
 * connects to without asking a resolver. An IPv4-mapped address comes out as IPv6; see {@link unmapped}.
 */
export function parseAddress(text: string): Address | null {
    const family = isIP(text);
    if (family === 0 || text.includes('%')) {
        return null;
    }

    // ipaddr.js takes the IPv4-compatible `::192.0.2.1` for the IPv4-mapped `::ffff:192.0.2.1`, unless a zero is in front.
    // of an IPv4 address Node has seen that it is four numbers, which ipaddr.js would look at again for three times the price
    return family === 4 ? new ipaddr.IPv4(text.split('.').map(Number)) : ipaddr.IPv6.parse(text.replace(/^::(?=[\d.]+$)/, '0::'));
}

/** The IPv4 address that an IPv4-mapped address stands for on every system; any other address as it is. */
export function unmapped(address: Address): Address {
    return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** Whether a text is an address by which a machine reaches itself. */
export function isLoopback(text: string): boolean {
    const address = parseAddress(text);
    return address !== null && unmapped(address).range() === 'loopback';
}

/** In any spelling; an address that was mapped into IPv6 on the way counts as the IPv4 address it is. */
export function sameAddress(one: string | undefined, other: string): boolean {
    const [left, right] = [parseAddress(one ?? ''), parseAddress(other)];
    return left !== null && right !== null && unmapped(left).toString() === unmapped(right).toString();
}

/** True when the address lies in the block; false for a block of the other family. */
export function isIn(address: Address, [network, bits]: Block): boolean {
    return address.kind() === network.kind() && address.match(network, bits);
}

/** A block of addresses: its network and the number of leading bits that count. */
export type Block = readonly [network: Address, bits: number];

/** The block that a text names, `10.20.0.0/16`, `fd12::/48` or a single address; null for anything else. */
export function parseBlock(text: string): Block | null {
    const [, network = text, digits] = BLOCK.exec(text) ?? [];
    const address = parseAddress(network);
    const maxBits = isIP(network) === 4 ? 32 : 128;
    const bits = digits === undefined ? maxBits : Number(digits);
    return address === null || bits > maxBits ? null : [address, bits];
}

/** Whether the address of a block is its first one: no bit is set of those that do not count. */
export function isFirstOf([network, bits]: Block): boolean {
    return network.toByteArray().every((byte, index) => (byte & (0xff >> Math.min(8, Math.max(0, bits - 8 * index)))) === 0);
}

/** Whether a block is one address. */
export function isSingle([network, bits]: Block): boolean {
    return bits === 8 * network.toByteArray().length;
}

const BLOCK = /^([^/]+)\/(\d{1,3})$/;

/** An IP address in its one canonical text, and the zone that came with it. */
export interface CanonicalAddress {
    /** Dotted IPv4, or IPv6 in the lower-case text of RFC 5952; never with a zone. */
    readonly address: string;
    /** Zone of an IPv6 address, the `eth0` of `fe80::1%eth0`; null without one. */
    readonly scope: string | null;
}

const ZONE = /^[\x21-\x24\x26-\x7e]{1,64}$/;

/**
 * The canonical form of an IP address, so that one address has one text. White space around it and the zone of an IPv6 address
 * are accepted besides what {@link parseAddress} takes.
 *
 * @param field What the caller's input calls it; the error names it.
 * @throws ScanwireError `INVALID_INPUT` with the field.
 */
export function canonicalAddress(text: string, field = 'address'): CanonicalAddress {
    const [, withoutZone = '', zone] = /^([^%]*)(?:%(.*))?$/s.exec(text.trim()) ?? [];
    const address = parseAddress(withoutZone);
    if (address === null || (zone !== undefined && (address.kind() === 'ipv4' || !ZONE.test(zone)))) {
        throw new ScanwireError('INVALID_INPUT', `${field} must be an IPv4 or IPv6 address`, { field });
    }

    // RFC 5952, section 5: an IPv4-mapped address shows its IPv4 part as such
    const inner = unmapped(address);
    return { address: inner === address ? address.toString() : `::ffff:${inner.toString()}`, scope: zone ?? null };
}

/** What addresses are compared by: one address has one text, however it was written. @throws ScanwireError `INVALID_INPUT` for field `ip`. */
export function addressKey(ip: string): string {
    return canonicalAddress(ip, 'ip').address;
}

/** What hosts are compared by: names as {@link normalName} gives them, addresses as addresses. */
export function hostKey(host: string): string {
    return IP_PATTERN.test(host) ? addressKey(host) : normalName(host);
}

/** The form in which names are compared: lower-case and without the dot of the root. */
export function normalName(name: string): string {
    const lower = name.toLowerCase();
    return lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

/** The host with brackets around an IPv6 address, as it stands before a port. */
export function withBrackets(host: string): string {
    return isIP(host) === 6 ? `[${host}]` : host;
}

/** The host as resolvers and certificates know it: an IPv6 address without its brackets. */
export function withoutBrackets(host: string): string {
    return host.replace(/^\[(.*)\]$/, '$1');
}

/*
 * Regular expressions instead of Joi's own rules for names and addresses: what is a pattern in a Joi schema is the same pattern in
 * its JSON Schema, so both always agree.
 */

const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `(?:${OCTET}\\.){3}${OCTET}`;
const GROUP = '[0-9A-Fa-f]{1,4}';

/** The last 32 bits may be written as an IPv4 address. */
const TAIL = `(?:${GROUP}:${GROUP}|${IPV4})`;

/** The forms of RFC 3986, appendix A (`IPv6address`): in full, then with `::` after at most 0, 1, … 7 groups. */
const IPV6 = [
    `(?:${GROUP}:){6}${TAIL}`,
    ...[5, 4, 3, 2, 1, 0].map((after, before) => `${upTo(before)}::(?:${GROUP}:){${after}}${TAIL}`),
    `${upTo(6)}::${GROUP}`,
    `${upTo(7)}::`,
].join('|');

/** At most so many groups, with colons between them. */
function upTo(groups: number): string {
    return groups === 0 ? '' : `(?:(?:${GROUP}:){0,${groups - 1}}${GROUP})?`;
}

/** Underscores are no letters of a host name by RFC 1123, but names with them are in use and resolve. */
const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
/** One that ends in a number would have to be an IPv4 address. */
const NAME = `(?=.{1,253}$)(?:${LABEL}\\.)*(?![0-9]+\\.?$)${LABEL}\\.?`;

/** An IPv4 or IPv6 address, without zone, brackets or prefix length. */
export const IP_PATTERN: RegExp = new RegExp(`^(?:${IPV4}|${IPV6})$`);

/**
 * A host name: at most 253 characters, in ASCII as it is on the wire (a name in another script is one only in its `xn--` form,
 * which `URL` gives), in any case, with or without the dot of the root.
 */
export const NAME_PATTERN: RegExp = new RegExp(`^${NAME}$`);

/** A host name or an address. Names come first, since most hosts are. */
export const HOST_PATTERN: RegExp = new RegExp(`^(?:${NAME}|${IPV4}|${IPV6})$`);

/** What one client has for itself: an IPv4 address, or the first 64 bits of an IPv6 address. */
export function addressBlock(text: string): string {
    const address = parseAddress(text.replace(/%.*$/s, ''));
    if (address === null) {
        return text;
    }

    const real = unmapped(address);
    return 'octets' in real
        ? real.toString()
        : real.parts
              .slice(0, 4)
              .map((part) => part.toString(16))
              .join(':');
}
