import { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { errorCode, ScanwireError, withoutPackage } from '../../lib/errors.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './thread-main.ts';
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
    /** The data directory as a tar file, while others go on. */
    dump(): Promise<Uint8Array>;
    /** Closes the database, after what it was already asked. */
    close(): Promise<void>;
}

/** How long closing waits for the statement that is running, in milliseconds. */
const PATIENCE = 10_000;

/** @throws ScanwireError `MISCONFIGURED` when there is no database that can be opened. */
export async function startDatabaseThread(data: ThreadData): Promise<DatabaseThread> {
    const worker = new Worker(new URL('./thread-main.js', import.meta.url), { workerData: data, name: 'scanwire-database' });
    const connections = threadConnections(request);
    const dumps: ((dumped: Uint8Array | string) => void)[] = [];
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
            } else if (reply !== 'closed' && 'dumped' in reply) {
                dumps.shift()?.(reply.dumped);
            } else if (reply !== 'closed') {
                connections.deliver(reply);
            }
        });
        worker.on('error', (cause) => {
            fail(cause);
            // The thread imports nothing else that may be missing.
            const missing = errorCode(cause) === 'ERR_MODULE_NOT_FOUND';
            reject(
                missing
                    ? withoutPackage('@electric-sql/pglite', 'The embedded database', cause)
                    : new ScanwireError('MISCONFIGURED', `Cannot open the embedded database: ${reason(cause)}`, { cause }),
            );
        });
    });
    const ended = new Promise<void>((resolve) => {
        worker.on('exit', () => {
            fail(null);
            for (const done of dumps.splice(0)) {
                done('its thread has ended');
            }
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

        async dump() {
            const dumped = await new Promise<Uint8Array | string>((resolve) => {
                dumps.push(resolve);
                request('dump');
            });
            if (typeof dumped === 'string') {
                throw new ScanwireError('UNAVAILABLE', `Cannot dump the embedded database: ${dumped}`);
            }
            return dumped;
        },

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

interface Connection {
    readonly stream: Duplex;
    /** Bytes that were sent and not answered. */
    pending: number;
    state: TransactionState;
}

/** The connections to the thread; `request` passes on what they send. */
function threadConnections(request: (message: ThreadRequest, transfer?: readonly ArrayBuffer[]) => void) {
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

        busy(stream: object): boolean {
            const connection = byStream.get(stream);
            return connection !== undefined && isBusy(connection);
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

        /** Breaks every connection, those still to be made included. Only the first failure counts. */
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
