import { chmod, link, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ScanwireError } from '../lib/errors.ts';

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
    /** What the demo made: its exporter, its key, its receiver. */
    demo: 'demo.json',
} as const;

/**
 * The folder that holds what a deployment keeps on disk, for its owner's eyes only (folders 0700, files 0600): absolute paths of the
 * folder and of its files. Every file is made once and found again by the next start. The embedded database has folders of its own.
 */
export type DataFolder = { readonly [File in keyof typeof FILES]: string };

/** The layout; touches nothing. */
export function dataFolder(folder: string): DataFolder {
    const paths = Object.entries(FILES).map(([name, file]) => [name, resolve(folder, file)] as const);
    return Object.fromEntries(paths) as DataFolder;
}

/** Any of these makes a folder one of ours. */
const OURS = new Set(['key-ring.json', 'database', 'database.lock', 'license', 'tls', 'server.json']);

/**
 * Makes the folder unless it exists, and takes the rights of others away from one that is ours already.
 *
 * @throws ScanwireError `MISCONFIGURED` for a folder that holds something else, or that cannot be made.
 */
export async function prepareDataFolder({ path }: DataFolder): Promise<void> {
    try {
        await mkdir(path, { recursive: true, mode: 0o700 });
        const names = await readdir(path);
        if (names.length > 0 && !names.some((name) => OURS.has(name))) {
            throw new ScanwireError('MISCONFIGURED', `${path} holds something else: name an empty or a new folder with --data`, {
                field: 'data',
            });
        }

        await chmod(path, 0o700);
    } catch (cause) {
        if (cause instanceof ScanwireError) {
            throw cause;
        }

        const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
        throw new ScanwireError('MISCONFIGURED', `Cannot use ${path} as data folder: ${code}`, { field: 'data', cause });
    }
}

export async function dataFolderExists({ path }: DataFolder): Promise<boolean> {
    try {
        return (await stat(path)).isDirectory();
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
