import dns from 'node:dns';
import { connectionCode } from './connection-code.ts';
import { ConnectionFailure } from './connection-failure.ts';
import { settledWithin } from './settled-within.ts';

/** The part of `dns.lookup` that is used. */
export type Lookup = (
    hostname: string,
    options: { readonly all: true; readonly order: 'verbatim' },
    callback: (error: NodeJS.ErrnoException | null, addresses: readonly { readonly address: string }[]) => void,
) => void;

export interface ResolverOptions {
    readonly lookup?: Lookup;
    /** Milliseconds in which a name must be resolved. */
    readonly timeout: number;
    /** Most names looked up at once. */
    readonly maxPending: number;
}

/** Addresses of a name, in the resolver's order, at least one. @throws ConnectionFailure */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Resolves names within a time limit of its own. The system's resolver cannot be called off, so a lookup that hangs goes on in
 * the background: whoever asks for the same name meanwhile shares it, and there is an end to how many names hang at once.
 */
export function resolver({ lookup = dns.lookup, timeout, maxPending }: ResolverOptions): Resolve {
    const pending = new Map<string, Promise<readonly string[]>>();

    const start = (hostname: string): Promise<readonly string[]> => {
        if (pending.size >= maxPending) {
            throw new ConnectionFailure('interrupted', 'too many host names are being resolved at once');
        }

        const answer = lookUp(lookup, hostname).finally(() => pending.delete(hostname));
        pending.set(hostname, answer);
        return answer;
    };

    return async (hostname, signal) => {
        const answer = pending.get(hostname) ?? start(hostname);
        const late = (): ConnectionFailure => new ConnectionFailure('dns_timeout', `resolving ${hostname} took longer than ${timeout} ms`);
        return settledWithin(answer, { timeout, late, signal });
    };
}

async function lookUp(lookup: Lookup, hostname: string): Promise<readonly string[]> {
    const found = await new Promise<readonly { readonly address: string }[]>((resolve, reject) => {
        lookup(hostname, { all: true, order: 'verbatim' }, (error, addresses) => {
            if (error === null || error === undefined) {
                resolve(addresses);
            } else {
                reject(error);
            }
        });
    }).catch((error: unknown) => {
        const code = connectionCode(error, 'dns_failed');
        throw new ConnectionFailure(code, `${hostname} ${code === 'dns_not_found' ? 'does not exist' : 'could not be resolved'}`, error);
    });
    const addresses = Array.isArray(found) ? [...new Set(found.map(({ address }) => address))] : [];
    if (addresses.length === 0) {
        throw new ConnectionFailure('dns_not_found', `${hostname} has no address`);
    }

    return addresses;
}
