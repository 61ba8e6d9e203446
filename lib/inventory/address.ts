import ipaddr from 'ipaddr.js';
import { ScanwireError } from '../errors.ts';

/** An IP address in its one canonical text, and the zone that came with it. */
export interface CanonicalAddress {
    /** Dotted IPv4, or IPv6 in the lower-case text of RFC 5952; never with a zone. */
    readonly address: string;
    /** Zone of an IPv6 address, the `eth0` of `fe80::1%eth0`; null without one. */
    readonly scope: string | null;
}

const ZONE = /^[\x21-\x24\x26-\x7e]{1,64}$/;

/**
 * The canonical form of an IP address, so that one address has one text. Only the four-part decimal form of IPv4 counts:
 * `010.0.0.1` or `0x7f.1` mean different addresses to different programs.
 *
 * @throws ScanwireError `INVALID_INPUT` for field `address`.
 */
export function canonicalAddress(text: string): CanonicalAddress {
    const trimmed = text.trim();
    if (ipaddr.IPv4.isValidFourPartDecimal(trimmed)) {
        return { address: ipaddr.IPv4.parse(trimmed).toString(), scope: null };
    }

    const [, body = '', zone] = /^([^%]*)(?:%(.*))?$/s.exec(trimmed) ?? [];
    if (!ipaddr.IPv6.isValid(body) || (zone !== undefined && !ZONE.test(zone))) {
        throw new ScanwireError('INVALID_INPUT', 'address must be an IPv4 or IPv6 address', { field: 'address' });
    }

    return { address: ipv6Text(ipaddr.IPv6.parse(withoutDots(body))), scope: zone ?? null };
}

/** `::192.0.2.7`, the deprecated IPv4-compatible form (RFC 4291, 2.5.5.1), in groups: ipaddr.js takes it for an IPv4-mapped one. */
function withoutDots(text: string): string {
    const [, dotted] = /^::(\d+\.\d+\.\d+\.\d+)$/.exec(text) ?? [];
    if (dotted === undefined) {
        return text;
    }

    const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(dotted).octets;
    return `::${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** RFC 5952, section 5: an IPv4-mapped address shows its IPv4 part as such. */
function ipv6Text(address: ipaddr.IPv6): string {
    return address.isIPv4MappedAddress() ? `::ffff:${address.toIPv4Address().toString()}` : address.toRFC5952String();
}
