import { type FileHandle, open, readdir } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { ScanwireError } from '../../lib/errors.ts';
import { isEntryName, TAR_END, tarEntry, tarFolder, tarHeader, tarPadding } from '../../lib/tar.ts';
import type { Executor } from '../../lib/transaction.ts';
import { clearRoom, PAGE } from './heap-page.ts';

/*
 * PostgreSQL's own way to copy the files of a database that is written to meanwhile: they are read as they come, pages torn and all, between
 * `pg_backup_start` and `pg_backup_stop`, and the write-ahead log of that time comes last, by which the first start of the copy mends them.
 * What belongs into such a copy is PostgreSQL's rule (continuous archiving, the low-level API; BASE_BACKUP of the replication protocol).
 */

/** What is copied, and how. */
export interface OnlineBackupOptions {
    readonly database: Executor;
    /** The data directory. */
    readonly files: string;
    /** The folder that names in the tar file begin with, without a slash at its end; none unless it is given. */
    readonly prefix?: string;
    /** The number in its table of the first page of a file from whose copy what was removed is left out, null for any other. */
    pagesToClear(name: string): number | null;
    /** Whether the database is being closed: nothing is copied any further. */
    ended(): boolean;
    /** Asked when all is copied, and before the copy is complete: rejects when it must not be used. */
    judge(): Promise<void>;
}

/** What PostgreSQL has at the top of its data directory, and of a copy of one. */
const TOP = new Set(['PG_VERSION', 'base', 'global', 'postgresql.conf', 'postgresql.auto.conf', 'pg_hba.conf', 'pg_ident.conf']);
const MORE_AT_THE_TOP = /^(?:pg_[a-z_]+|(?:backup_label|tablespace_map)(?:\.old)?|postmaster\.(?:pid|opts))$/;

/** Whether the data directory of a database may hold a file or a folder of this name, from the data directory on: a copy has nothing else. */
export function isOfDatabase(name: string): boolean {
    const [top = ''] = name.split('/');
    return TOP.has(top) || MORE_AT_THE_TOP.test(top);
}

/** What is in these folders is of the process that runs, or comes last. */
const LEFT_OUT: ReadonlySet<string> = new Set([
    'pg_dynshmem',
    'pg_notify',
    'pg_replslot',
    'pg_serial',
    'pg_snapshots',
    'pg_stat_tmp',
    'pg_subtrans',
    'pg_wal',
]);

/** Of the process, of temporary tables and files, and of an earlier copy: nobody reads it again. */
const OF_THE_PROCESS = /^(?:postmaster\.|pg_internal\.init|pgsql_tmp|t\d+_\d|backup_label|tablespace_map)/;

/** What PostgreSQL has in the folders of its tables: a file of a table by its number, its forks and further parts, and few others. */
const OF_TABLES = /^(?:base(?:\/\d+)?|global)$/;
const FILES_OF_TABLES = /^(?:\d+(?:_(?:fsm|vm|init))?(?:\.\d+)?|PG_VERSION|pg_filenode\.map|pg_control)$/;

/** Whether a copy takes an entry of this name, from the data directory on. */
function isCopied(name: string): boolean {
    return isOfDatabase(name) && (!OF_TABLES.test(posix.dirname(name)) || FILES_OF_TABLES.test(posix.basename(name)));
}

/** Says where recovery begins, so nothing may be copied behind it but the log. */
const CONTROL = 'global/pg_control';

const WAL = 'pg_wal';
const CHUNK = 65_536;

/** The database as a tar file, of all that was committed when it ends. Others go on meanwhile, but for a checkpoint at its begin. */
export async function* onlineBackup(options: OnlineBackupOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const { database, files, prefix, ended, judge, pagesToClear } = options;
    const named = (name: string): string => (prefix === undefined ? name : `${prefix}/${name}`);
    await database.query(`select pg_catalog.pg_backup_start('scanwire', fast := true)`);
    let stopped = false;
    try {
        for await (const { name, isFolder } of entriesOf(files, (name) => isCopied(name) && isEntryName(named(name)))) {
            yield* isFolder ? [tarFolder(named(name))] : copyOf(await opened(join(files, name)), named(name), ended, pagesToClear(name));
        }
        yield* copyOf(await open(join(files, CONTROL)), named(CONTROL), ended);

        const { rows } = await database.query<Stopped>(STOP);
        stopped = true;
        const { label, first, last } = rows[0] as Stopped;
        const needed = async () => segmentsOf(await readdir(join(files, WAL)), first, last);
        for (const segment of await needed()) {
            const file = (await opened(join(files, WAL, segment))) ?? logIsGone();
            yield* copyOf(file, named(`${WAL}/${segment}`), ended);
        }
        // What a checkpoint took away while it was read, to be written anew, has another name by now.
        await needed();
        await judge();
        yield* tarEntry(named('backup_label'), Buffer.from(label));
        yield TAR_END;
    } finally {
        if (!stopped && !ended()) {
            // Whatever ended the copy is what is told.
            await database.query('select pg_catalog.pg_backup_stop(wait_for_archive := false)').catch(() => {});
        }
    }
}

