import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Server } from '@hapi/hapi';
import { unpackTar } from '../adapters/pglite/template.ts';
import { errorCode, ScanwireError } from '../lib/errors.ts';
import type { DataFolder } from './data-folder.ts';

/*
 * A backup is a tar file, packed with gzip: the key ring, the licence, and the data directory as a tar file of its own. It gets its
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

const DATABASE = 'database.tar';

/** What of a data folder belongs to its database and is made only once. */
const BESIDE = ['key-ring.json', 'license/license.jws', 'license/public-key.pem', 'license/signing-key.pem'];

/**
 * Writes a backup, for its owner's eyes only.
 *
 * @param dump The database as a tar file; null where there is none in the folder.
 * @throws ScanwireError `MISCONFIGURED` without an embedded database, `CONFLICT` when the file exists, `INVALID_INPUT` when it cannot be
 *     written.
 */
export async function backUp({ path, keyRing }: DataFolder, dump: (() => Promise<Uint8Array>) | null, file: string): Promise<BackedUp> {
    if (dump === null) {
        throw new ScanwireError('MISCONFIGURED', 'Only the embedded database is copied here: copy a server with pg_dump');
    }

    if ((await stat(file).catch(() => null)) !== null) {
        throw exists(file);
    }

    const entries = [tarEntry(DATABASE, await dump())];
    for (const name of BESIDE) {
        const content = await readFile(join(path, name)).catch(unlessMissing);
        entries.push(content === null ? Buffer.alloc(0) : tarEntry(name, content));
    }

    const packed = await promisify(gzip)(Buffer.concat([...entries, Buffer.alloc(2 * BLOCK)]));
    await writeWhole(file, packed);
    return { file, bytes: packed.length, keyRing: existsSync(keyRing) };
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
 * Makes a data folder of a backup. It gets its name when it is whole.
 *
 * @throws ScanwireError `CONFLICT` when the folder holds anything, `NOT_FOUND` without the file, `INVALID_INPUT` for one that is no whole backup.
 */
export async function restore({ path }: DataFolder, file: string): Promise<void> {
    const found = await readdir(path).catch(unlessMissing);
    if (found !== null && found.length > 0) {
        throw new ScanwireError('CONFLICT', `${path} holds something already: name an empty or a new folder with --data`, {
            field: 'data',
        });
    }

    const packed = await readFile(file).catch((cause: unknown) => {
        throw new ScanwireError('NOT_FOUND', `Cannot read ${file}: ${errorCode(cause)}`, { cause });
    });
    const tar = await promisify(gunzip)(packed).catch((cause: unknown) => {
        throw new ScanwireError('INVALID_INPUT', `${file} is no whole backup: ${errorCode(cause)}`, { cause });
    });
    const unfinished = `${path}.${randomBytes(4).toString('hex')}`;
    try {
        await unpackTar(tar, unfinished);
        const database = await readFile(join(unfinished, DATABASE)).catch(unlessMissing);
        if (database === null) {
            throw new ScanwireError('INVALID_INPUT', `${file} is no backup: it holds no database`);
        }

        await unpackTar(database, join(unfinished, 'database'));
        await rm(join(unfinished, DATABASE));
        // Takes the place of an empty folder, and of no other.
        await rename(unfinished, path);
    } finally {
        await rm(unfinished, { recursive: true, force: true });
    }
}

function exists(file: string): ScanwireError {
    return new ScanwireError('CONFLICT', `${file} exists already, and a backup replaces nothing`);
}

function unlessMissing(cause: unknown): null {
    if (errorCode(cause) === 'ENOENT') {
        return null;
    }

    throw cause;
}

async function writeWhole(file: string, bytes: Buffer): Promise<void> {
    const unfinished = join(dirname(file), `.scanwire-backup.${randomBytes(4).toString('hex')}`);
    try {
        const handle = await open(unfinished, 'wx', 0o600);
        try {
            await handle.writeFile(bytes);
            await handle.sync();
        } finally {
            await handle.close();
        }

        // Unlike a rename, a link never takes the place of another file.
        await link(unfinished, file);
    } catch (cause) {
        throw errorCode(cause) === 'EEXIST'
            ? exists(file)
            : new ScanwireError('INVALID_INPUT', `Cannot write ${file}: ${errorCode(cause)}`, { cause });
    } finally {
        await rm(unfinished, { force: true });
    }
}

const BLOCK = 512;

/** A file of a tar file, for its owner's eyes only. */
function tarEntry(name: string, content: Uint8Array): Buffer {
    const header = Buffer.alloc(BLOCK);
    const fields = [
        [0, name],
        [100, '0000600'],
        [108, '0000000'],
        [116, '0000000'],
        [124, content.length.toString(8).padStart(11, '0')],
        [136, '00000000000'],
        [148, ' '.repeat(8)],
        [156, '0'],
        [257, 'ustar\x0000'],
    ] as const;
    for (const [at, text] of fields) {
        header.write(text, at, 'latin1');
    }

    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    return Buffer.concat([header, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);
}
