import { createHash } from 'node:crypto';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../lib/errors.ts';
import { type DataFolder, readKept, replaceKept } from './data-folder.ts';

/** The server that runs on a data folder. */
export interface RunningServer {
    readonly pid: number;
    /** Path of its socket. */
    readonly socket: string;
}

/** `sun_path` holds 104 bytes on some systems, the ending zero included. */
const LONGEST_PATH = 100;

/** How long a server that has begun to start is waited for, in milliseconds. */
const START_PATIENCE = 20_000;
const LOOK_EVERY = 100;

/**
 * The server that runs on the folder, null when none does. One that is still starting is waited for; what a killed server left
 * behind is not taken for one.
 */
export async function runningServer(folder: DataFolder): Promise<RunningServer | null> {
    const giveUpAt = performance.now() + START_PATIENCE;
    for (;;) {
        const server = parse(await readKept(folder.server));
        if (server === null || (await answers(server.socket))) {
            return server;
        }

        if (server.pid === process.pid || !isAlive(server.pid) || performance.now() > giveUpAt) {
            return null;
        }

        await sleep(LOOK_EVERY);
    }
}

/**
 * Says that a server starts on the folder, and where its socket will be: in the data folder, or, where that path is too long for
 * a socket, in a folder of the user's own among the temporary ones.
 *
 * @throws ScanwireError `CONFLICT` when a server runs on the folder already.
 */
export async function claimSocket(folder: DataFolder, pid: number): Promise<string> {
    const running = await runningServer(folder);
    if (running !== null) {
        throw new ScanwireError('CONFLICT', `A server runs on ${folder.path} already (process ${running.pid})`, { field: 'data' });
    }

    const socket = Buffer.byteLength(folder.socket) <= LONGEST_PATH ? folder.socket : await temporarySocket(folder);
    await rm(socket, { force: true });
    await replaceKept(folder.server, `${JSON.stringify({ pid, socket } satisfies RunningServer)}\n`);
    return socket;
}

/** Undoes {@link claimSocket}, unless another server has claimed the folder since. */
export async function withdrawSocket(folder: DataFolder, socket: string, pid: number): Promise<void> {
    if (parse(await readKept(folder.server))?.pid === pid) {
        await rm(folder.server, { force: true });
        await rm(socket, { force: true });
    }
}

function isAlive(pid: number): boolean {
    try {
        return process.kill(pid, 0);
    } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
}

function parse(text: string | null): RunningServer | null {
    try {
        const { pid, socket } = JSON.parse(text ?? 'null') as RunningServer;
        return Number.isInteger(pid) && typeof socket === 'string' ? { pid, socket } : null;
    } catch {
        return null;
    }
}

function answers(socket: string): Promise<boolean> {
    return new Promise((resolve) => {
        const connection = connect(socket);
        connection.on('connect', () => {
            connection.destroy();
            resolve(true);
        });
        connection.on('error', () => resolve(false));
    });
}

async function temporarySocket({ path }: DataFolder): Promise<string> {
    const user = process.getuid?.() ?? 0;
    const name = createHash('sha256').update(path).digest('hex').slice(0, 16);
    const folder = join(tmpdir(), `scanwire-${user}-${name}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // Anyone may have made it before us: a link, or a folder that others can look into, is not ours.
    const found = await lstat(folder);
    if (!found.isDirectory() || found.uid !== user || (found.mode & 0o077) !== 0) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `${folder} belongs to somebody else; the path of the data folder is too long for a socket`,
            {
                field: 'data',
            },
        );
    }

    return join(folder, 'scanwire.sock');
}
