import { chmod, link, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ScanwireError } from '../lib/errors.ts';

/** Where a deployment is when nothing else is said. */
export const DEFAULT_DATA = './scanwire-data';

/**
 * The folder that holds what a deployment keeps on disk, for its owner's eyes only (folders 0700, files 0600). Every file is
 * made once and found again by the next start.
 */
export interface DataFolder {
    /** Absolute. */
    readonly path: string;
    /** `{ current, keys }`: seals what is secret in the database. Without it those secrets are lost. */
    readonly keyRing: string;
    /** Signs this server's own licence. */
    readonly licenseKey: string;
    /** What an installed licence must be signed for. */
    readonly licensePublicKey: string;
    readonly license: string;
    readonly tlsKey: string;
    readonly tlsCertificate: string;
    /** The embedded database; unused with `DATABASE_URL`. */
    readonly database: string;
    /** Process id and socket of the server that runs on the folder. */
    readonly server: string;
    readonly socket: string;
    /** What the demo made: its exporter, its key, its receiver. */
    readonly demo: string;
}

/** The layout; touches nothing. */
export function dataFolder(folder: string): DataFolder {
    const path = resolve(folder);
    return {
        path,
        keyRing: join(path, 'key-ring.json'),
        licenseKey: join(path, 'license', 'signing-key.pem'),
        licensePublicKey: join(path, 'license', 'public-key.pem'),
        license: join(path, 'license', 'license.jws'),
        tlsKey: join(path, 'tls', 'key.pem'),
        tlsCertificate: join(path, 'tls', 'cert.pem'),
        database: path,
        server: join(path, 'server.json'),
        socket: join(path, 'scanwire.sock'),
        demo: join(path, 'demo.json'),
    };
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
    } catch (error) {
        throw error instanceof ScanwireError ? error : unusable(path, error);
    }
}

export async function dataFolderExists({ path }: DataFolder): Promise<boolean> {
    try {
        return (await stat(path)).isDirectory();
    } catch {
        return false;
    }
}

function unusable(path: string, cause: unknown): ScanwireError {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException;
    return new ScanwireError('MISCONFIGURED', `Cannot use ${path} as data folder: ${code}`, { field: 'data', cause });
}

const OWNER_ONLY = 0o600;

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
    await writeFileAtomic(path, text, { mode: OWNER_ONLY });
}
