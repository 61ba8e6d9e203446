/*
 * Done by hand where `proper-lockfile` would nearly do: that one takes a lock over after a time without a sign of life, and the process
 * that was merely stopped would wake up in a folder that another has opened.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../../lib/errors.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from '../../lib/process-identity.ts';

const FILE = 'database.lock';
/** Making a file and writing it takes less than this many milliseconds, or was cut off by the death of the process. */
const UNFINISHED_AFTER = 5_000;
const RETRY_MS = 20;

/**
 * Takes the folder for this process. Two processes that open one PGlite folder destroy it, so the lock yields to nothing but the
 * death of its holder; what a holder that died has left behind is cleared away.
 *
 * @returns Gives the folder back.
 * @throws ScanwireError `MISCONFIGURED` while a living process holds the folder.
 */
export async function lockFolder(folder: string): Promise<() => void> {
    const file = join(folder, FILE);
    const mine = JSON.stringify(ownIdentity());

    for (;;) {
        if (create(file, mine)) {
            return () => {
                if (read(file) === mine) {
                    rmSync(file, { force: true });
                }
            };
        }

        const found = read(file);
        if (found !== null) {
            assertAbandoned(found, file, folder);
            if (!clear(file, found)) {
                await sleep(RETRY_MS);
            }
        }
    }
}

function create(file: string, content: string): boolean {
    try {
        writeFileSync(file, content, { flag: 'wx', mode: 0o600 });
        return true;
    } catch (error) {
        if (hasCode(error, 'EEXIST')) {
            return false;
        }

        throw error;
    }
}

function read(file: string): string | null {
    try {
        return readFileSync(file, 'utf8');
    } catch (error) {
        if (hasCode(error, 'ENOENT')) {
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
        rmSync(file, { force: true });
    }

    rmSync(guard, { force: true });
    return true;
}

function assertAbandoned(content: string, file: string, folder: string): void {
    const holder = parse(content);
    if (holder === null && age(file) < UNFINISHED_AFTER) {
        throw inUse(folder, 'a process that is just opening it');
    }

    if (holder !== null && isAlive(holder)) {
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

function parse(content: string): ProcessIdentity | null {
    try {
        const { pid, started } = JSON.parse(content) as Partial<ProcessIdentity>;
        return Number.isInteger(pid) ? { pid: Number(pid), started: String(started ?? '') } : null;
    } catch {
        return null;
    }
}

function hasCode(error: unknown, code: string): boolean {
    return (error as NodeJS.ErrnoException).code === code;
}
