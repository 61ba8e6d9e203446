import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import Joi from 'joi';
import { type Ticker, timer } from '../../lib/clock.ts';
import { codeNote, ScanwireError } from '../../lib/errors.ts';
import { makeOwnedFolder } from '../../lib/owned-folder.ts';
import { checked } from '../../lib/schema-validation.ts';
import type { Executor } from '../../lib/transaction.ts';
import { ENDED_PROCESS } from '../../lib/webhooks/dispatching/session-process.ts';
import { type DatabaseThread, startDatabaseThread } from './database-thread.ts';
import { type DumpOptions, dumps } from './dumps.ts';
import { type EmbeddedDatabase, embeddedPool } from './embedded-pool.ts';
import { lockFolder } from './folder-lock.ts';
import { maintain } from './maintenance.ts';
import { findTemplate, unpackTemplate } from './template.ts';

/** Where the embedded database is. */
export interface EmbeddedDatabaseOptions {
    /**
     * Where the database lives; made when missing, for the owner's eyes only. One that is there belongs to the user who runs this, is no link and, unless it
     * is empty, open to nobody else. It holds `database/` and `database.lock`.
     */
    readonly folder: string;
    /** Drives the clearing up, the look at the clock, and that at whether a copy is read; the machine's timer by default. */
    readonly ticker?: Ticker;
}

const schema: Joi.ObjectSchema<EmbeddedDatabaseOptions> = Joi.object({
    folder: Joi.string().required(),
    ticker: Joi.function(),
}).required();

/** The data directory in the folder. */
const DATABASE = 'database';

/** A database in a folder. */
export interface EmbeddedFolder extends EmbeddedDatabase {
    /**
     * What is committed when it ends, as a tar file of the data directory, while others go on. PostgreSQL mends the copy when it is first opened, as
     * after a crash.
     *
     * The database is cleared up only after the end, so whoever reads it must go on reading, or end it by `return()`: where nothing is taken for ten
     * minutes it is given up. What was read of a copy that rejects is none.
     *
     * @throws ScanwireError `CONFLICT` while another copy is made, or when a body was erased meanwhile; `UNAVAILABLE` when the database is closed before
     *     the end, a checkpoint of the application's own took log away that the copy needs, or it was given up; `INVALID_INPUT` for a prefix that no
     *     entry can have.
     */
    dump(options?: DumpOptions): AsyncIterable<Uint8Array>;
    /**
     * Resolves when the database has ended by itself, as it does where its log cannot be written: all that is asked of it is refused from then on, and what it
     * has acknowledged is there when it is opened again.
     */
    readonly lost: Promise<void>;
}

/** How often the clock is compared with that of the machine, in milliseconds. */
const FOLLOW_EVERY = 60_000;

/** An import leaves as many dead rows behind as it has hosts, and to vacuum these stops everybody for some tenths of a second. */
const IMPORTING = 'select from scanwire.workspaces where import_until > scanwire.now() limit 1';

/** Done where the schema knows of leases. */
const END_LEASES = `do $$ begin
    update scanwire.workspaces set import_until = '-infinity' where import_id is not null;
exception when invalid_schema_name or undefined_table or undefined_column then
    null;
end $$`;

/**
 * Done where the schema knows of sessions. They stay, as those of a process that has ended: whoever begins to send ends them, and knows so that
 * there is something to free.
 */
const END_SESSIONS = `do $$ begin
    update scanwire.worker_sessions set alive_until = '-infinity', process = '${ENDED_PROCESS}';
exception when invalid_schema_name or undefined_table then
    null;
end $$`;

/** Ends what former holders of a folder had under way, imports and claims of deliveries: nobody but us has it open, so they are gone. */
export async function endFormerHolders(database: Executor): Promise<void> {
    await database.query(END_LEASES);
    await database.query(END_SESSIONS);
}

/**
 * Opens the database in this folder, making it when there is none: a PostgreSQL that runs inside this process, in a thread of its
 * own. What it has acknowledged survives the death of the process, not a power cut.
 *
 * @throws ScanwireError `MISCONFIGURED` when another process has it open, the folder cannot be made or written, belongs to somebody else, lets others in
 *     or is a link, or it holds nothing that can be opened.
 */
export async function openEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedFolder> {
    const { folder, ticker = timer } = checked(schema, options, { subject: 'openEmbeddedDatabase options', code: 'MISCONFIGURED' });
    const root = resolve(folder);
    const unlock = await inFolder(root, async () => {
        await makeOwnedFolder(root, { field: 'folder', by: '' });
        return await lockFolder(root);
    });

    try {
        const thread = await startDatabaseThread({ dataDir: await dataFolder(root), template: null });
        void thread.ended.then(unlock);
        try {
            return await opened(thread, root, ticker);
        } catch (error) {
            // The folder is given back when nothing has its files open any more.
            await thread.close();
            throw error;
        }
    } catch (error) {
        unlock();
        throw error;
    }
}

async function opened(thread: DatabaseThread, root: string, ticker: Ticker): Promise<EmbeddedFolder> {
    const database = await embeddedPool(thread);
    await endFormerHolders(database);
    const { end } = database;
    // Where the schema knows of no leases yet, nothing is imported.
    const atWork = () =>
        database.query(IMPORTING).then(
            ({ rows }) => rows.length > 0,
            () => false,
        );
    const maintenance = await maintain({ database, requests: thread.requests, ticker, atWork });
    const stopFollowing = ticker(thread.followClock, FOLLOW_EVERY);
    let ended = false;

    return Object.assign(database, {
        // An end that was asked for never resolves it.
        lost: thread.ended.then(() => (ended ? new Promise<void>(() => {}) : undefined)),
        dump: dumps({ database, files: join(root, DATABASE), maintenance, ticker, ended: () => ended }),

        async end() {
            ended = true;
            stopFollowing();
            await maintenance.end();
            await end();
        },
    });
}

/** Does something that needs the folder; what the file system says to it is what is wrong with the option. */
async function inFolder<T>(folder: string, act: () => Promise<T>): Promise<T> {
    try {
        return await act();
    } catch (cause) {
        if ((cause as NodeJS.ErrnoException).syscall === undefined) {
            throw cause;
        }

        const message = `embedded database: folder must be one that can be made and written: ${folder}${codeNote(cause)}`;
        throw new ScanwireError('MISCONFIGURED', message, { field: 'folder', cause });
    }
}

/** A database in memory, gone when it is ended: for tests. */
export async function openMemoryDatabase(): Promise<EmbeddedDatabase> {
    return await embeddedPool(await startDatabaseThread({ dataDir: null, template: findTemplate() }));
}

/** The data directory. It gets its name only when it is complete, so that a start that was cut off leaves none behind. */
async function dataFolder(root: string): Promise<string> {
    const folder = join(root, DATABASE);
    if (existsSync(folder)) {
        return folder;
    }

    const unfinished = join(root, 'database.new');
    const template = findTemplate();
    await rm(unfinished, { recursive: true, force: true });
    /* c8 ignore next 3 -- the build makes the template, before any test */
    if (template === null) {
        await mkdir(unfinished, { mode: 0o700 });
        await (await startDatabaseThread({ dataDir: unfinished, template: null })).close();
    } else {
        await unpackTemplate(template, unfinished);
    }

    await rename(unfinished, folder);
    return folder;
}
