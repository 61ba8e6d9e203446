import { machineClock } from '../../clock.ts';
import type { Connection } from './connection.ts';

/** How many idle connections are kept, and for how long. */
export interface ConnectionPoolOptions {
    /** Maximum number of idle connections of all keys together. */
    readonly maxIdle: number;
    /** Milliseconds after which a connection is not used again, so that its address is vetted again. */
    readonly maxAge: number;
}

/** A connection for the use of one request. */
export interface Lease {
    readonly connection: Connection;
    /** Ends the lease; the connection is kept if it can serve again. */
    release(): void;
}

/**
 * Connections that are kept open between messages.
 *
 * There is no limit to those in use, so nobody waits here: how many messages go to a receiver at once is decided where deliveries are
 * handed out, and a second limit would count our own waiting as the receiver's slowness.
 */
export interface ConnectionPool {
    /** The idle connection of this key that was used last, or what `connect` makes. */
    lease(key: string, connect: () => Promise<Connection>): Promise<Lease>;
    /** Closes idle connections, now and as they come back. */
    close(): void;
}

/** Keeps connections open between messages, apart by key; the key says who may share. */
export function connectionPool({ maxIdle, maxAge }: ConnectionPoolOptions): ConnectionPool {
    /** Idle connections with their keys, longest idle first. */
    const idle = new Map<Connection, string>();
    const byKey = new Map<string, Connection[]>();
    let closed = false;

    const isReusable = ({ socket, connectedAt }: Connection): boolean =>
        !closed && !socket.destroyed && socket.writableLength === 0 && machineClock.now() - connectedAt < maxAge;

    /** Takes a connection out of the idle ones. */
    function forget(connection: Connection): void {
        const key = idle.get(connection);
        const sameKey = key === undefined ? undefined : byKey.get(key);
        if (key !== undefined && sameKey !== undefined) {
            idle.delete(connection);
            sameKey.splice(sameKey.lastIndexOf(connection), 1);
            if (sameKey.length === 0) {
                byKey.delete(key);
            }
        }
    }

    function retire(connection: Connection): void {
        forget(connection);
        connection.destroy();
    }

    function takeIdle(key: string): Connection | null {
        for (let connection = byKey.get(key)?.at(-1); connection !== undefined; connection = byKey.get(key)?.at(-1)) {
            if (isReusable(connection)) {
                forget(connection);
                return connection;
            }
            retire(connection);
        }
        return null;
    }

    async function connected(connect: () => Promise<Connection>): Promise<Connection> {
        const connection = await connect();
        connection.socket.once('close', () => forget(connection));
        return connection;
    }

    function release(key: string, connection: Connection): void {
        if (!isReusable(connection)) {
            connection.destroy();
            return;
        }

        const sameKey = byKey.get(key) ?? [];
        sameKey.push(connection);
        byKey.set(key, sameKey);
        idle.set(connection, key);
        const [oldest] = idle.keys();
        if (idle.size > maxIdle && oldest !== undefined) {
            retire(oldest);
        }
    }

    return {
        async lease(key, connect) {
            const connection = takeIdle(key) ?? (await connected(connect));
            return { connection, release: () => release(key, connection) };
        },

        close() {
            closed = true;
            for (const connection of [...idle.keys()]) {
                retire(connection);
            }
        },
    };
}
