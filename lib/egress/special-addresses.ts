import ipaddr from 'ipaddr.js';
import { type Address, isIn } from '../addresses.ts';

/* Hosts that are not public or serve cloud metadata, by address and by name. What of them an operator opens is in guard.ts. */

const parseBlock = (cidr: string): [Address, number] => ipaddr.parseCIDR(cidr);

/**
 * Blocks that are not public and what an address in each is called, from the IANA special-purpose address registries (IPv4,
 * IPv6) taken whole, the anycast and service blocks marked reachable there included: none of them is where a receiver lives.
 * Multicast has its own registries; `fec0::/10`, `::/96` and `::ffff:0:0:0/96` have left the registry, but systems still route them.
 */
const SPECIAL_RANGES: readonly (readonly [cidr: string, label: string])[] = [
    ['0.0.0.0/8', 'an address of this network'],
    ['10.0.0.0/8', 'a private address'],
    ['100.64.0.0/10', 'a shared (carrier-grade NAT) address'],
    ['127.0.0.0/8', 'a loopback address'],
    ['169.254.0.0/16', 'a link-local address'],
    ['172.16.0.0/12', 'a private address'],
    ['192.0.0.0/24', 'an IETF protocol address'],
    ['192.0.2.0/24', 'a documentation address'],
    ['192.31.196.0/24', 'an AS112 address'],
    ['192.52.193.0/24', 'an AMT relay address'],
    ['192.88.99.0/24', 'a 6to4 relay address'],
    ['192.168.0.0/16', 'a private address'],
    ['192.175.48.0/24', 'an AS112 address'],
    ['198.18.0.0/15', 'a benchmarking address'],
    ['198.51.100.0/24', 'a documentation address'],
    ['203.0.113.0/24', 'a documentation address'],
    ['224.0.0.0/4', 'a multicast address'],
    ['255.255.255.255/32', 'the broadcast address'],
    ['240.0.0.0/4', 'a reserved address'],

    ['::/128', 'the unspecified address'],
    ['::1/128', 'a loopback address'],
    ['::/96', 'an IPv4-compatible address'],
    ['::ffff:0:0/96', 'an IPv4-mapped address'],
    ['::ffff:0:0:0/96', 'an IPv4-translated (SIIT) address'],
    ['64:ff9b::/96', 'a NAT64 address'],
    ['64:ff9b:1::/48', 'a local NAT64 address'],
    ['100::/64', 'a discard-only address'],
    ['100:0:0:1::/64', 'a dummy address'],
    ['2001::/32', 'a Teredo address'],
    ['2001:2::/48', 'a benchmarking address'],
    ['2001:3::/32', 'an AMT address'],
    ['2001:4:112::/48', 'an AS112 address'],
    ['2001:10::/28', 'an ORCHID address'],
    ['2001:20::/28', 'an ORCHIDv2 address'],
    ['2001:30::/28', 'a drone remote id'],
    ['2001::/23', 'an IETF protocol address'],
    ['2001:db8::/32', 'a documentation address'],
    ['2002::/16', 'a 6to4 address'],
    ['2620:4f:8000::/48', 'an AS112 address'],
    ['3fff::/20', 'a documentation address'],
    ['5f00::/16', 'a segment routing address'],
    ['fc00::/7', 'a unique local address'],
    ['fe80::/10', 'a link-local address'],
    ['fec0::/10', 'a site-local address'],
    ['ff00::/8', 'a multicast address'],
];

const SPECIAL_BLOCKS = SPECIAL_RANGES.map(([cidr, label]) => ({ range: parseBlock(cidr), label }));

/** All that is public in IPv6 lies here; the rest is special or not assigned to anyone. */
const GLOBAL_UNICAST = parseBlock('2000::/3');

/**
 * Where clouds keep credentials and settings of the machine, by the vendors' documentation: instance metadata (AWS, Azure,
 * Google, Alibaba, Oracle, Tencent, Scaleway, Akamai), container and pod credentials, and the platform's own DNS and time.
 */
const METADATA_BLOCKS: readonly [Address, number][] = [
    '169.254.169.0/24',
    '169.254.170.0/24',
    '169.254.0.23/32',
    '169.254.42.42/32',
    '100.100.100.200/32',
    '168.63.129.16/32',
    '192.0.0.192/32',
    'fd00:ec2::/32',
    'fd20:ce::254/128',
    'fd00:42::42/128',
    'fd00:c1::a9fe:a9fe/128',
    'fd00:a9fe:a9fe::/48',
].map(parseBlock);

