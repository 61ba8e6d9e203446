import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import Joi from 'joi';
import { checked } from '../../lib/checked.ts';
import { startDatabaseThread } from './database-thread.ts';
import { type EmbeddedDatabase, embeddedPool } from './embedded-pool.ts';
import { lockFolder } from './folder-lock.ts';
import { maintain, type Ticker } from './maintenance.ts';

/** Where the embedded database is. */
export interface EmbeddedDatabaseOptions {
    /** Where the database lives; made when missing, for the owner's eyes only. It holds `database/` and `database.lock`. */
    readonly folder: string;
    /** Drives the clearing up; the machine's timer by default. */
    readonly ticker?: Ticker;
}

const schema: Joi.ObjectSchema<EmbeddedDatabaseOptions> = Joi.object({
    folder: Joi.string().required(),
    ticker: Joi.function(),
});

/**
 * Opens the database in this folder, making it when there is none: a PostgreSQL that runs inside this process, in a thread of its
 * own. What it has acknowledged survives the death of the process, not a power cut.
 *
 * @throws ScanwireError `MISCONFIGURED` when another process has it open, or the folder holds nothing that can be opened.
 */
export async function openEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
    const { folder, ticker = timer } = checked(schema, options, { subject: 'embedded database', code: 'MISCONFIGURED' });
    const root = resolve(folder);
    await mkdir(root, { recursive: true, mode: 0o700 });
    const unlock = await lockFolder(root);

    try {
        const thread = await startDatabaseThread({ dataDir: await dataFolder(root), template: null });
        void thread.ended.then(unlock);
        const database = await embeddedPool(thread);
        const end = database.end;
        const stop = await maintain({ database, requests: thread.requests, ticker });
        return Object.assign(database, {
            async end() {
                await stop();
                await end();
            },
        });
    } catch (error) {
        unlock();
        throw error;
    }
}

/** A database in memory, gone when it is ended: for tests. */
export async function openMemoryDatabase(): Promise<EmbeddedDatabase> {
    return await embeddedPool(await startDatabaseThread({ dataDir: null, template: findTemplate() }));
}

/** The data directory. It gets its name only when it is complete, so that a start that was cut off leaves none behind. */
async function dataFolder(root: string): Promise<string> {
    const folder = join(root, 'database');
    if (existsSync(folder)) {
        return folder;
    }

    const unfinished = join(root, 'database.new');
    const template = findTemplate();
    await rm(unfinished, { recursive: true, force: true });
    if (template === null) {
        await mkdir(unfinished, { mode: 0o700 });
        await (await startDatabaseThread({ dataDir: unfinished, template: null })).close();
    } else {
        await unpackTemplate(template, unfinished);
    }

    await rename(unfinished, folder);
    return folder;
}

function timer(task: () => void, milliseconds: number): () => void {
    const handle = setInterval(task, milliseconds).unref();
    return () => clearInterval(handle);
}

/** Where `make-template.ts` puts an empty database, so that a first start need not make one (0.5 instead of 3 to 6 seconds). */
export const TEMPLATE: string = fileURLToPath(new URL('./template.tar.gz', import.meta.url));

/** The template's file, null when this build has none. */
export function findTemplate(): string | null {
    return existsSync(TEMPLATE) ? TEMPLATE : null;
}

const BLOCK = 512;
const DIRECTORY = '5';

/**
 * Unpacks the archive into a folder that does not exist yet. By hand, since the archive is one of our own making and PGlite's
 * `loadDataDir` makes the first start 0.4 to 1.8 s longer.
 */
export async function unpackTemplate(archive: string, folder: string): Promise<void> {
    const tar = await promisify(gunzip)(await readFile(archive));
    await mkdir(folder, { mode: 0o700 });

    for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0; ) {
        const size = Number.parseInt(text(tar, at + 124, 12), 8) || 0;
        const path = join(folder, text(tar, at + 345, 155), text(tar, at, 100));
        if (text(tar, at + 156, 1) === DIRECTORY) {
            await mkdir(path, { recursive: true, mode: 0o700 });
        } else {
            await mkdir(dirname(path), { recursive: true, mode: 0o700 });
            await writeFile(path, tar.subarray(at + BLOCK, at + BLOCK + size), { mode: 0o600 });
        }

        at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    }
}

function text(tar: Buffer, start: number, length: number): string {
    return tar.toString('latin1', start, start + length).replace(/\0.*$/s, '');
}
