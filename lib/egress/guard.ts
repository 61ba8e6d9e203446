import { isIP } from 'node:net';
import { type Address, isFirstOf, isIn, isSingle, NAME_PATTERN, normalName, parseAddress, parseBlock, unmapped } from '../addresses.ts';
import { ScanwireError } from '../errors.ts';
import { type IsOwnAddress, isOwnAddress, ownAddresses } from './own-host.ts';
import { destinations, isInternalName, isMetadataAddress, isMetadataName, specialUse } from './special-addresses.ts';

/** What the operator allows. */
export interface EgressPolicy {
    /**
     * What the operator opens besides public addresses: CIDR blocks (`10.20.0.0/16`, `fd12::/48`) but for addresses of this host, single addresses, on one port
     * if it is given (`10.1.2.3:8080`, `[fd12::1]:8080`), and host names, each allowed whatever it resolves to. Nothing opens a
     * cloud metadata address or name. `*:25` opens a port for receivers that is closed to them, see `lib/webhooks/exporters/receiver-url.ts`.
     */
    readonly allow: readonly string[];
    /** What is open to some owners of exporters, by their names, in place of `allow`. */
    readonly owners?: Readonly<Record<string, readonly string[]>>;
}

/** Decides which addresses may be called. Public ones of other hosts only, unless the operator opened others; trust settings do not matter here. */
export interface EgressGuard {
    /** What the policy opens; absent where that cannot be known. */
    readonly allow?: readonly string[];
    /** The same to owners who have something of their own. */
    readonly owners?: Readonly<Record<string, readonly string[]>>;

    /** The guard of an owner's exporters; this one where it is absent, or answers with nothing. */
    ofOwner?(owner: string): EgressGuard | undefined;

    /**
     * Judges an address, in the notation that a resolver or `URL` gives.
     *
     * @param hostname The name it was resolved from.
     * @param port Where it would be called; without it, what is open on single ports only counts as closed.
     * @returns What the address is, for example `a loopback address`, when it may not be called; null when it may.
     */
    vet(address: string, hostname?: string, port?: number): string | null;

    /** Judges the host of a URL, without brackets, before anything is resolved: literals by address, names by name. Returns what `vet` does. */
    vetHost(host: string, port?: number): string | null;
}

/**
 * A guard that lets calls out to public addresses that are none of this host, and to what the policy opens besides.
 *
 * @param own The addresses of this host, which are asked for at most once a second.
 * @param now Milliseconds.
 * @throws ScanwireError `MISCONFIGURED` that names the position of the entry, from 1, and what is wrong with it.
 */
export function egressGuard(policy: EgressPolicy, own?: () => readonly string[], now?: () => number): EgressGuard {
    const isOwn = own === undefined ? isOwnAddress : ownAddresses(own, now);
    const { allow, owners = {} } = (policy as Partial<EgressPolicy> | undefined) ?? {};
    const guards = new Map(Object.entries(owners).map(([owner, opened]) => [owner, guardOpening(opened, `owners.${owner}`, isOwn)]));
    return {
        ...guardOpening(allow as readonly string[], 'allow', isOwn),
        ...(guards.size > 0 && { owners: structuredClone(owners), ofOwner: (owner) => guards.get(owner) }),
    };
}

/** The guard for the exporters of an owner, null for those of the deployment: who has none of his own has what is open to all. */
export function guardFor(guard: EgressGuard, owner: string | null): EgressGuard {
    return owner === null ? guard : (guard.ofOwner?.(owner) ?? guard);
}

function guardOpening(allow: readonly string[], field: string, isOwn: IsOwnAddress): EgressGuard {
    const opened = parseAllowList(allow, field);

    const judge = (address: Address, port: number | undefined): string | null => {
        const opening = opened.ranges.filter(({ block, port: only }) => isIn(address, block) && (only === null || only === port));
        // What listens there may count on being asked by nobody else, and a block may have been opened for other hosts;
        // a name that leads here cannot be seen when it is saved.
        const isClosed = !opening.some(({ block }) => isSingle(block)) && isOwn(address);
        if (opening.length === 0 || isClosed) {
            return specialUse(address) ?? (isClosed ? 'an address of this host' : null);
        }

        // an opened NAT64 or tunnel range opens the way, not everything that it leads to
        for (const inner of destinations(address)) {
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
        if (isMetadataAddress(address)) {
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

    return { allow: [...allow], vet, vetHost };
}

/** A block of addresses, open on one port or on all. */
interface OpenBlock {
    readonly block: readonly [Address, number];
    readonly port: number | null;
}

/**
 * What an allow list opens; names are as {@link normalName} gives them.
 *
 * @throws ScanwireError `MISCONFIGURED`.
 */
function parseAllowList(
    allow: readonly string[],
    field: string,
): { readonly ranges: readonly OpenBlock[]; readonly names: ReadonlySet<string> } {
    if (!Array.isArray(allow)) {
        throw new ScanwireError('MISCONFIGURED', `egressGuard policy: ${field} must be a list of CIDR blocks and host names`, { field });
    }

    const ranges: OpenBlock[] = [];
    const names = new Set<string>();
    for (const [index, entry] of allow.entries()) {
        const text = typeof entry === 'string' ? entry.trim() : '';
        const wrong = text.startsWith('*:')
            ? faultOfPort(Number(text.slice(2)))
            : /[/:]/.test(text) || isIP(text) !== 0
              ? addRange(text, ranges)
              : addName(text, names);
        if (wrong !== null) {
            const whose = field === 'allow' ? '' : ` ${field}`;
            const message = `Entry ${index + 1} of the egress allow list${whose} ${wrong}`;
            throw new ScanwireError('MISCONFIGURED', message, { field: `${field}[${index}]` });
        }
    }

    return { ranges, names };
}

const WITH_PORT = /^(?:\[([^\]]+)\]|([0-9.]+)):(\d{1,5})$/;

function faultOfPort(port: number): string | null {
    return Number.isInteger(port) && port >= 1 && port <= 65_535 ? null : 'has a port outside of 1 to 65535';
}

/** Null once added, else what is wrong. */
function addRange(entry: string, ranges: OpenBlock[]): string | null {
    const [, six, four, portDigits] = WITH_PORT.exec(entry) ?? [];
    const text = six ?? four ?? entry;
    const port = portDigits === undefined ? null : Number(portDigits);
    const fault = port === null ? null : faultOfPort(port);
    if (fault !== null) {
        return fault;
    }

    const block = parseBlock(text);
    if (block === null) {
        return text.includes('://')
            ? 'is a URL: write its host name, or its address with the port'
            : 'is not a CIDR block: write address/bits';
    }

    if (unmapped(block[0]) !== block[0]) {
        return 'is an IPv4-mapped block: write it as IPv4';
    }

    if (!isFirstOf(block)) {
        return 'has bits set behind its prefix: write the first address of the block, or the address alone';
    }

    ranges.push({ block, port });
    return null;
}

/** Null once added, else what is wrong. */
function addName(text: string, names: Set<string>): string | null {
    const url = URL.canParse(`http://${text}/`) ? new URL(`http://${text}/`) : null;
    if (url === null || url.href !== `http://${url.hostname}/` || !NAME_PATTERN.test(url.hostname)) {
        return 'is neither a CIDR block nor a host name';
    }

    const name = normalName(url.hostname);
    if (isMetadataName(name)) {
        return 'names a cloud metadata service, which stays closed';
    }

    names.add(name);
    return null;
}
