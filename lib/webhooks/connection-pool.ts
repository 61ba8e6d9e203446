import type { Connection } from './connection.ts';

/** How many connections are kept, and for how long. */
export interface ConnectionPoolOptions {
    /** Maximum number of connections per key. */
    readonly maxPerKey: number;
    /** Maximum number of idle connections of all keys together. */
    readonly maxIdle: number;
    /** Milliseconds after which a connection is not used again, so that its address is vetted anew. */
    readonly maxAge: number;
}

/** A connection for the use of one request. */
export interface Lease {
    readonly connection: Connection;
    /** Ends the lease; the connection is kept if it can serve again. */
    release(): void;
}

/** Connections that are kept open between messages. */
export interface ConnectionPool {
    /** An idle connection of this key, or what `open` opens. Waits while the key has as many as it may; rejects with the signal's reason. */
    lease(key: string, open: () => Promise<Connection>, signal: AbortSignal): Promise<Lease>;
    /** Closes idle connections, now and as they come back. */
    close(): void;
}

interface State extends ConnectionPoolOptions {
    readonly buckets: Map<string, Bucket>;
    /** Idle connections of all keys, longest idle first. */
    readonly idle: Map<Connection, Bucket>;
    closed: boolean;
}

/** The connections of one key. */
interface Bucket {
    readonly key: string;
    readonly idle: Connection[];
    leased: number;
    /** Each takes over the slot of a lease that has ended. */
    readonly waiting: Set<() => void>;
}

/** Keeps connections open between messages, apart by key; the key says who may share. */
export function connectionPool(options: ConnectionPoolOptions): ConnectionPool {
    const state: State = { ...options, buckets: new Map(), idle: new Map(), closed: false };

    return {
        async lease(key, open, signal) {
            signal.throwIfAborted();
            const bucket = bucketOf(state, key);
            if (bucket.leased < state.maxPerKey) {
                bucket.leased += 1;
            } else {
                await waitForSlot(bucket, signal);
            }

            try {
                const connection = takeIdle(state, bucket) ?? (await opened(state, open));
                return { connection, release: () => endLease(state, bucket, connection) };
            } catch (error) {
                freeSlot(state, bucket);
                throw error;
            }
        },

        close() {
            state.closed = true;
            for (const connection of [...state.idle.keys()]) {
                retire(state, connection);
            }
        },
    };
}

function bucketOf({ buckets }: State, key: string): Bucket {
    const bucket = buckets.get(key) ?? { key, idle: [], leased: 0, waiting: new Set() };
    buckets.set(key, bucket);
    return bucket;
}

/** Resolves when a lease that ends hands its slot over; rejects with the signal's reason. */
function waitForSlot({ waiting }: Bucket, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
        const settle = (act: () => void): void => {
            waiting.delete(next);
            signal.removeEventListener('abort', onAbort);
            act();
        };
        const next = (): void => settle(resolve);
        const onAbort = (): void => settle(() => reject(signal.reason));
        waiting.add(next);
        signal.addEventListener('abort', onAbort, { once: true });
    });
}

function takeIdle(state: State, bucket: Bucket): Connection | null {
    for (let connection = bucket.idle.at(-1); connection !== undefined; connection = bucket.idle.at(-1)) {
        if (isReusable(state, connection)) {
            forget(state, connection);
            return connection;
        }

        retire(state, connection);
    }

    return null;
}

async function opened(state: State, open: () => Promise<Connection>): Promise<Connection> {
    const connection = await open();
    connection.socket.once('close', () => forget(state, connection));
    return connection;
}

function endLease(state: State, bucket: Bucket, connection: Connection): void {
    if (isReusable(state, connection)) {
        keep(state, bucket, connection);
    } else {
        connection.destroy();
    }

    freeSlot(state, bucket);
}

function isReusable({ closed, maxAge }: State, { socket, openedAt }: Connection): boolean {
    return !closed && !socket.destroyed && socket.writableLength === 0 && performance.now() - openedAt < maxAge;
}

function keep(state: State, bucket: Bucket, connection: Connection): void {
    bucket.idle.push(connection);
    state.idle.set(connection, bucket);
    const [oldest] = state.idle.keys();
    if (state.idle.size > state.maxIdle && oldest !== undefined) {
        retire(state, oldest);
    }
}

function retire(state: State, connection: Connection): void {
    forget(state, connection);
    connection.destroy();
}

/** The connection is idle no longer. */
function forget(state: State, connection: Connection): void {
    const bucket = state.idle.get(connection);
    if (bucket !== undefined) {
        state.idle.delete(connection);
        bucket.idle.splice(bucket.idle.indexOf(connection), 1);
        dropIfEmpty(state, bucket);
    }
}

function freeSlot(state: State, bucket: Bucket): void {
    const [next] = bucket.waiting;
    if (next === undefined) {
        bucket.leased -= 1;
        dropIfEmpty(state, bucket);
    } else {
        next();
    }
}

function dropIfEmpty({ buckets }: State, { key, leased, idle, waiting }: Bucket): void {
    if (leased === 0 && idle.length === 0 && waiting.size === 0) {
        buckets.delete(key);
    }
}
