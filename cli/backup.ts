import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Server } from '@hapi/hapi';
import { isOfDatabase } from '../adapters/pglite/online-backup.ts';
import { errorCode, ScanwireError } from '../lib/errors.ts';
import { packed, unpacked } from '../lib/gunzip.ts';
import { type Belongs, tarEntry, unpackTar } from '../lib/tar.ts';
import { assertUnused, type DataFolder, prepareDataFolder, unusable } from './data-folder.ts';
import { openInput } from './input-file.ts';
import { writeOutput } from './output/write-output.ts';
import type { Stores } from './stores.ts';

/*
 * A backup is a tar file, packed with gzip, of what a data folder has: the key ring, the licence, and the data directory. It gets its
 * name when it is whole and on the disk.
 */

/** What a backup came to. */
export interface BackedUp {
    readonly file: string;
    /** Its size. */
    readonly bytes: number;
    /** False where the ring is not in the folder but in `SCANWIRE_KEY_RING`. */
    readonly keyRing: boolean;
}

/** The data directory. */
const DATABASE = 'database';

/** Backups that older versions made have it as a tar file of its own. */
const DATABASE_TAR = 'database.tar';

/** What of a data folder belongs to its database and is made only once. */
const BESIDE = ['key-ring.json', 'license/license.jws', 'license/public-key.pem', 'license/signing-key.pem'];

/** Names in the tar file of an older version begin with a slash. */
const ofDatabase: Belongs = (name) => isOfDatabase(name.replace(/^\//, ''));

const FILES: ReadonlySet<string> = new Set([DATABASE_TAR, ...BESIDE]);
const ofBackup: Belongs = (name, kind) =>
    name.startsWith(`${DATABASE}/`) ? ofDatabase(name.slice(DATABASE.length + 1), kind) : kind === 'file' && FILES.has(name);

/**
 * Writes a backup, for its owner's eyes only.
 *
 * @param dump The database as a tar file, with names below a folder; null where there is none in the data folder.
 * @throws ScanwireError `MISCONFIGURED` without an embedded database, `CONFLICT` when the file exists, `INVALID_INPUT` when it cannot be
 *     written.
 */
export async function backUp({ path, keyRing }: DataFolder, dump: Stores['dump'], file: string): Promise<BackedUp> {
    if (dump === null) {
        throw new ScanwireError('MISCONFIGURED', 'Only the embedded database is copied here: copy a server with pg_dump');
    }

    await writeOutput(packed(contentOf(path, dump)), file, { replaces: false, mode: 0o600 }).catch((error: unknown) => {
        throw error instanceof ScanwireError && error.code === 'CONFLICT' && error.field === 'output'
            ? new ScanwireError('CONFLICT', `${file} exists already, and a backup replaces nothing`, { cause: error })
            : error;
    });
    return { file, bytes: (await stat(file)).size, keyRing: existsSync(keyRing) };
}

async function* contentOf(path: string, dump: NonNullable<Stores['dump']>): AsyncGenerator<Uint8Array, void, undefined> {
    for (const name of BESIDE) {
        const content = await readFile(join(path, name)).catch(unlessMissing);
        yield* content === null ? [] : tarEntry(name, content);
    }

    // With the end of the file.
    yield* dump({ prefix: DATABASE });
}

/** Lets the socket of a data folder write backups. */
export function addBackup(admin: Server, backUpTo: (file: string) => Promise<BackedUp>): void {
    admin.route({
        method: 'POST',
        path: '/backup',
        async handler({ payload }, h) {
            try {
                return await backUpTo((payload as { file: string }).file);
            } catch (error) {
                const { code, message } = error as ScanwireError;
                return h.response({ error: { code, message } }).code(409);
            }
        },
    });
}

/**
 * Makes a data folder of a backup. Until it is whole nothing takes it for one, and nothing is left of what is refused. Memory does not depend
 * on the size of the backup.
 *
 * @throws ScanwireError `CONFLICT` when the folder holds anything, `MISCONFIGURED` when it cannot be made or holds half of a backup, `INVALID_INPUT` for
 *     a file that cannot be read, is no whole backup, has what no backup of ours has or expands beyond all measure.
 */
export async function restore(folder: DataFolder, file: string): Promise<void> {
    const { path } = folder;
    await assertUnused(folder);
    const { source } = await openInput(file);
    const unpack = async (into: string): Promise<void> => await unpackBackup(file, source, into);
    try {
        await (existsSync(path) ? restoreInside(folder, unpack) : restoreBeside(folder, unpack));
    } catch (cause) {
        throw cause instanceof ScanwireError ? cause : unusable(path, cause);
    }
}

type Unpack = (into: string) => Promise<void>;

/** A new folder gets its name when it is whole. */
async function restoreBeside({ path }: DataFolder, unpack: Unpack): Promise<void> {
    const unfinished = `${path}.${randomBytes(4).toString('hex')}`;
    try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await unpack(unfinished);
        // Takes the place of an empty folder, and of no other.
        await rename(unfinished, path);
    } finally {
        await rm(unfinished, { recursive: true, force: true });
    }
}

/** A folder that is there stays what it is: one where a volume is mounted has no other name, and may lie where nothing else can be made. */
async function restoreInside(folder: DataFolder, unpack: Unpack): Promise<void> {
    const { path, restoring } = folder;
    await prepareDataFolder(folder);
    await mkdir(restoring, { mode: 0o700 });
    const moved: string[] = [];
    try {
        const whole = join(restoring, 'whole');
        await unpack(whole);
        await assertUnused(folder, { but: restoring });
        for (const name of await readdir(whole)) {
            await rename(join(whole, name), join(path, name));
            moved.push(join(path, name));
        }
    } catch (error) {
        await Promise.all(moved.map((name) => rm(name, { recursive: true, force: true })));
        throw error;
    } finally {
        await rm(restoring, { recursive: true, force: true });
    }
}

async function unpackBackup(file: string, source: AsyncIterable<Uint8Array>, into: string): Promise<void> {
    await whole(file, unpackTar(unpacked(source), into, ofBackup));
    const database = join(into, DATABASE);
    const tar = join(into, DATABASE_TAR);
    if (existsSync(tar) && existsSync(database)) {
        throw new ScanwireError('INVALID_INPUT', `${file} is no backup: it holds two databases`);
    }
    if (existsSync(tar)) {
        await whole(file, unpackTar(createReadStream(tar), database, ofDatabase));
        await rm(tar);
    }
    if (!existsSync(join(database, 'PG_VERSION'))) {
        throw new ScanwireError('INVALID_INPUT', `${file} is no backup: it holds no database`);
    }
}

/** What is said of a file of which the unpacking is refused. */
async function whole(file: string, unpacking: Promise<void>): Promise<void> {
    await unpacking.catch((cause: unknown) => {
        throw errorCode(cause) === 'INVALID_INPUT'
            ? new ScanwireError('INVALID_INPUT', `${file} is no whole backup: ${(cause as Error).message}`, { cause })
            : cause;
    });
}

function unlessMissing(cause: unknown): null {
    if (errorCode(cause) === 'ENOENT') {
        return null;
    }

    throw cause;
}
