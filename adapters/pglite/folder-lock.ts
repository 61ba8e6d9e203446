import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../../lib/errors.ts';

/** A process as the lock file names it. The start tells it from a later process with the same pid. */
interface Holder {
    readonly pid: number;
    /** When the process started, in whatever form the system tells it; `''` where it does not. */
    readonly started: string;
}

const FILE = 'database.lock';
/** Steps that follow one another at once take less than this many milliseconds, or were cut off by the death of the process. */
const AT_ONCE = 5_000;
const NEXT_TRY = 20;

/**
 * Takes the folder for this process. Two processes that open one PGlite folder destroy it, so the lock yields to nothing but the
 * death of its holder; what a holder that died has left behind is cleared away.
 *
 * @returns Gives the folder back.
 * @throws ScanwireError `MISCONFIGURED` while a living process holds the folder.
 */
export async function lockFolder(folder: string): Promise<() => void> {
    const file = join(folder, FILE);
    const mine = JSON.stringify(self());

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
                await sleep(NEXT_TRY);
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
        if (age(guard) > AT_ONCE) {
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
    if (holder === null && age(file) < AT_ONCE) {
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

function parse(content: string): Holder | null {
    try {
        const { pid, started } = JSON.parse(content) as Partial<Holder>;
        return Number.isInteger(pid) ? { pid: Number(pid), started: String(started ?? '') } : null;
    } catch {
        return null;
    }
}

function self(): Holder {
    return { pid: process.pid, started: startOf(process.pid) ?? '' };
}

function isAlive({ pid, started }: Holder): boolean {
    try {
        process.kill(pid, 0);
    } catch (error) {
        if (hasCode(error, 'ESRCH')) {
            return false;
        }
    }

    const now = startOf(pid);
    return now !== null && (started === '' || now === '' || started === now);
}

/**
 * When a process started, null if it has ended. Linux tells the boot and the clock tick, other Unix systems the second by `ps`;
 * Windows tells nothing: there a lock left behind by a crash stays as long as its pid is taken.
 */
function startOf(pid: number): string | null {
    try {
        const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return fields[STATE] === 'Z' ? null : `${boot}/${fields[START]}`;
    } catch {
        // Not Linux, or not there any more: ps knows.
    }

    try {
        return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env: { LC_ALL: 'C', TZ: 'UTC' } }).trim();
    } catch {
        return '';
    }
}

/** Indexes of the fields 3 and 22 of /proc/PID/stat, counted from the one after the process's name. */
const STATE = 0;
const START = 19;

function hasCode(error: unknown, code: string): boolean {
    return (error as NodeJS.ErrnoException).code === code;
}
