import { isIP } from 'node:net';
import { ScanwireError } from '../scanwire-error.ts';
import { isMetadataName, normalName } from './internal-names.ts';
import { type Address, parseAddress, unmapped } from './ip-address.ts';

/** A block of addresses, open on one port or on all. */
export interface OpenBlock {
    readonly block: readonly [Address, number];
    readonly port: number | null;
}

/** What an operator has opened besides public addresses. */
export interface Opened {
    readonly ranges: readonly OpenBlock[];
    /** As {@link normalName} gives them. */
    readonly names: ReadonlySet<string>;
}

/**
 * Reads an allow list of CIDR blocks, single addresses, also with a port (`10.1.2.3:8080`, `[fd12::1]:8080`), and host names.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the position of the entry, from 1, and what is wrong with it.
 */
export function readEgressPolicy(allow: readonly string[]): Opened {
    if (!Array.isArray(allow)) {
        throw new ScanwireError('MISCONFIGURED', 'The egress allow list must be a list of CIDR blocks and host names', { field: 'allow' });
    }

    const ranges: OpenBlock[] = [];
    const names = new Set<string>();
    for (const [index, entry] of allow.entries()) {
        const text = typeof entry === 'string' ? entry.trim() : '';
        const wrong = /[/:]/.test(text) || isIP(text) !== 0 ? addRange(text, ranges) : addName(text, names);
        if (wrong !== null) {
            throw new ScanwireError('MISCONFIGURED', `Entry ${index + 1} of the egress allow list ${wrong}`, { field: `allow[${index}]` });
        }
    }

    return { ranges, names };
}

const WITH_PORT = /^(?:\[([^\]]+)\]|([0-9.]+)):(\d{1,5})$/;

/** Null once added, else what is wrong. */
function addRange(entry: string, ranges: OpenBlock[]): string | null {
    const [, six, four, portDigits] = WITH_PORT.exec(entry) ?? [];
    const text = six ?? four ?? entry;
    const port = portDigits === undefined ? null : Number(portDigits);
    if (port !== null && (port < 1 || port > 65_535)) {
        return 'has a port outside of 1 to 65535';
    }

    const [, network = text, digits] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
    const address = parseAddress(network);
    const most = isIP(network) === 4 ? 32 : 128;
    const bits = digits === undefined ? most : Number(digits);
    if (address === null || bits > most) {
        return 'is not a CIDR block: write address/bits';
    }

    if (unmapped(address) !== address) {
        return 'is an IPv4-mapped block: write it as IPv4';
    }

    ranges.push({ block: [address, bits], port });
    return null;
}

const NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$/;

/** Null once added, else what is wrong. */
function addName(text: string, names: Set<string>): string | null {
    const url = URL.canParse(`http://${text}/`) ? new URL(`http://${text}/`) : null;
    const name = normalName(url?.hostname ?? '');
    const plain = url !== null && url.href === `http://${url.hostname}/` && isIP(name) === 0 && NAME.test(name);
    if (!plain) {
        return 'is neither a CIDR block nor a host name';
    }

    if (isMetadataName(name)) {
        return 'names a cloud metadata service, which stays closed';
    }

    names.add(name);
    return null;
}
