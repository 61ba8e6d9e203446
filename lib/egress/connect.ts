import net, { isIP } from 'node:net';
import { sameAddress, withBrackets } from '../addresses.ts';
import { within } from '../within.ts';
import { ConnectionFailure, connectionCode, lateBy } from './connection-code.ts';
import { type EgressGuard, guardFor } from './guard.ts';
import { type EgressProxy, ProxyFailure, tunnel } from './proxy.ts';
import { nameResolver, type ResolverOptions } from './resolver.ts';
import { knownRoutes, type Routes } from './routes.ts';

/** Of a name with more addresses only so many are tried, both families in turn. */
const MAX_TRIED = 4;

/** Who may be called, and how long it may take. */
export interface ConnectorOptions extends Pick<ResolverOptions, 'resolver' | 'lookup' | 'nameServers'> {
    readonly guard: EgressGuard;
    /** Milliseconds in which a name must be resolved. */
    readonly dnsTimeout: number;
    /** Milliseconds for all addresses together. */
    readonly connectTimeout: number;
    /**
     * Names looked up at the same time; beyond it a connection fails as `interrupted`. By default 1,024, more than there are slots for receivers
     * that are slow, and 64 where each may hold a thread of the process.
     */
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
    /** Through which the connection is to go; straight when absent. */
    readonly proxy?: EgressProxy | null;
    /** For whose exporter, which decides what may be called; the deployment's when absent. */
    readonly owner?: string | null;
}

/** A connected socket with an error listener, so that it can break at any time. @throws ConnectionFailure, ProxyFailure, or the signal's reason. */
export type ConnectVetted = (target: ConnectTarget) => Promise<net.Socket>;

/**
 * The one way out for every outgoing connection: resolves the name once, vets every address that it has (one forbidden
 * address refuses them all), connects to a vetted address and makes sure that this is where the socket went. A proxy is vetted in the same way,
 * and told the vetted address, unless it has to resolve names.
 */
export function connectVetted(options: ConnectorOptions): ConnectVetted {
    const { connectTimeout, resolver, lookup, nameServers, dnsTimeout } = options;
    const maxLookups = options.maxLookups ?? (resolver === 'system' || lookup !== undefined ? 64 : 1024);
    const resolve = nameResolver({ resolver, lookup, nameServers, timeout: dnsTimeout, maxPending: maxLookups });
    const routes = knownRoutes();

    async function vetted({ host, port, signal, progress, proxy, owner = null }: ConnectTarget): Promise<readonly string[]> {
        signal.throwIfAborted();
        const guard = guardFor(options.guard, owner);
        assertOpen(`${host} is`, guard.vetHost(host, port));
        if (proxy?.resolvesNames === true && isIP(host) === 0) {
            return [host];
        }

        const addresses = isIP(host) === 0 ? await timed(progress, 'dns', resolve(host, signal)) : [host];
        for (const address of addresses) {
            assertOpen(`${host} resolves to`, guard.vet(address, host, port));
        }

        return inTurn(addresses);
    }

    async function straight(target: ConnectTarget): Promise<net.Socket> {
        const addresses = await vetted(target);
        return await timed(target.progress, 'connect', connectToFirst(addresses, target, { timeout: connectTimeout, routes }));
    }

    /** In turn until the proxy gets through to one. */
    async function tunnelToFirst(
        hosts: readonly string[],
        { port, signal, progress, owner = null }: ConnectTarget,
        proxy: EgressProxy,
    ): Promise<net.Socket> {
        const toProxy = (host: string, proxyPort: number): Promise<net.Socket> =>
            straight({ host, port: proxyPort, signal, progress: { address: null, dns: null, connect: null }, owner });
        let failure: unknown = null;
        for (const host of hosts) {
            progress.address = isIP(host) === 0 ? null : host;
            try {
                return await tunnel({ proxy, connect: toProxy, host, port, timeout: connectTimeout, signal });
            } catch (error) {
                failure = error;
                if (!(error instanceof ProxyFailure && error.elsewhere)) {
                    break;
                }
            }
        }

        throw failure;
    }

    return async (target) => {
        const { proxy, progress } = target;
        return proxy == null
            ? await straight(target)
            : await timed(progress, 'connect', tunnelToFirst(await vetted(target), target, proxy));
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
    { timeout, routes }: { readonly timeout: number; readonly routes: Routes },
): Promise<net.Socket> {
    const deadline = performance.now() + timeout;
    let failure: unknown = null;
    for (const [index, address] of addresses.entries()) {
        const share = Math.max(1, (deadline - performance.now()) / (addresses.length - index));
        progress.address = address;
        try {
            const socket = await connectTo(address, port, share, signal);
            routes.reached(address);
            return socket;
        } catch (error) {
            signal.throwIfAborted();
            const isOurs = routes.isOurs(address, (error as Error).cause);
            // What another address has answered says more.
            failure = isOurs ? (failure ?? noRoute(address, error)) : error;
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
    const late = (by: number): Error => lateBy(by, new ConnectionFailure('connect_timeout', `The connection to ${where} timed out`));
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

function noRoute(address: string, error: unknown): ConnectionFailure {
    return new ConnectionFailure('interrupted', `This machine has no route to ${withBrackets(address)}, nor to anybody else`, error);
}

function refusedBy(where: string, error: unknown): ConnectionFailure {
    const code = connectionCode(error, 'connect_failed');
    return new ConnectionFailure(code, `The connection to ${where} ${code === 'connect_refused' ? 'was refused' : 'failed'}`, error);
}
