import type { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { connectionStream } from './connection-stream.ts';
import type { TransactionState } from './shared-session.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './thread.ts';

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

interface Connection {
    readonly stream: Duplex;
    pending: number;
    state: TransactionState;
}

/** @throws ScanwireError `MISCONFIGURED` when there is no database that can be opened. */
export async function startDatabaseThread(data: ThreadData): Promise<DatabaseThread> {
    const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: data, name: 'scanwire-database' });
    const connections = new Map<number, Connection>();
    const byStream = new WeakMap<object, Connection>();
    const idleWaiters: (() => void)[] = [];
    let failure: ScanwireError | null = null;
    let closing = false;
    let lastId = 0;
    let requested = 0;

    const opened = new Promise<void>((resolve, reject) => {
        worker.on('message', (reply: ThreadReply) => {
            if (reply === 'open') {
                resolve();
            } else if (reply !== 'closed') {
                deliver(reply);
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

    function request(message: ThreadRequest, transfer: readonly ArrayBuffer[] = []): void {
        requested += 1;
        worker.postMessage(message, transfer);
    }

    function deliver({ connection: id, bytes, state }: Exclude<ThreadReply, string>): void {
        const connection = connections.get(id);
        if (connection === undefined) {
            return;
        }

        if (state !== null) {
            connection.state = state;
            connection.pending -= 1;
        }

        connection.stream.push(Buffer.from(bytes.buffer));
        noteIdle();
    }

    function fail(cause: unknown): void {
        const why = closing ? 'The embedded database is closed' : `The embedded database has stopped: ${reason(cause)}`;
        failure ??= new ScanwireError('UNAVAILABLE', why, cause === null ? {} : { cause });
        for (const { stream } of connections.values()) {
            stream.destroy(failure);
        }

        connections.clear();
        noteIdle();
    }

    function noteIdle(): void {
        if (idleWaiters.length > 0 && ![...connections.values()].some(isBusy)) {
            for (const resolve of idleWaiters.splice(0)) {
                resolve();
            }
        }
    }

    function connect(): Duplex {
        const id = ++lastId;
        const stream = connectionStream({
            refusal: () => failure,
            send(bytes) {
                connections.set(id, connection);
                connection.pending += 1;
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
    }

    await opened;
    return {
        connect,
        busy(stream) {
            const connection = byStream.get(stream);
            return connection !== undefined && isBusy(connection);
        },
        idle: () =>
            new Promise((resolve) => {
                idleWaiters.push(resolve);
                noteIdle();
            }),
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

function isBusy({ pending, state }: Connection): boolean {
    return pending > 0 || state !== 'I';
}

function reason(cause: unknown): string {
    return cause instanceof Error ? cause.message : 'its thread has ended';
}
