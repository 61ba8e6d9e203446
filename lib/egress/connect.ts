import net, { isIP } from 'node:net';
import { sameAddress, withBrackets } from '../addresses.ts';
import { within } from '../within.ts';
import { ConnectionFailure, connectionCode } from './connection-code.ts';
import type { EgressGuard } from './guard.ts';
import { nameResolver, type ResolverOptions } from './resolver.ts';

/** Of a name with more addresses only so many are tried, both families in turn. */
const MAX_TRIED = 4;

/** Who may be called, and how long it may take. */
export interface ConnectorOptions extends Pick<ResolverOptions, 'resolver' | 'lookup' | 'nameServers'> {
    readonly guard: EgressGuard;
    /** Milliseconds in which a name must be resolved. */
    readonly dnsTimeout: number;
    /** Milliseconds for all addresses together. */
    readonly connectTimeout: number;
    /** Names looked up at the same time, 64 by default; beyond it a connection fails as `interrupted`. */
    readonly maxLookups?: number;
}

/** What is learned on the way, kept apart from the result so that a failed attempt still tells how far it came. Times in milliseconds. */
export interface ConnectionProgress {
    /** The last one tried. */
    address: string | null;
    dns: number | null;
    connect: number | null;
}

/** Where one connection goes. */
export interface ConnectTarget {
    /** A name or an address, without brackets. */
    readonly host: string;
    readonly port: number;
    readonly signal: AbortSignal;
    readonly progress: ConnectionProgress;
}

/** A connected socket with an error listener, so that it can break at any time. @throws ConnectionFailure, or the signal's reason. */
export type ConnectVetted = (target: ConnectTarget) => Promise<net.Socket>;

/**
 * The one way out for every outgoing connection: resolves the name once, vets every address that it has (one forbidden
 * address refuses them all), connects to a vetted address and makes sure that this is where the socket went. No proxy is used.
 */
export function connectVetted(options: ConnectorOptions): ConnectVetted {
    const { guard, connectTimeout, resolver, lookup, nameServers, dnsTimeout, maxLookups = 64 } = options;
    const resolve = nameResolver({ resolver, lookup, nameServers, timeout: dnsTimeout, maxPending: maxLookups });

    return async (target) => {
        const { host, port, signal, progress } = target;
        signal.throwIfAborted();
        assertOpen(`${host} is`, guard.vetHost(host, port));
        const addresses = isIP(host) === 0 ? await timed(progress, 'dns', resolve(host, signal)) : [host];
        for (const address of addresses) {
            assertOpen(`${host} resolves to`, guard.vet(address, host, port));
        }

        return await timed(progress, 'connect', connectToFirst(inTurn(addresses), target, connectTimeout));
    };
}

function assertOpen(what: string, refusal: string | null): void {
    if (refusal !== null) {
        throw new ConnectionFailure('address_blocked', `${what} ${refusal}, which may not be called`);
    }
}

/** Notes how long a phase takes, also one that fails. */
async function timed<T>(progress: ConnectionProgress, phase: 'dns' | 'connect', result: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
        return await result;
    } finally {
        progress[phase] = performance.now() - startedAt;
    }
}

/** The first few addresses, the families in turn, so that a broken IPv6 path leaves room for IPv4 and the other way round. */
function inTurn(addresses: readonly string[]): readonly string[] {
    const family = isIP(addresses[0] ?? '');
    const first = addresses.filter((address) => isIP(address) === family);
    const second = addresses.filter((address) => isIP(address) !== family);
    return first
        .flatMap((address, index) => [address, second[index]])
        .concat(second.slice(first.length))
        .filter((address) => address !== undefined)
        .slice(0, MAX_TRIED);
}

async function connectToFirst(
    addresses: readonly string[],
    { port, signal, progress }: ConnectTarget,
    timeout: number,
): Promise<net.Socket> {
    const deadline = performance.now() + timeout;
    let failure: unknown = null;
    for (const [index, address] of addresses.entries()) {
        const share = Math.max(1, (deadline - performance.now()) / (addresses.length - index));
        progress.address = address;
        try {
            return await connectTo(address, port, share, signal);
        } catch (error) {
            signal.throwIfAborted();
            failure = error;
        }
    }

    throw failure ?? new ConnectionFailure('dns_not_found', 'The host has no address');
}

async function connectTo(address: string, port: number, timeout: number, signal: AbortSignal): Promise<net.Socket> {
    const where = `${withBrackets(address)}:${port}`;
    const socket = net.connect({
        host: address,
        port,
        autoSelectFamily: false,
        noDelay: true,
        keepAlive: true,
        keepAliveInitialDelay: 60_000,
    });
    const connected = new Promise<void>((resolve, reject) => {
        socket.once('connect', resolve);
        socket.on('error', reject);
    });
    const late = (): ConnectionFailure => new ConnectionFailure('connect_timeout', `The connection to ${where} timed out`);
    try {
        await within(connected, { timeout, late, signal });
        if (!sameAddress(socket.remoteAddress, address)) {
            throw new ConnectionFailure('address_blocked', `The connection to ${where} went to another address`);
        }

        return socket;
    } catch (error) {
        socket.destroy();
        throw error instanceof ConnectionFailure || signal.aborted ? error : refusedBy(where, error);
    }
}

function refusedBy(where: string, error: unknown): ConnectionFailure {
    const code = connectionCode(error, 'connect_failed');
    return new ConnectionFailure(code, `The connection to ${where} ${code === 'connect_refused' ? 'was refused' : 'failed'}`, error);
}
