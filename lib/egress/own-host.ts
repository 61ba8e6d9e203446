import { readFileSync } from 'node:fs';
import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { type Address, normalName, parseAddress, unmapped } from '../addresses.ts';
import { processWarning } from '../process-warning.ts';
import { HOSTS_FILE, namesIn } from './hosts-file.ts';

/** What this machine is called and where it is reached. */
export interface OwnHost {
    readonly name: string;
    /** As the system writes them. */
    readonly addresses: readonly string[];
    /** The domain in which it looks for names without a dot, and which is its own by custom; null where the system does not tell. */
    domain(): string | null;
    /** The addresses that the hosts file gives a name. */
    listed(name: string): readonly string[];
}

let isTold = false;

/** None where the system does not tell, as without the right to ask the kernel for them: that keeps nobody from calling others. */
function knownInterfaces(): readonly NetworkInterfaceInfo[] {
    try {
        return Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    } catch (error) {
        if (!isTold) {
            isTold = true;
            processWarning(`The addresses of this host are not known, and so not closed to receivers: ${(error as Error).message}`);
        }
        return [];
    }
}

/** Where the system says what this machine is called. */
export interface OwnFiles {
    readonly hostsFile?: string;
    /** Settings of the resolver. */
    readonly resolverFile?: string;
}

/** This machine, now. Its files are read when they are asked. */
export function ownHost({ hostsFile = HOSTS_FILE, resolverFile = '/etc/resolv.conf' }: OwnFiles = {}): OwnHost {
    const interfaces = knownInterfaces();
    return {
        name: hostname(),
        addresses: interfaces.filter(({ internal }) => !internal).map(({ address }) => address),
        domain: () => domainIn(textOf(resolverFile)),
        listed: (name) => namesIn(textOf(hostsFile)).get(name) ?? [],
    };
}

/** A file that is not there, or not ours to read, names nothing: no connection is led anywhere by it. */
function textOf(path: string): string {
    try {
        return readFileSync(path, 'utf8');
    } catch {
        return '';
    }
}

/** The domain of a `resolv.conf`: of `domain`, or the first of `search`, what stands last; null for none. */
export function domainIn(resolverFile: string): string | null {
    const said = resolverFile.split('\n').map((line) => line.trim().split(/\s+/));
    const [, domain = ''] = said.findLast(([option]) => option === 'domain' || option === 'search') ?? [];
    return normalName(domain) || null;
}

/** How long a list that was read holds, in milliseconds: each new connection asks, and a host of containers has thousands of interfaces. */
const KEPT_FOR = 1_000;

/** Whether an address, which is no IPv4-mapped one, is an address of this machine. */
export type IsOwnAddress = (address: Address) => boolean;

/**
 * Answers with what the machine had a moment ago, as its addresses may change while it runs. They are read at most once a second, and parsed
 * only when others came up.
 *
 * @param read The addresses, as the system writes them.
 * @param now Milliseconds.
 */
export function ownAddresses(
    read: () => readonly string[] = () => ownHost().addresses,
    now: () => number = () => performance.now(),
): IsOwnAddress {
    let readAt = Number.NEGATIVE_INFINITY;
    let list: string | null = null;
    let own: ReadonlySet<string> = new Set();
    return (address) => {
        if (now() - readAt > KEPT_FOR) {
            const texts = read();
            readAt = now();
            const next = texts.join();
            own = next === list ? own : new Set(texts.flatMap(comparable));
            list = next;
        }

        return own.has(address.toString());
    };
}

/** None for what is no plain address, such as one with a zone. */
function comparable(text: string): readonly string[] {
    const address = parseAddress(text);
    return address === null ? [] : [unmapped(address).toString()];
}

/** {@link ownAddresses} of this process: all guards look at one list. */
export const isOwnAddress: IsOwnAddress = ownAddresses();