interface Stopped {
    readonly label: string;
    /** Names of the first and the last file of the log that the copy needs. */
    readonly first: string;
    readonly last: string;
}

const STOP = `select
    s.labelfile as label,
    substring(s.labelfile from 'START WAL LOCATION: .* \\(file ([0-9A-F]{24})\\)') as first,
    pg_catalog.pg_walfile_name(s.lsn) as last
from pg_catalog.pg_backup_stop(wait_for_archive := false) s`;

interface Copied {
    /** The path from the data directory on. */
    readonly name: string;
    readonly isFolder: boolean;
}

/** Folders before what is in them. What others have put there, a program that copies folders for example, is left out where no reader of a copy takes it. */
async function* entriesOf(files: string, belongs: (name: string) => boolean, folder = ''): AsyncGenerator<Copied> {
    const entries = await readdir(join(files, folder), { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
        return unlessGone(error, folder !== '') ?? [];
    });
    for (const entry of entries.filter(({ name }) => !OF_THE_PROCESS.test(name))) {
        const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (!belongs(name)) {
            continue;
        }
        if (entry.isDirectory()) {
            yield { name, isFolder: true };
            yield* LEFT_OUT.has(name) ? [] : entriesOf(files, belongs, name);
        } else if (entry.isFile() && name !== CONTROL) {
            yield { name, isFolder: false };
        }
    }
}

/** The name of a file of the log, beside which others may lie. */
const SEGMENT = /^[0-9A-F]{24}$/;

/** The files of the log from the first to the last. @throws ScanwireError `UNAVAILABLE` when one of them is gone. */
function segmentsOf(names: readonly string[], first: string, last: string): readonly string[] {
    const segments = names.filter((name) => SEGMENT.test(name) && name >= first && name <= last).sort();
    if (segments.length !== positionOf(last) - positionOf(first) + 1) {
        logIsGone();
    }
    return segments;
}

function logIsGone(): never {
    throw new ScanwireError('UNAVAILABLE', 'A checkpoint has taken away log that the copy of the embedded database needs: make it again');
}

/** Of a file of the log: after eight digits of the timeline, eight count what holds 256 files, and eight files in it. */
function positionOf(segment: string): number {
    return Number.parseInt(segment.slice(8, 16), 16) * 256 + Number.parseInt(segment.slice(16), 16);
}

/** Null for a file that is gone by now: it is no part of the copy. */
async function opened(path: string): Promise<FileHandle | null> {
    return await open(path).catch((error: NodeJS.ErrnoException) => unlessGone(error, true));
}

function unlessGone(error: NodeJS.ErrnoException, mayBeGone: boolean): null {
    if (mayBeGone && error.code === 'ENOENT') {
        return null;
    }

    throw error;
}

/**
 * A file as long as it was when it was opened: what is added later is in the log, and where it was cut off meanwhile zeros stand, which the log cuts
 * off again.
 */
async function* copyOf(
    file: FileHandle | null,
    name: string,
    ended: () => boolean,
    clearFrom: number | null = null,
): AsyncGenerator<Uint8Array> {
    if (file === null) {
        return;
    }

    try {
        const { size } = await file.stat();
        yield tarHeader(name, size);
        for (let at = 0; at < size; at += CHUNK) {
            if (ended()) {
                throw new ScanwireError('UNAVAILABLE', 'The embedded database is closed');
            }

            const chunk = Buffer.alloc(Math.min(CHUNK, size - at));
            await file.read(chunk, 0, chunk.length, at);
            for (let page = 0; clearFrom !== null && page + PAGE <= chunk.length; page += PAGE) {
                clearRoom(chunk.subarray(page, page + PAGE), clearFrom + (at + page) / PAGE);
            }
            yield chunk;
        }
        yield tarPadding(size);
    } finally {
        await file.close();
    }
}