/** Whether a cloud serves metadata at the address, or at an IPv4 address that may be read out of it. */
export function isMetadataAddress(address: Address): boolean {
    const readings = address instanceof ipaddr.IPv6 ? [address, ...embeddedIPv4(address)] : [address];
    return readings.some((reading) => METADATA_BLOCKS.some((range) => isIn(reading, range)));
}

/** What an address is that is not public, for example `a loopback address`; null for a public one. */
export function specialUse(address: Address): string | null {
    const special = SPECIAL_BLOCKS.find(({ range }) => isIn(address, range));
    if (special !== undefined) {
        return special.label;
    }

    if (address instanceof ipaddr.IPv6) {
        return isIsatap(address) ? 'an ISATAP address' : isIn(address, GLOBAL_UNICAST) ? null : 'a reserved address';
    }

    return null;
}

/**
 * Every IPv4 address that some transition mechanism would read out of an IPv6 address: the last 32 bits (mapped, compatible,
 * SIIT, ISATAP, NAT64), those inverted (Teredo client), 6to4, and the six positions of RFC 6052, one of which is Teredo's server.
 *
 * Which mechanism the network in front of us runs cannot be known, so the reading is done for all of them.
 */
function embeddedIPv4(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
    const bytes = address.toByteArray();
    return [...POSITIONS.map((position) => ipv4(position.map((index) => bytes[index] ?? 0))), teredoClient(bytes)];
}

const POSITIONS: readonly (readonly number[])[] = [
    [12, 13, 14, 15],
    [2, 3, 4, 5],
    [4, 5, 6, 7],
    [5, 6, 7, 9],
    [6, 7, 9, 10],
    [7, 9, 10, 11],
    [9, 10, 11, 12],
];

/** An ISATAP interface identifier (RFC 5214) under any prefix: packets to it end at the IPv4 address inside. */
function isIsatap(address: ipaddr.IPv6): boolean {
    const [, , , , high = 0, low = 0] = address.parts;
    return (high === 0 || high === 0x200) && low === 0x5efe;
}

const TEREDO = parseBlock('2001::/32');
/** `::` and `::1` mean this machine; no mechanism reads an address out of them, though `::/96` holds them. */
const OWN = parseBlock('::/127');
const SIX_TO_FOUR = parseBlock('2002::/16');
const LAST_32_BITS = ['::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'].map(parseBlock);

/** Where packets to a transition address really go; empty for any other address. */
export function destinations(address: Address): readonly ipaddr.IPv4[] {
    if (!(address instanceof ipaddr.IPv6) || isIn(address, OWN)) {
        return [];
    }

    const bytes = address.toByteArray();
    if (isIn(address, TEREDO)) {
        return [ipv4(bytes.slice(4, 8)), teredoClient(bytes)];
    }

    if (isIn(address, SIX_TO_FOUR)) {
        return [ipv4(bytes.slice(2, 6))];
    }

    return isIsatap(address) || LAST_32_BITS.some((range) => isIn(address, range)) ? [ipv4(bytes.slice(12))] : [];
}

function teredoClient(bytes: readonly number[]): ipaddr.IPv4 {
    return ipv4(bytes.slice(12).map((byte) => byte ^ 0xff));
}

function ipv4(octets: readonly number[]): ipaddr.IPv4 {
    return new ipaddr.IPv4([...octets]);
}

const METADATA_NAMES: ReadonlySet<string> = new Set([
    'metadata',
    'metadata.google.internal',
    'metadata.goog',
    'metadata.azure.internal',
    'metadata.oraclecloud.com',
    'metadata.tencentyun.com',
    'metadata.platformequinix.com',
    'metadata.packet.net',
    'instance-data',
    'instance-data.ec2.internal',
]);

/** Names under which clouds serve the metadata of a machine; `name` as {@link normalName} gives it. */
export function isMetadataName(name: string): boolean {
    return METADATA_NAMES.has(name);
}

/** Ends of names that never lead to a public receiver: RFC 6761, 6762, 7686, 8375, 9476 and ICANN's `internal`. */
const INTERNAL_SUFFIXES: readonly string[] = ['localhost', 'local', 'internal', 'home.arpa', 'onion', 'alt', 'localdomain'];

/** Names that always lead inside, whatever the resolver says; `name` as {@link normalName} gives it. */
export function isInternalName(name: string): boolean {
    return INTERNAL_SUFFIXES.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
