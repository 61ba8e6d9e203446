/*
 * Done by hand where `proper-lockfile` would nearly do: that one takes a lock over after a time without a sign of life, and the process
 * that was merely stopped would wake up in a folder that another has opened. The sign of life here is a socket that the kernel answers
 * for, however busy or stopped its process is, and from whatever container it is asked.
 */
import { randomBytes } from 'node:crypto';
import { linkSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeNote, errorCode, ScanwireError } from '../../lib/errors.ts';
import { isAlive, ownBoot, ownIdentity, type ProcessIdentity } from '../../lib/process-identity.ts';

const FILE = 'database.lock';
/** Making a file and writing it takes less than this many milliseconds, or was cut off by the death of the process. */
const UNFINISHED_AFTER = 5_000;
const RETRY_MS = 20;
/** `sun_path` holds 104 bytes on some systems, the ending zero included. */
const MAX_PATH_BYTES = 100;

/** What the lock file says of its holder. Of an earlier version only the process. */
interface Holder extends ProcessIdentity {
    /** See {@link ownBoot}. */
    readonly boot: string;
    readonly host: string;
    /** Name of the socket in the folder on which it listens while it lives; `''` where none is told. */
    readonly socket: string;
}

/**
 * Takes the folder for this process. Two processes that open one PGlite folder destroy it, so the lock yields to nothing but the
 * death of its holder; what a holder that died has left behind is cleared away.
 *
 * @returns Gives the folder back.
 * @throws ScanwireError `MISCONFIGURED` while a living process holds the folder, for the lock of another machine or of the time before
 *     this one was started, of which nobody here can tell, and for a folder that can hold no socket.
 */
export async function lockFolder(folder: string): Promise<() => void> {
    const file = join(folder, FILE);
    const socket = `${FILE}.${randomBytes(4).toString('hex')}`;
    const mine = JSON.stringify({ ...ownIdentity(), boot: ownBoot(), host: hostname(), socket } satisfies Holder);
    let server: Server | undefined;
    const hangUp = (): void => {
        server?.close();
        rmSync(join(folder, socket), { force: true });
    };

    try {
        for (;;) {
            const found = read(file);
            if (found !== null) {
                await assertAbandoned(found, file, folder);
                if (!clear(file, found)) {
                    await sleep(RETRY_MS);
                }
                continue;
            }

            server ??= await listenIn(folder, socket);
            if (create(file, mine)) {
                return () => {
                    if (read(file) === mine) {
                        rmSync(file, { force: true });
                    }
                    hangUp();
                };
            }
        }
    } catch (error) {
        hangUp();
        throw error;
    }
}

async function listenIn(folder: string, name: string): Promise<Server> {
    // A folder that is not there says so itself; in the error of a socket it would look like one without rights.
    statSync(folder);
    // Nothing is said to whoever connects, and it must not keep the process alive.
    const server = createServer((connection) => connection.destroy()).unref();
    try {
        await atSocket(folder, name, (path) => new Promise<void>((resolve, reject) => server.on('error', reject).listen(path, resolve)));
    } catch (cause) {
        const message = `Cannot make a socket in ${folder}${codeNote(cause)}: the embedded database needs a folder of this machine's own`;
        throw new ScanwireError('MISCONFIGURED', message, { cause });
    }

    return server.removeAllListeners('error').on('error', () => {});
}

/** Whether somebody listens; null when there is no socket any more. */
function isListening(folder: string, name: string): Promise<boolean | null> {
    return atSocket(
        folder,
        name,
        (path) =>
            new Promise((resolve) => {
                const connection = connect(path);
                connection.once('connect', () => {
                    connection.destroy();
                    resolve(true);
                });
                // A socket that does not let us in has an owner all the same.
                connection.once('error', (error) => {
                    const code = errorCode(error);
                    resolve(code === 'ENOENT' ? null : code !== 'ECONNREFUSED');
                });
            }),
    );
}

