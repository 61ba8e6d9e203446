import type { Dirent } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ScanwireError } from '../../lib/errors.ts';
import { TAR_END, tarEntry, tarFolder, tarHeader, tarPadding } from '../../lib/tar.ts';
import type { Executor } from '../../lib/transaction.ts';

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
    /** Whether the database is being closed: nothing is copied any further. */
    ended(): boolean;
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

const OF_THE_PROCESS: ReadonlySet<string> = new Set(['postmaster.pid', 'postmaster.opts', 'pg_internal.init']);

/** Says where recovery begins, so nothing may be copied behind it but the log. */
const CONTROL = 'global/pg_control';

const WAL = 'pg_wal';
const CHUNK = 65_536;

/** The database as a tar file, of all that was committed when it ends. Others go on meanwhile, but for a checkpoint at its begin. */
export async function* onlineBackup({ database, files, prefix, ended }: OnlineBackupOptions): AsyncGenerator<Uint8Array, void, undefined> {
    const named = (name: string): string => (prefix === undefined ? name : `${prefix}/${name}`);
    await database.query(`select pg_catalog.pg_backup_start('scanwire', fast := true)`);
    let stopped = false;
    try {
        for await (const { name, isFolder } of entriesOf(files)) {
            yield* isFolder ? [tarFolder(named(name))] : copyOf(join(files, name), named(name), ended);
        }
        yield* copyOf(join(files, CONTROL), named(CONTROL), ended);

        const { rows } = await database.query<Stopped>(STOP);
        stopped = true;
        const { label, first, last } = rows[0] as Stopped;
        for (const segment of (await readdir(join(files, WAL))).filter((name) => name >= first && name <= last).sort()) {
            yield* copyOf(join(files, WAL, segment), named(`${WAL}/${segment}`), ended);
        }
        yield* tarEntry(named('backup_label'), Buffer.from(label));
        yield TAR_END;
    } finally {
        if (!stopped && !ended()) {
            await database.query('select pg_catalog.pg_backup_stop(wait_for_archive := false)');
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

/** Folders before what is in them; the paths from the data directory on. */
async function* entriesOf(files: string, folder = ''): AsyncGenerator<{ readonly name: string; readonly isFolder: boolean }> {
    for (const entry of await readdir(join(files, folder), { withFileTypes: true })) {
        const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) {
            yield { name, isFolder: true };
            yield* LEFT_OUT.has(name) ? [] : entriesOf(files, name);
        } else if (belongs(entry, name)) {
            yield { name, isFolder: false };
        }
    }
}

function belongs(entry: Dirent, name: string): boolean {
    return entry.isFile() && name !== CONTROL && !OF_THE_PROCESS.has(entry.name) && !entry.name.startsWith('pgsql_tmp');
}

/**
 * A file as long as it was when it was opened: what is added later is in the log, and where it was cut off meanwhile zeros stand, which the log cuts
 * off again. One that is gone by now is no part of the copy.
 */
async function* copyOf(path: string, name: string, ended: () => boolean): AsyncGenerator<Uint8Array> {
    const file = await open(path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') {
            return null;
        }

        throw error;
    });
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
            yield chunk;
        }
        yield tarPadding(size);
    } finally {
        await file.close();
    }
}
