import type { Duplex } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { errorCode, ScanwireError } from '../../lib/errors.ts';
import { withoutPackage } from '../../lib/optional-packages.ts';
import { threadConnections } from './thread-connections.ts';
import type { ThreadData, ThreadReply, ThreadRequest } from './thread-main.ts';

/** The thread that the database runs in, seen from outside. */
export interface DatabaseThread {
    /** A new connection, as the socket of a node-postgres client. */
    connect(): Duplex;
    /** Whether the client at the other end of this stream, or any, has a transaction open or an answer to wait for. */
    busy(stream?: object): boolean;
    /** Resolves when no connection is busy. */
    idle(): Promise<void>;
    /** How many times anything was asked of the database. */
    requests(): number;
    /** Resolves when the thread has ended, however that came about. */
    readonly ended: Promise<void>;
    /** Lets its clock go forward to that of the machine where that is far ahead, as after a suspend; a warning of the process says so. */
    followClock(): void;
    /** Closes the database, after what it was already asked. */
    close(): Promise<void>;
}

/** How long closing waits for the statement that is running, in milliseconds. */
const PATIENCE = 10_000;

/** @throws ScanwireError `MISCONFIGURED` when there is no database that can be opened. */
export async function startDatabaseThread(data: ThreadData): Promise<DatabaseThread> {
    const worker = new Worker(new URL('./thread-main.js', import.meta.url), { workerData: data, name: 'scanwire-database' });
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
            } else if (reply !== 'closed' && 'forward' in reply) {
                warnOfForward(reply.forward);
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

        // Nobody has asked the database for anything by this.
        followClock: () => worker.postMessage('follow clock' satisfies ThreadRequest),

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

function warnOfForward(milliseconds: number): void {
    const seconds = Math.round(milliseconds / 1000);
    const message = `The clock of the embedded database went ${seconds} s forward to that of the machine, which was suspended or set: claims from before have run out`;
    process.emitWarning(message, { type: 'ScanwireWarning', code: 'SCANWIRE_CLOCK' });
}

function reason(cause: unknown): string {
    return cause instanceof Error ? cause.message : 'its thread has ended';
}
