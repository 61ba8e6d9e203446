import ipaddr from 'ipaddr.js';

/**
 * Every IPv4 address that some transition mechanism would read out of an IPv6 address: the last 32 bits (mapped, compatible,
 * SIIT, ISATAP, NAT64), those inverted (Teredo client), 6to4, and the six places of RFC 6052, one of which is Teredo's server.
 *
 * Which mechanism the network in front of us runs cannot be known, so the reading is done for all of them.
 */
export function embeddedIPv4(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
    const bytes = address.toByteArray();
    return [...PLACES.map((place) => ipv4(place.map((index) => bytes[index] ?? 0))), teredoClient(bytes)];
}

const PLACES: readonly (readonly number[])[] = [
    [12, 13, 14, 15],
    [2, 3, 4, 5],
    [4, 5, 6, 7],
    [5, 6, 7, 9],
    [6, 7, 9, 10],
    [7, 9, 10, 11],
    [9, 10, 11, 12],
];

/** The IPv4 address in the last 32 bits. */
function lastIPv4(address: ipaddr.IPv6): ipaddr.IPv4 {
    return ipv4(address.toByteArray().slice(12));
}

/** An ISATAP interface identifier (RFC 5214) under any prefix: packets to it end at the IPv4 address inside. */
export function isIsatap(address: ipaddr.IPv6): boolean {
    const [, , , , high = 0, low = 0] = address.parts;
    return (high === 0 || high === 0x200) && low === 0x5efe;
}

const TEREDO = ipaddr.IPv6.parseCIDR('2001::/32');
/** `::` and `::1` mean this machine; no mechanism reads an address out of them, though `::/96` holds them. */
const OWN = ipaddr.IPv6.parseCIDR('::/127');
const SIX_TO_FOUR = ipaddr.IPv6.parseCIDR('2002::/16');
const LAST_32_BITS = ['::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'].map((cidr) =>
    ipaddr.IPv6.parseCIDR(cidr),
);

/** Where packets to a transition address really go; empty for an ordinary IPv6 address. */
export function destinations(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
    const bytes = address.toByteArray();
    if (address.match(TEREDO)) {
        return [ipv4(bytes.slice(4, 8)), teredoClient(bytes)];
    }

    if (address.match(SIX_TO_FOUR)) {
        return [ipv4(bytes.slice(2, 6))];
    }

    if (address.match(OWN)) {
        return [];
    }

    const carriesLast = isIsatap(address) || LAST_32_BITS.some((range) => address.match(range));
    return carriesLast ? [lastIPv4(address)] : [];
}

function teredoClient(bytes: readonly number[]): ipaddr.IPv4 {
    return ipv4(bytes.slice(12).map((byte) => byte ^ 0xff));
}

function ipv4(octets: readonly number[]): ipaddr.IPv4 {
    return new ipaddr.IPv4([...octets]);
}
