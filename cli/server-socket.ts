import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ScanwireError } from '../lib/scanwire-error.ts';
import type { DataFolder } from './data-folder.ts';
import { readKept, replaceKept } from './kept-file.ts';

/** The server that runs on a data folder. */
export interface RunningServer {
    readonly pid: number;
    /** Path of its socket. */
    readonly socket: string;
}

/** `sun_path` holds 104 bytes on some systems, the ending zero included. */
const LONGEST_PATH = 100;

/** The server that runs on the folder, null when none does. What a killed server left behind is not taken for one. */
export async function runningServer(folder: DataFolder): Promise<RunningServer | null> {
    const server = parse(await readKept(folder.server));
    return server !== null && (await answers(server.socket)) ? server : null;
}

/**
 * Makes room for the socket of a new server and says where it goes: into the data folder, or, where that path is too long for a
 * socket, into a folder of the user's own among the temporary ones.
 *
 * @throws ScanwireError `CONFLICT` when a server runs on the folder already.
 */
export async function claimSocket(folder: DataFolder): Promise<string> {
    const running = await runningServer(folder);
    if (running !== null) {
        throw new ScanwireError('CONFLICT', `A server runs on ${folder.path} already (process ${running.pid})`, { field: 'data' });
    }

    const socket = Buffer.byteLength(folder.socket) <= LONGEST_PATH ? folder.socket : await temporarySocket(folder);
    await rm(socket, { force: true });
    return socket;
}

/** Tells others of the socket once it is listened on. */
export async function announceSocket(folder: DataFolder, socket: string, pid: number): Promise<void> {
    await chmod(socket, 0o600);
    await replaceKept(folder.server, `${JSON.stringify({ pid, socket } satisfies RunningServer)}\n`);
}

/** Undoes {@link announceSocket}. */
export async function withdrawSocket(folder: DataFolder, socket: string): Promise<void> {
    await rm(folder.server, { force: true });
    await rm(socket, { force: true });
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
