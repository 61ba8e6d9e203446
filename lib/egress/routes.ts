import dgram from 'node:dgram';
import { isLoopback } from '../addresses.ts';
import { errorCode } from '../errors.ts';
import { type ConnectionCode, ConnectionFailure } from './connection-code.ts';

/*
 * Whose fault is it that there is no route? Where a machine has lost its network nobody is reached, and that is no fault of any receiver. But an address
 * may have no route for good, as one of IPv6 on a machine without it, and whoever is to be called there must not be waited for without an end. So it is
 * this machine's fault only where it has reached somebody before, and nobody since it found that it has no route to this very address: an address that stays without one
 * while others are reached is at fault itself. Who is on this machine says nothing of its network.
 */

/** What a process knows of the ways out of its machine. */
export interface Routes {
    /** A connection to this address was made. */
    reached(address: string): void;
    /** Whether a failure to connect to the address is one of this machine. Notes it. */
    isOurs(address: string, error: unknown): boolean;
}

/** A host that cannot be reached (`EHOSTUNREACH`) is none of them: a router, or a neighbour that keeps silent, says so of the receiver. */
const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'ENETDOWN']);

/** Of more addresses it is not noted that they have no route: those are at fault themselves. */
const MAX_NOTED = 4_096;

/** Knows nothing yet. */
export function knownRoutes(): Routes {
    let made = 0;
    /** By address without a route, how many connections had been made when that was found last. */
    const without = new Map<string, number>();

    return {
        reached(address) {
            made += isLoopback(address) ? 0 : 1;
            without.delete(address);
        },

        isOurs(address, error) {
            if (!NO_ROUTE.has(errorCode(error))) {
                without.delete(address);
                return false;
            }

            const before = without.get(address) ?? made;
            if (made === 0 || (without.size >= MAX_NOTED && !without.has(address))) {
                return false;
            }
            // Once found to be at fault, it stays so until it is reached.
            without.set(address, before);
            return before === made;
        },
    };
}

/** What a process knows of the ways to those who know names. */
export interface WaysOut {
    /** A name was resolved. */
    resolved(): void;
    /** The error of a look-up, or, where this machine had a way to others when a name was resolved and has none now, that fault of its own. */
    judged(error: unknown): Promise<unknown>;
}

const UNRESOLVED: ReadonlySet<string> = new Set(['dns_failed', 'dns_timeout'] satisfies readonly ConnectionCode[]);

/**
 * What a name server on this machine, or in its network, says once that is cut off does not tell whose fault it is: it fails in all kinds of ways, or keeps
 * silent. The routes of the machine tell.
 */
export function knownWaysOut(): WaysOut {
    let had: Promise<boolean> | null = null;
    return {
        resolved() {
            had ??= hasWayOut();
        },

        async judged(error) {
            if (!(error instanceof ConnectionFailure && UNRESOLVED.has(error.code)) || (await had) !== true || (await hasWayOut())) {
                return error;
            }
            return new ConnectionFailure('interrupted', `This machine has lost its network: ${error.message}`, error);
        },
    };
}

/** Name servers of the root, outside of any network of a host's own. Nothing is sent to them. */
const OUTSIDE = [
    ['udp4', '198.41.0.4'],
    ['udp6', '2001:503:ba3e::2:30'],
] as const;

async function hasWayOut(): Promise<boolean> {
    const found = await Promise.all(OUTSIDE.map(([type, address]) => hasRoute(type, address)));
    return found.includes(true);
}

/** Connecting such a socket asks for the route, and sends no packet. */
async function hasRoute(type: dgram.SocketType, address: string): Promise<boolean> {
    const socket = dgram.createSocket(type);
    const found = new Promise<boolean>((resolve) => {
        socket.once('error', () => resolve(false));
        socket.once('connect', () => resolve(true));
    });
    socket.connect(53, address);
    return await found.finally(() => socket.close());
}
