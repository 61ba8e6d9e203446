import { link, lstat, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { errorCode, ScanwireError } from '../lib/errors.ts';
import { type FolderOption, linkedFolder, makeOwnedFolder, namesInOwned, refusedFolder } from '../lib/owned-folder.ts';

/** Where a deployment is when nothing else is said. */
export const DEFAULT_DATA = './scanwire-data';

const FILES = {
    /** The folder itself. */
    path: '',
    /** `{ current, keys }`: seals what is secret in the database. Without it those secrets are lost. */
    keyRing: 'key-ring.json',
    /** Signs this server's own licence. */
    licenseKey: 'license/signing-key.pem',
    /** What an installed licence must be signed for. */
    licensePublicKey: 'license/public-key.pem',
    license: 'license/license.jws',
    tlsKey: 'tls/key.pem',
    tlsCertificate: 'tls/cert.pem',
    /** Process id and socket of the server that runs on the folder. */
    server: 'server.json',
    socket: 'scanwire.sock',
    /** The embedded database, and what a process has written that has it open. */
    database: 'database',
    lock: 'database.lock',
    /** What the demo made: its exporter, its key, its receiver. */
    demo: 'demo.json',
    /** What a backup is unpacked in, as long as not all of it is where it belongs. */
    restoring: 'restoring',
} as const;

/**
 * The folder that holds what a deployment keeps on disk, for its owner's eyes only (folders 0700, files 0600): absolute paths of the
 * folder and of its files. Every file is made once and found again by the next start.
 */
export type DataFolder = { readonly [File in keyof typeof FILES]: string };

/** The layout; touches nothing. */
export function dataFolder(folder: string): DataFolder {
    const paths = Object.entries(FILES).map(([name, file]) => [name, resolve(folder, file)] as const);
    return Object.fromEntries(paths) as DataFolder;
}

/** What gets no name of its own until it is whole, and may be left by a process that died. */
const UNFINISHED = /^(?:key-ring|server)\.json\../;

const OPTION: FolderOption = { field: 'data', by: ' with --data' };

/**
 * Makes the folder unless it exists. One that is there must be empty or one of ours, and nobody else's.
 *
 * @throws ScanwireError `MISCONFIGURED` for a folder that is a link, belongs to somebody else, lets others in, holds something else or half of
 *     a backup, or that cannot be made.
 */
export async function prepareDataFolder(folder: DataFolder): Promise<void> {
    const { path } = folder;
    try {
        const names = await makeOwnedFolder(path, OPTION);
        assertNotHalf(folder, names);
        if (names.length > 0 && !(await isOurs(folder, names))) {
            throw refusedFolder(`${path} holds something else: name an empty or a new folder with --data`, OPTION);
        }
    } catch (cause) {
        throw cause instanceof ScanwireError ? cause : unusable(path, cause);
    }
}

/** Nothing may be where a folder is to be made, but an empty one, or one with nothing but this path. @throws ScanwireError `CONFLICT`; `MISCONFIGURED` for a link, a file or half of a backup. */
export async function assertUnused(folder: DataFolder, { but }: { readonly but?: string } = {}): Promise<void> {
    const { path } = folder;
    const folderItself = await lstat(path).catch(unlessMissing(path));
    if (folderItself?.isSymbolicLink() === true) {
        throw linkedFolder(path, OPTION);
    }

    const found = await readdir(path).catch(unlessMissing(path));
    const names = (found ?? []).filter((name) => resolve(path, name) !== but);
    assertNotHalf(folder, names);
    if (names.length > 0) {
        throw new ScanwireError('CONFLICT', `${path} holds something already: name an empty or a new folder with --data`, {
            field: 'data',
        });
    }
}

function assertNotHalf({ path, restoring }: DataFolder, names: readonly string[]): void {
    if (names.includes(basename(restoring))) {
        const half = `${path} holds half of a backup, since a restore was cut off or goes on: where none does, empty the folder and restore anew`;
        throw refusedFolder(half, OPTION);
    }
}

function unlessMissing(path: string) {
    return (cause: unknown): null => {
        if (errorCode(cause) === 'ENOENT') {
            return null;
        }

        throw unusable(path, cause);
    };
}

/**
 * Whether there is a data folder. Looked at before anything in it is believed: a folder that somebody else has put there would collect
 * secrets, or answer in the place of the server.
 *
 * @throws ScanwireError `MISCONFIGURED` for a folder that is a link, belongs to somebody else, lets others in or holds half of a backup.
 */
export async function dataFolderExists(folder: DataFolder): Promise<boolean> {
    const { path } = folder;
    try {
        assertNotHalf(folder, await namesInOwned(path, OPTION));
        return true;
    } catch (cause) {
        const { code } = cause as NodeJS.ErrnoException;
        if (code === 'ENOENT' || code === 'ENOTDIR') {
            return false;
        }

        throw cause instanceof ScanwireError ? cause : unusable(path, cause);
    }
}

/** What is said of a folder that cannot be used, by the error of the system. */
export function unusable(path: string, cause: unknown): ScanwireError {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    return code === 'EEXIST' || code === 'ENOTDIR'
        ? refusedFolder(`${path} is a file: name a folder with --data`, OPTION)
        : new ScanwireError('MISCONFIGURED', `Cannot use ${path} as data folder: ${code}`, { field: 'data', cause });
}

/**
 * Whether a folder is one of ours, by files of our own making: many a project has a folder `database` or `license`. What a start that
 * was cut off has left is ours as well.
 */
async function isOurs(folder: DataFolder, names: readonly string[]): Promise<boolean> {
    const licensed = names.includes('license') ? await readdir(dirname(folder.license)).catch(() => ['of somebody else']) : null;
    return (
        names.some((name) => UNFINISHED.test(name)) ||
        licensed?.some((name) => name === 'license.jws' || name.startsWith('signing-key.pem')) === true ||
        (licensed?.length === 0 && names.length === 1) ||
        (await hasForm(folder.keyRing, ({ current, keys }) => typeof current === 'string' && typeof keys === 'object')) ||
        (await hasForm(folder.server, ({ pid, socket }) => Number.isInteger(pid) && typeof socket === 'string')) ||
        (await hasForm(folder.lock, ({ pid, started }) => Number.isInteger(pid) && typeof started === 'string'))
    );
}

async function hasForm(file: string, test: (fields: Readonly<Record<string, unknown>>) => boolean): Promise<boolean> {
    try {
        return test((JSON.parse((await readIfPresent(file)) ?? 'null') ?? {}) as Record<string, unknown>);
    } catch {
        return false;
    }
}

/** The text of the file, null when there is none. */
export async function readIfPresent(path: string): Promise<string | null> {
    try {
        return await readFile(path, 'utf8');
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return null;
        }

        throw error;
    }
}

/**
 * The text of the file, made now when there is none. Of several processes that make it at once one wins, and all of them
 * answer with what is on disk.
 */
export async function readOrCreate(path: string, make: () => string | Promise<string>): Promise<string> {
    const kept = await readIfPresent(path);
    if (kept !== null) {
        return kept;
    }

    const made = await make();
    const temporary = `${path}.${crypto.randomUUID()}`;
    try {
        await replaceFile(temporary, made);
        // Unlike a rename, a link never takes the place of what another process has made meanwhile.
        await link(temporary, path);
        return made;
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
            return (await readIfPresent(path)) ?? made;
        }

        throw error;
    } finally {
        await rm(temporary, { force: true });
    }
}

/** Replaces the file at once: whoever reads it sees the old text or the new, never half of one, and it is on the disk. */
export async function replaceFile(path: string, text: string): Promise<void> {
    // Loaded here, since a command that only reads must start quickly.
    const { default: writeFileAtomic } = await import('write-file-atomic');
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFileAtomic(path, text, { mode: 0o600 });
}
