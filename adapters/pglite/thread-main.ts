import { type MessagePort, parentPort, receiveMessageOnPort, type Transferable, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { machineClock } from '../../lib/clock.ts';
import { databaseClock } from './database-clock.ts';
import { givingWay } from './giving-way.ts';
import { type Answered, type SharedSession, sharedSession } from './shared-session.ts';
import { readTemplate } from './template.ts';

/** What the thread is started with. */
export interface ThreadData {
    /** Where the database lives; null for one in memory. */
    readonly dataDir: string | null;
    /** A data directory to begin with, where there is none yet; null to make one. */
    readonly template: string | null;
}

/** What is asked of the thread. Without bytes: the connection is gone. */
export type ThreadRequest = { readonly connection: number; readonly bytes: Uint8Array | null } | 'follow clock' | 'close';

/** What the thread says: by how many milliseconds its clock has gone forward to that of the machine, that the database is open, what a connection is sent (an answer, or a notification with null), that all is closed. */
export type ThreadReply =
    | { readonly connection: number; readonly bytes: Uint8Array; readonly answered: Answered | null }
    | { readonly forward: number }
    | 'open'
    | 'closed';

/**
 * Small buffers: what a server of many sessions needs is wasted on one, and half of the memory is saved. So is disk for old log. A new file of that is
 * not filled with zeros, 16 MB at once in the midst of somebody's statement (measured: 0.05 to 0.2 s of processor time), which helps against a power cut only. A
 * tenth of the usual sample says enough of a table, and 'analyze', which stops everybody, takes a tenth of the time.
 */
const SETTINGS = [
    'shared_buffers=16MB',
    'wal_buffers=1MB',
    'wal_init_zero=off',
    'max_connections=10',
    'min_wal_size=32MB',
    'max_wal_size=64MB',
    'default_statistics_target=10',
];

/** PostgreSQL's clock is that of this thread: a clock of the machine that is set back moves no due time and no claim. */
const clock = databaseClock(Date.now, machineClock.now);
Date.now = clock.now;

if (parentPort !== null) {
    await serve(parentPort, workerData as ThreadData);
}

async function serve(port: MessagePort, data: ThreadData): Promise<void> {
    const database = await open(data);
    const cutOff = givingWay(database, { look: () => takeAll() || session.waits(), now: () => performance.now() });
    let closes = false;
    const session: SharedSession = await sharedSession({
        async execute(bytes, { givesWay } = { givesWay: false }) {
            const chunks: Uint8Array[] = [];
            const run = () => execute(database, bytes, (chunk) => chunks.push(chunk.slice()));
            await (givesWay ? cutOff(run) : run());
            return Buffer.concat(chunks);
        },
        send(connection, bytes, answered) {
            const [own, transfer] = transferable(bytes);
            port.postMessage({ connection, bytes: own, answered } satisfies ThreadReply, transfer);
        },
    });

    function take(request: ThreadRequest): void {
        if (request === 'close') {
            closes = true;
            void close(port, database, session);
        } else if (request === 'follow clock') {
            follow(port);
        } else if (request.bytes === null) {
            session.leave(request.connection);
        } else {
            session.receive(request.connection, Buffer.from(request.bytes.buffer));
        }
    }

    /** Takes what was asked while a statement runs, which no event says meanwhile. @returns Whether the database is to be closed. */
    function takeAll(): boolean {
        for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
            take(next.message);
        }
        return closes;
    }

    port.on('message', take);
    port.postMessage('open' satisfies ThreadReply);
}

async function open({ dataDir, template }: ThreadData): Promise<PGlite> {
    return await PGlite.create({
        postgresqlconf: SETTINGS,
        ...(dataDir === null ? {} : { dataDir }),
        ...(template === null ? {} : { loadDataDir: new Blob([await readTemplate(template)]) }),
    });
}

/** Runs messages without PGlite's own reading of the answer: node-postgres reads it, on the other side. */
async function execute(database: PGlite, bytes: Buffer, onRawData: (chunk: Uint8Array) => void): Promise<void> {
    await database.execProtocolRawStream(bytes, { syncToFs: false, onRawData });
}

/** Bytes that are a whole buffer change hands without a copy; a part of one is copied, so that no other part goes with it. */
function transferable(bytes: Buffer): [Uint8Array, Transferable[]] {
    const own = bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
    return [own, [own.buffer as ArrayBuffer]];
}

function follow(port: MessagePort): void {
    const forward = clock.follow();
    if (forward > 0) {
        port.postMessage({ forward } satisfies ThreadReply);
    }
}

async function close(port: MessagePort, database: PGlite, session: SharedSession): Promise<void> {
    await session.drain();
    await database.close();
    port.postMessage('closed' satisfies ThreadReply);
    port.close();
}
