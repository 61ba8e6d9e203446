import { lstat, mkdir, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { ScanwireError } from '../lib/errors.ts';
import type { ProcessIdentity } from '../lib/process-identity.ts';
import { type DataFolder, dataFolderExists, readIfPresent, replaceFile } from './data-folder.ts';

/*
 * Both ends of the socket by which the commands of a data folder ask its server: commands look for the server and connect, the
 * server claims the folder and says where it listens.
 */

/** The server that runs on a data folder. */
interface RunningServer extends ProcessIdentity {
    /** Path of its socket. */
    readonly socket: string;
}

/** `sun_path` holds 104 bytes on some systems, the ending zero included. */
const MAX_PATH_BYTES = 100;

/** How long a server that has begun to start is waited for, in milliseconds. */
const START_PATIENCE = 20_000;
const LOOK_EVERY = 100;

/** The server that runs on the folder, null when none does. One that is still starting is waited for. */
export async function runningServer(folder: DataFolder, patience?: number): Promise<RunningServer | null> {
    const connection = await connectToServer(folder, patience);
    connection?.destroy();
    return connection === null ? null : readClaim(folder);
}

/**
 * A connection to the server that runs on the folder, as {@link runningServer} finds it. Nothing in the folder is believed before it is known to be its
 * owner's alone, by whichever command: another's would name a server of its own.
 *
 * @throws ScanwireError `MISCONFIGURED` as {@link dataFolderExists}.
 */
export async function connectToServer(folder: DataFolder, patience: number = START_PATIENCE): Promise<Socket | null> {
    if (!(await dataFolderExists(folder))) {
        return null;
    }

    const giveUpAt = performance.now() + patience;
    for (;;) {
        const server = await readClaim(folder);
        const connection = server === null ? null : await connected(server.socket);
        if (server === null || connection !== null) {
            return connection;
        }

        // Loaded here, since a server that runs answers at once.
        const [{ isAlive }, { setTimeout: sleep }] = await Promise.all([
            import('../lib/process-identity.ts'),
            import('node:timers/promises'),
        ]);
        // What a killed server left behind is not taken for one.
        if (server.pid === process.pid || !isAlive(server) || performance.now() > giveUpAt) {
            return null;
        }

        await sleep(LOOK_EVERY);
    }
}

/**
 * Says that a server starts on the folder, and where its socket will be: in the data folder, or, where that path is too long for
 * a socket, in a folder of the user's own among the temporary ones.
 *
 * @param patience Milliseconds for which one that starts is waited for.
 * @throws ScanwireError `CONFLICT` when a server runs on the folder already, or starts there still.
 */
export async function claimSocket(folder: DataFolder, owner: ProcessIdentity, patience?: number): Promise<string> {
    const running = (await runningServer(folder, patience)) ?? (await startingServer(folder));
    if (running !== null) {
        throw new ScanwireError('CONFLICT', `A server runs on ${folder.path} already (process ${running.pid})`, { field: 'data' });
    }

    const socket = Buffer.byteLength(folder.socket) <= MAX_PATH_BYTES ? folder.socket : await temporarySocket(folder);
    await rm(socket, { force: true });
    await replaceFile(folder.server, `${JSON.stringify({ ...owner, socket } satisfies RunningServer)}\n`);
    return socket;
}

/** One that has claimed the folder and lives, however long its start takes: whoever took its place would hide it from all commands for good. */
async function startingServer(folder: DataFolder): Promise<RunningServer | null> {
    const claimed = await readClaim(folder);
    const { isAlive } = await import('../lib/process-identity.ts');
    // Without its start it may be any process with that pid.
    const isKnown = claimed !== null && claimed.pid !== process.pid && claimed.started !== '';
    return isKnown && isAlive(claimed) ? claimed : null;
}

/** Undoes {@link claimSocket}, unless another server has claimed the folder since. */
export async function withdrawSocket(folder: DataFolder, socket: string, pid: number): Promise<void> {
    if ((await readClaim(folder))?.pid === pid) {
        await rm(folder.server, { force: true });
        await rm(socket, { force: true });
    }
}

/** The process of the server that has claimed the folder; null when none has. */
export async function serverProcess(folder: DataFolder): Promise<number | null> {
    return (await readClaim(folder))?.pid ?? null;
}

/** The server that has claimed the folder, whether it still runs or not. */
async function readClaim(folder: DataFolder): Promise<RunningServer | null> {
    try {
        const { pid, started = '', socket } = JSON.parse((await readIfPresent(folder.server)) ?? 'null') as Partial<RunningServer>;
        return Number.isInteger(pid) && typeof socket === 'string' ? { pid: Number(pid), started, socket } : null;
    } catch {
        return null;
    }
}

/** Null when nobody listens. */
function connected(socket: string): Promise<Socket | null> {
    return new Promise((resolve) => {
        const connection = connect(socket);
        connection.on('connect', () => resolve(connection));
        connection.on('error', () => resolve(null));
    });
}

async function temporarySocket({ path }: DataFolder): Promise<string> {
    const user = process.getuid?.() ?? 0;
    const [{ createHash }, { tmpdir }] = await Promise.all([import('node:crypto'), import('node:os')]);
    const name = createHash('sha256').update(path).digest('hex').slice(0, 16);
    const folder = join(tmpdir(), `scanwire-${user}-${name}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // Anyone may have made it before us: a link, or a folder that others can look into, is not ours.
    const found = await lstat(folder);
    if (!found.isDirectory() || found.uid !== user || (found.mode & 0o077) !== 0) {
        const message = `${folder} belongs to somebody else; the path of the data folder is too long for a socket`;
        throw new ScanwireError('MISCONFIGURED', message, { field: 'data' });
    }

    return join(folder, 'scanwire.sock');
}
