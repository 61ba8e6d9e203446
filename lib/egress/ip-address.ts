import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * The address that a text names, or null for anything but its plain form: no zone, no octal or hexadecimal parts of IPv4.
 * An IPv4-mapped address comes out as IPv6; see {@link unmapped}.
 */
export function parseAddress(text: string): Address | null {
    if (isIP(text) === 0 || text.includes('%')) {
        return null;
    }

    // ipaddr.js takes `::192.0.2.1` for a mapped address; URL writes all of IPv6 in hexadecimal first
    return ipaddr.parse(isIP(text) === 6 ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : text);
}

/** The IPv4 address that an IPv4-mapped address stands for on every system; any other address as it is. */
export function unmapped(address: Address): Address {
    return address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}
