import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { readEgressPolicy } from './egress-policy.ts';
import { destinations, embeddedIPv4, isIsatap } from './embedded-ipv4.ts';
import { isInternalName, isMetadataName, normalName } from './internal-names.ts';
import { type Address, parseAddress, unmapped } from './ip-address.ts';
import { GLOBAL_UNICAST, METADATA_BLOCKS, SPECIAL_BLOCKS, within } from './special-addresses.ts';

export interface EgressPolicy {
    /**
     * What the operator opens besides public addresses: CIDR blocks (`10.20.0.0/16`, `fd12::/48`), single addresses, and host
     * names, each allowed whatever it resolves to. Nothing opens a cloud metadata address or name.
     */
    readonly allow: readonly string[];
}

/** Decides which addresses may be called. Public ones only, unless the operator opened others; trust settings do not matter here. */
export interface EgressGuard {
    /**
     * Judges an address, in the plain form that a resolver or `URL` gives.
     *
     * @param hostname The name it was resolved from.
     * @returns What the address is, for example `a loopback address`, when it may not be called; null when it may.
     */
    vet(address: string, hostname?: string): string | null;

    /** Judges the host of a URL, without brackets, before anything is resolved: literals by address, names by name. Answers as `vet`. */
    vetHost(host: string): string | null;
}

/**
 * @throws ScanwireError `MISCONFIGURED` that names the position of the entry, from 1, and what is wrong with it.
 */
export function egressGuard({ allow }: EgressPolicy): EgressGuard {
    const opened = readEgressPolicy(allow);

    const judge = (address: Address): string | null => {
        if (!opened.ranges.some((range) => within(address, range))) {
            return specialUse(address);
        }

        // an opened NAT64 or tunnel range opens the way, not every place it leads to
        for (const inner of address instanceof ipaddr.IPv6 ? destinations(address) : []) {
            const refusal = judge(inner);
            if (refusal !== null) {
                return `${specialUse(address) ?? 'an address'} that leads to ${refusal}`;
            }
        }

        return null;
    };

    const vet = (text: string, hostname?: string): string | null => {
        const parsed = parseAddress(text);
        if (parsed === null) {
            return 'something that is no plain IP address';
        }

        const address = unmapped(parsed);
        if (isMetadata(address)) {
            return 'a cloud metadata address';
        }

        return hostname !== undefined && opened.names.has(normalName(hostname)) ? null : judge(address);
    };

    const vetHost = (host: string): string | null => {
        if (isIP(host) !== 0) {
            return vet(host);
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
