import { Duplex } from 'node:stream';
import type { DatabaseThread } from './database-thread.ts';
import type { ThreadReply, ThreadRequest } from './thread-main.ts';
import type { TransactionState } from './wire.ts';

interface Connection {
    readonly stream: Duplex;
    /** Bytes that were sent and not answered. */
    pending: number;
    state: TransactionState;
}

/** The connections of node-postgres clients to the thread. */
export interface ThreadConnections extends Pick<DatabaseThread, 'connect' | 'busy' | 'idle'> {
    /** Hands on what the thread has answered. */
    deliver(answer: Extract<ThreadReply, { connection: number }>): void;
    /** Breaks every connection, those still to be made included. Only the first failure counts. */
    fail(error: Error): void;
}

/** @param request Passes on what the connections send. */
export function threadConnections(request: (message: ThreadRequest, transfer?: readonly ArrayBuffer[]) => void): ThreadConnections {
    const connections = new Map<number, Connection>();
    const byStream = new WeakMap<object, Connection>();
    const idleWaiters: (() => void)[] = [];
    let failure: Error | null = null;
    let lastId = 0;

    function noteIdle(): void {
        if (idleWaiters.length > 0 && ![...connections.values()].some(isBusy)) {
            for (const resolve of idleWaiters.splice(0)) {
                resolve();
            }
        }
    }

    return {
        connect(): Duplex {
            const id = ++lastId;
            const send = (bytes: Buffer): void => {
                connections.set(id, connection);
                connection.pending += bytes.length;
                const own = new Uint8Array(bytes);
                request({ connection: id, bytes: own }, [own.buffer]);
            };
            const leave = (): void => {
                if (connections.delete(id)) {
                    request({ connection: id, bytes: null });
                    noteIdle();
                }
            };
            const stream = connectionStream(send, leave, () => failure);
            const connection: Connection = { stream, pending: 0, state: 'I' };
            byStream.set(stream, connection);
            return stream;
        },

        busy(stream?: object): boolean {
            const connection = stream && byStream.get(stream);
            return stream === undefined ? [...connections.values()].some(isBusy) : connection !== undefined && isBusy(connection);
        },

        idle: () =>
            new Promise<void>((resolve) => {
                idleWaiters.push(resolve);
                noteIdle();
            }),

        deliver({ connection: id, bytes, answered }: Extract<ThreadReply, { connection: number }>): void {
            const connection = connections.get(id);
            if (connection === undefined) {
                return;
            }

            if (answered !== null) {
                connection.state = answered.state;
                connection.pending -= answered.bytes;
            }

            connection.stream.push(Buffer.from(bytes.buffer));
            noteIdle();
        },

        fail(error: Error): void {
            failure ??= error;
            for (const { stream } of connections.values()) {
                stream.destroy(failure);
            }

            connections.clear();
            noteIdle();
        },
    };
}

function isBusy({ pending, state }: Connection): boolean {
    return pending > 0 || state !== 'I';
}

/**
 * Looks to a node-postgres client like its socket to a server; the server is wherever `send` leads.
 *
 * @param leave Called when the connection has ended or broken.
 * @param refusal Why no connection can be made; null while one can.
 */
function connectionStream(send: (bytes: Buffer) => void, leave: () => void, refusal: () => Error | null): Duplex {
    const stream = new Duplex({
        read() {
            // What arrives is pushed; it is in memory already.
        },
        write(bytes: Buffer, _encoding, done) {
            send(bytes);
            done();
        },
        writev(chunks, done) {
            send(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)));
            done();
        },
        final(done) {
            leave();
            stream.push(null);
            done();
        },
        destroy(error, done) {
            leave();
            done(error);
        },
    });

    // What node-postgres calls on a socket beyond what every stream has.
    return Object.assign(stream, {
        connect() {
            const refused = refusal();
            process.nextTick(() => (refused === null ? stream.emit('connect') : stream.destroy(refused)));
        },
        setNoDelay() {},
        setKeepAlive() {},
        ref() {},
        unref() {},
    });
}
