import { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { ScanwireError } from '../../lib/errors.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './thread.ts';
import type { TransactionState } from './wire.ts';

/** The thread that the database runs in, seen from outside. */
export interface DatabaseThread {
    /** A new connection, as the socket of a node-postgres client. */
    connect(): Duplex;
    /** Whether the client at the other end of this stream has a transaction open or an answer to wait for. */
    busy(stream: object): boolean;
    /** Resolves when no connection is busy. */
    idle(): Promise<void>;
    /** How many times anything was asked of the database. */
    requests(): number;
    /** Resolves when the thread has ended, however that came about. */
    readonly ended: Promise<void>;
    /** Closes the database, after what it was already asked. */
    close(): Promise<void>;
}

/** How long closing waits for the statement that is running, in milliseconds. */
const PATIENCE = 10_000;

/** @throws ScanwireError `MISCONFIGURED` when there is no database that can be opened. */
export async function startDatabaseThread(data: ThreadData): Promise<DatabaseThread> {
    const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: data, name: 'scanwire-database' });
    const connections = threadConnections(request);
    let closing = false;
    let requested = 0;

    function request(message: ThreadRequest, transfer: readonly ArrayBuffer[] = []): void {
        requested += 1;
        worker.postMessage(message, transfer);
    }

    function fail(cause: unknown): void {
        const why = closing ? 'The embedded database is closed' : `The embedded database has stopped: ${reason(cause)}`;
        connections.fail(new ScanwireError('UNAVAILABLE', why, cause === null ? {} : { cause }));
    }

    const opened = new Promise<void>((resolve, reject) => {
        worker.on('message', (reply: ThreadReply) => {
            if (reply === 'open') {
                resolve();
            } else if (reply !== 'closed') {
                connections.deliver(reply);
            }
        });
        worker.on('error', (cause) => {
            fail(cause);
            reject(new ScanwireError('MISCONFIGURED', `Cannot open the embedded database: ${reason(cause)}`, { cause }));
        });
    });
    const ended = new Promise<void>((resolve) => {
        worker.on('exit', () => {
            fail(null);
            resolve();
        });
    });

    await opened;
    return {
        connect: connections.connect,
        busy: connections.busy,
        idle: connections.idle,
        requests: () => requested,
        ended,

        async close() {
            closing = true;
            request('close');
            // A statement cannot be interrupted; ending the thread in its midst is as safe as ending the process.
            const timer = setTimeout(() => void worker.terminate(), PATIENCE);
            await ended;
            clearTimeout(timer);
        },
    };
}

function reason(cause: unknown): string {
    return cause instanceof Error ? cause.message : 'its thread has ended';
}

interface ThreadConnections extends Pick<DatabaseThread, 'connect' | 'busy' | 'idle'> {
    deliver(reply: Exclude<ThreadReply, string>): void;
    /** Breaks every connection, those still to be made included. Only the first failure counts. */
    fail(failure: Error): void;
}

interface Connection {
    readonly stream: Duplex;
    /** Bytes that were sent and not answered. */
    pending: number;
    state: TransactionState;
}

/** The connections to the thread; `request` passes on what they send. */
function threadConnections(request: (message: ThreadRequest, transfer?: readonly ArrayBuffer[]) => void): ThreadConnections {
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
        connect() {
            const id = ++lastId;
            const stream = connectionStream({
                refusal: () => failure,
                send(bytes) {
                    connections.set(id, connection);
                    connection.pending += bytes.length;
                    const own = new Uint8Array(bytes);
                    request({ connection: id, bytes: own }, [own.buffer]);
                },
                leave() {
                    if (connections.delete(id)) {
                        request({ connection: id, bytes: null });
                        noteIdle();
                    }
                },
            });
            const connection: Connection = { stream, pending: 0, state: 'I' };
            byStream.set(stream, connection);
            return stream;
        },

        busy(stream) {
            const connection = byStream.get(stream);
            return connection !== undefined && isBusy(connection);
        },

        idle: () =>
            new Promise((resolve) => {
                idleWaiters.push(resolve);
                noteIdle();
            }),

        deliver({ connection: id, bytes, answered }) {
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

        fail(error) {
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

interface ConnectionStreamOptions {
    send(bytes: Buffer): void;
    /** Called when the connection has ended or broken. */
    leave(): void;
    /** Why no connection can be made; null while one can. */
    refusal(): Error | null;
}

/** What node-postgres calls on a socket beyond what every stream has. */
interface SocketLike {
    connect(): void;
    setNoDelay(): void;
    setKeepAlive(): void;
    ref(): void;
    unref(): void;
}

/** Looks to a node-postgres client like its socket to a server; the server is wherever `send` leads. */
function connectionStream({ send, leave, refusal }: ConnectionStreamOptions): Duplex & SocketLike {
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
