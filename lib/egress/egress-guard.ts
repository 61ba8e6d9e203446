import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { readEgressPolicy } from './egress-policy.ts';
import { destinations, embeddedIPv4, isIsatap } from './embedded-ipv4.ts';
import { isInternalName, isMetadataName, normalName } from './internal-names.ts';
import { type Address, parseAddress, unmapped } from './ip-address.ts';
import { GLOBAL_UNICAST, METADATA_BLOCKS, SPECIAL_BLOCKS, within } from './special-addresses.ts';

export interface EgressPolicy {
    /**
     * What the operator opens besides public addresses: CIDR blocks (`10.20.0.0/16`, `fd12::/48`), single addresses, on one port
     * if it is given (`10.1.2.3:8080`, `[fd12::1]:8080`), and host names, each allowed whatever it resolves to. Nothing opens a
     * cloud metadata address or name.
     */
    readonly allow: readonly string[];
}

/** Decides which addresses may be called. Public ones only, unless the operator opened others; trust settings do not matter here. */
export interface EgressGuard {
    /**
     * Judges an address, in the plain form that a resolver or `URL` gives.
     *
     * @param hostname The name it was resolved from.
     * @param port Where it would be called; without it, what is open on single ports only counts as closed.
     * @returns What the address is, for example `a loopback address`, when it may not be called; null when it may.
     */
    vet(address: string, hostname?: string, port?: number): string | null;

    /** Judges the host of a URL, without brackets, before anything is resolved: literals by address, names by name. Answers as `vet`. */
    vetHost(host: string, port?: number): string | null;
}

/**
 * @throws ScanwireError `MISCONFIGURED` that names the position of the entry, from 1, and what is wrong with it.
 */
export function egressGuard({ allow }: EgressPolicy): EgressGuard {
    const opened = readEgressPolicy(allow);

    const judge = (address: Address, port: number | undefined): string | null => {
        if (!opened.ranges.some((range) => within(address, range.block) && (range.port === null || range.port === port))) {
            return specialUse(address);
        }

        // an opened NAT64 or tunnel range opens the way, not every place it leads to
        for (const inner of address instanceof ipaddr.IPv6 ? destinations(address) : []) {
            const refusal = judge(inner, port);
            if (refusal !== null) {
                return `${specialUse(address) ?? 'an address'} that leads to ${refusal}`;
            }
        }

        return null;
    };

    const vet = (text: string, hostname?: string, port?: number): string | null => {
        const parsed = parseAddress(text);
        if (parsed === null) {
            return 'something that is no plain IP address';
        }

        const address = unmapped(parsed);
        if (isMetadata(address)) {
            return 'a cloud metadata address';
        }

        return hostname !== undefined && opened.names.has(normalName(hostname)) ? null : judge(address, port);
    };

    const vetHost = (host: string, port?: number): string | null => {
        if (isIP(host) !== 0) {
            return vet(host, undefined, port);
        }

        const name = normalName(host);
        if (isMetadataName(name)) {
            return 'the name of a cloud metadata service';
        }

        return isInternalName(name) && !opened.names.has(name) ? 'an internal name' : null;
    };

    return { vet, vetHost };
}

function isMetadata(address: Address): boolean {
    const readings = address instanceof ipaddr.IPv6 ? [address, ...embeddedIPv4(address)] : [address];
    return readings.some((reading) => METADATA_BLOCKS.some((range) => within(reading, range)));
}

function specialUse(address: Address): string | null {
    const special = SPECIAL_BLOCKS.find(({ range }) => within(address, range));
    if (special !== undefined) {
        return special.label;
    }

    if (address instanceof ipaddr.IPv6) {
        return isIsatap(address) ? 'an ISATAP address' : within(address, GLOBAL_UNICAST) ? null : 'a reserved address';
    }

    return null;
}
