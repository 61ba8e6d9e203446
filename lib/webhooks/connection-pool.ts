import type { Connection } from './connection.ts';

export interface ConnectionPoolOptions {
    /** Most connections of one key at once. */
    readonly perKey: number;
    /** Most idle connections of all keys together. */
    readonly maxIdle: number;
    /** Milliseconds after which a connection is not used again, so that its address is vetted anew. */
    readonly maxAge: number;
}

export interface Lease {
    readonly connection: Connection;
    /** Gives the place back, and the connection too if it can serve again. */
    release(): void;
}

export interface ConnectionPool {
    /** An idle connection of this key, or what `open` opens. Waits while the key has as many as it may. */
    lease(key: string, open: () => Promise<Connection>, signal: AbortSignal): Promise<Lease>;
    /** Closes idle connections, now and as they come back. */
    close(): void;
}

interface Place {
    readonly idle: Connection[];
    leased: number;
    readonly waiting: Set<() => void>;
}

/** Keeps connections open between messages, apart by key; the key says who may share. */
export function connectionPool({ perKey, maxIdle, maxAge }: ConnectionPoolOptions): ConnectionPool {
    const places = new Map<string, Place>();
    /** Idle connections of all keys, longest idle first. */
    const idle = new Map<Connection, string>();
    let closed = false;

    const forget = (connection: Connection): void => {
        const key = idle.get(connection);
        const place = key === undefined ? undefined : places.get(key);
        if (key === undefined || place === undefined) {
            return;
        }

        idle.delete(connection);
        place.idle.splice(place.idle.indexOf(connection), 1);
        dropIfEmpty(key, place);
    };

    const dropIfEmpty = (key: string, place: Place): void => {
        if (place.leased === 0 && place.idle.length === 0 && place.waiting.size === 0) {
            places.delete(key);
        }
    };

    const retire = (connection: Connection): void => {
        forget(connection);
        connection.destroy();
    };

    const reusable = ({ socket, openedAt }: Connection): boolean =>
        !closed && !socket.destroyed && socket.writableLength === 0 && performance.now() - openedAt < maxAge;

    const takeIdle = (place: Place): Connection | null => {
        for (let connection = place.idle.at(-1); connection !== undefined; connection = place.idle.at(-1)) {
            if (reusable(connection)) {
                forget(connection);
                return connection;
            }

            retire(connection);
        }

        return null;
    };

    const keep = (key: string, place: Place, connection: Connection): void => {
        place.idle.push(connection);
        idle.set(connection, key);
        const [oldest] = idle.keys();
        if (idle.size > maxIdle && oldest !== undefined) {
            retire(oldest);
        }
    };

    const opened = async (open: () => Promise<Connection>): Promise<Connection> => {
        const connection = await open();
        connection.socket.once('close', () => forget(connection));
        return connection;
    };

    const placeOf = (key: string): Place => {
        const place = places.get(key) ?? { idle: [], leased: 0, waiting: new Set() };
        places.set(key, place);
        return place;
    };

    const giveBack = (key: string, place: Place): void => {
        const [next] = place.waiting;
        if (next === undefined) {
            place.leased -= 1;
            dropIfEmpty(key, place);
        } else {
            next();
        }
    };

    return {
        async lease(key, open, signal) {
            signal.throwIfAborted();
            const place = placeOf(key);
            if (place.leased < perKey) {
                place.leased += 1;
            } else {
                await turn(place, signal);
            }

            try {
                const connection = takeIdle(place) ?? (await opened(open));
                return {
                    connection,
                    release() {
                        if (reusable(connection)) {
                            keep(key, place, connection);
                        } else {
                            connection.destroy();
                        }

                        giveBack(key, place);
                    },
                };
            } catch (error) {
                giveBack(key, place);
                throw error;
            }
        },

        close() {
            closed = true;
            for (const connection of [...idle.keys()]) {
                retire(connection);
            }
        },
    };
}

/** Resolves when a lease that ends hands its place over; rejects with the signal's reason. */
function turn({ waiting }: Place, signal: AbortSignal): Promise<void> {
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
