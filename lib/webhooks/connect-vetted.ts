import net, { isIP } from 'node:net';
import { AttemptFailure } from './attempt-failure.ts';
import { type AttemptTrace, attemptTrace } from './attempt-trace.ts';
import type { EgressGuard } from './egress-guard.ts';
import { parseAddress, unmapped } from './ip-address.ts';
import { codeOfError } from './outcome-code.ts';
import { type Lookup, resolver } from './resolver.ts';
import { settledWithin } from './settled-within.ts';

/** Of a name with more addresses only so many are tried, both families in turn. */
const MAX_TRIED = 4;

export interface ConnectorOptions {
    readonly guard: EgressGuard;
    /** Stands in for `dns.lookup`. */
    readonly lookup?: Lookup;
    /** Milliseconds, 5,000 by default. */
    readonly dnsTimeout?: number;
    /** Milliseconds for all addresses together, 5,000 by default. */
    readonly connectTimeout?: number;
}

export interface ConnectTarget {
    /** A name or an address, without brackets. */
    readonly host: string;
    readonly port: number;
    readonly signal: AbortSignal;
    /** Receives the address and the times of `dns` and `connect`. */
    readonly trace?: AttemptTrace;
}

/** A connected socket with an error listener, so that it can break at any time. @throws AttemptFailure, or the signal's reason. */
export type ConnectVetted = (target: ConnectTarget) => Promise<net.Socket>;

/**
 * The one way out for every outgoing connection: resolves the name once, vets every address of the answer (one forbidden address
 * refuses them all), connects to a vetted address and makes sure that this is where the socket went. No proxy is used.
 */
export function connectVetted({ guard, lookup, dnsTimeout = 5000, connectTimeout = 5000 }: ConnectorOptions): ConnectVetted {
    const resolve = resolver({ timeout: dnsTimeout, ...(lookup && { lookup }) });

    return async ({ host, port, signal, trace = attemptTrace() }) => {
        signal.throwIfAborted();
        assertOpen(`${host} is`, guard.vetHost(host, port));
        const addresses = isIP(host) === 0 ? await timed(resolve(host, signal), trace) : [host];
        for (const address of addresses) {
            assertOpen(`${host} resolves to`, guard.vet(address, host, port));
        }

        const startedAt = performance.now();
        try {
            return await connectToFirst(inTurn(addresses), { port, signal, trace, deadline: startedAt + connectTimeout });
        } finally {
            trace.connect = performance.now() - startedAt;
        }
    };
}

function assertOpen(what: string, refusal: string | null): void {
    if (refusal !== null) {
        throw new AttemptFailure('address_blocked', `${what} ${refusal}, which may not be called`);
    }
}

async function timed(answer: Promise<readonly string[]>, trace: AttemptTrace): Promise<readonly string[]> {
    const startedAt = performance.now();
    try {
        return await answer;
    } finally {
        trace.dns = performance.now() - startedAt;
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

interface Way {
    readonly port: number;
    readonly signal: AbortSignal;
    readonly trace: AttemptTrace;
    readonly deadline: number;
}

async function connectToFirst(addresses: readonly string[], { port, signal, trace, deadline }: Way): Promise<net.Socket> {
    let failure: unknown = new AttemptFailure('dns_not_found', 'no address to connect to');
    for (const [index, address] of addresses.entries()) {
        const share = Math.max(1, (deadline - performance.now()) / (addresses.length - index));
        trace.address = address;
        try {
            return await connectTo(address, port, share, signal);
        } catch (error) {
            signal.throwIfAborted();
            failure = error;
        }
    }

    throw failure;
}

async function connectTo(address: string, port: number, timeout: number, signal: AbortSignal): Promise<net.Socket> {
    const where = `${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
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
    const late = new AttemptFailure('connect_timeout', `connect to ${where} timed out`);
    try {
        await settledWithin(connected, { timeout, late, signal });
        if (!sameAddress(socket.remoteAddress, address)) {
            throw new AttemptFailure('address_blocked', `the connection to ${where} went to another address`);
        }

        return socket;
    } catch (error) {
        socket.destroy();
        throw error instanceof AttemptFailure || signal.aborted ? error : refusedBy(where, error);
    }
}

function refusedBy(where: string, error: unknown): AttemptFailure {
    const code = codeOfError(error, 'connect');
    return new AttemptFailure(code, `connect to ${where} ${code === 'connect_refused' ? 'refused' : 'failed'}`, error);
}

/** In any spelling; an address that was mapped into IPv6 on the way counts as the IPv4 address it is. */
function sameAddress(one: string | undefined, other: string): boolean {
    const [left, right] = [parseAddress(one ?? ''), parseAddress(other)];
    return left !== null && right !== null && unmapped(left).toString() === unmapped(right).toString();
}