/** Does something with a socket of the folder, by a link where its path is too long for one. */
async function atSocket<T>(folder: string, name: string, act: (path: string) => Promise<T>): Promise<T> {
    /* c8 ignore next 3 -- on Windows a pipe takes the place of the socket, and is gone with its process */
    if (process.platform === 'win32') {
        return await act(`\\\\.\\pipe\\scanwire-${name}`);
    }

    const path = join(folder, name);
    if (Buffer.byteLength(path) <= MAX_PATH_BYTES) {
        return await act(path);
    }

    const short = mkdtempSync(join(tmpdir(), 'scanwire-'));
    try {
        symlinkSync(folder, join(short, 'd'));
        return await act(join(short, 'd', name));
    } finally {
        rmSync(short, { recursive: true, force: true });
    }
}

/** Makes the file with its content at once: a process that is stopped half-way leaves no lock that looks abandoned. */
function create(file: string, content: string): boolean {
    const whole = `${file}.${randomBytes(4).toString('hex')}.new`;
    try {
        writeFileSync(whole, content, { flag: 'wx', mode: 0o600 });
        linkSync(whole, file);
        return true;
    } catch (error) {
        if (errorCode(error) === 'EEXIST') {
            return false;
        }

        throw error;
    } finally {
        rmSync(whole, { force: true });
    }
}

function read(file: string): string | null {
    try {
        return readFileSync(file, 'utf8');
    } catch (error) {
        if (errorCode(error) === 'ENOENT') {
            return null;
        }

        throw error;
    }
}

/**
 * Removes the lock that was judged abandoned, and no other: of several who judge at the same time one gets the guard, and
 * looks again before it removes.
 *
 * @returns False when somebody else is just doing so.
 */
function clear(file: string, abandoned: string): boolean {
    const guard = `${file}.clearing`;
    if (!create(guard, '')) {
        if (age(guard) > UNFINISHED_AFTER) {
            rmSync(guard, { force: true });
        }

        return false;
    }

    if (read(file) === abandoned) {
        const { socket = '' } = parse(abandoned) ?? {};
        rmSync(socket === '' ? file : join(file, '..', socket), { force: true });
        rmSync(file, { force: true });
    }

    rmSync(guard, { force: true });
    return true;
}

async function assertAbandoned(content: string, file: string, folder: string): Promise<void> {
    const holder = parse(content);
    if (holder === null) {
        if (age(file) < UNFINISHED_AFTER) {
            throw inUse(folder, 'a process that is just opening it');
        }

        return;
    }

    if (holder.boot !== '' && holder.boot !== ownBoot()) {
        throw ofAnotherBoot(holder, file, folder);
    }

    const listens = holder.socket === '' ? null : await isListening(folder, holder.socket);
    if (listens ?? isAlive(holder)) {
        throw inUse(folder, `process ${holder.pid}`);
    }
}

/** Milliseconds since the file was written. */
function age(file: string): number {
    return Date.now() - (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
}

function inUse(folder: string, who: string): ScanwireError {
    return new ScanwireError(
        'MISCONFIGURED',
        `The embedded database in ${folder} is in use by ${who}; only one process at a time can open it`,
    );
}

function ofAnotherBoot({ pid, host }: Holder, file: string, folder: string): ScanwireError {
    const holder = `process ${pid}${host === '' ? '' : ` of ${host}`}`;
    return new ScanwireError(
        'MISCONFIGURED',
        `The embedded database in ${folder} was opened by ${holder}, on another machine or before this one was started, and never closed; ` +
            `two that open it destroy it. When nobody has it open, say: rm '${file.replaceAll("'", "'\\''")}'`,
    );
}

/** Null for anything else than a lock. A socket of another name than ours is none. */
function parse(content: string): Holder | null {
    try {
        const { pid, started = '', boot, host = '', socket = '' } = JSON.parse(content) as Partial<Holder>;
        return Number.isInteger(pid)
            ? {
                  pid: Number(pid),
                  started: String(started),
                  // Before there was a field for it, it was told with the start.
                  boot: String(boot ?? /^(.*)\/\d+$/.exec(String(started))?.[1] ?? ''),
                  host: String(host),
                  socket: /^database\.lock\.[0-9a-f]{8}$/.test(String(socket)) ? String(socket) : '',
              }
            : null;
    } catch {
        return null;
    }
}
