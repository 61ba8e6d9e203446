import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process, as a file names it so that another process can tell whether it still runs. */
export interface ProcessIdentity {
    readonly pid: number;
    /** When it started, in whatever notation the system tells it: this tells it from a later process with the same pid. `''` where unknown. */
    readonly started: string;
}

/** This process. @param proc Where Linux tells of its processes. */
export function ownIdentity(proc: string = PROC): ProcessIdentity {
    return { pid: process.pid, started: startOf(process.pid, proc) ?? '' };
}

/**
 * Whether the process still runs. Without its start, any process with its pid is taken for it.
 *
 * @param proc Where Linux tells of its processes.
 */
export function isAlive({ pid, started }: ProcessIdentity, proc: string = PROC): boolean {
    try {
        process.kill(pid, 0);
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ESRCH') {
            return false;
        }
    }

    const now = startOf(pid, proc);
    return now !== null && (started === '' || now === '' || started === now);
}

/**
 * Tells the time between two starts of this machine from every other, and this machine from others; containers on it share it. `''` where
 * the system does not tell.
 *
 * @param proc Where Linux tells of its processes.
 */
export function ownBoot(proc: string = PROC): string {
    try {
        return readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim();
    } catch {
        // Not Linux: macOS tells it as well.
    }

    try {
        return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    } catch {
        return '';
    }
}

const PROC = '/proc';
/** Indexes of the fields 3 and 22 of /proc/PID/stat, counted from the one after the process's name. */
const STATE = 0;
const START = 19;

/**
 * When a process started, null if it has ended. Linux tells the boot and the clock tick, other Unix systems the second by `ps`;
 * Windows tells nothing.
 */
function startOf(pid: number, proc: string): string | null {
    try {
        const boot = readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim();
        const stat = readFileSync(`${proc}/${pid}/stat`, 'utf8');
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return fields[STATE] === 'Z' ? null : `${boot}/${fields[START]}`;
    } catch {
        // Not Linux, or not there any more: ps knows.
    }

    try {
        return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env: { LC_ALL: 'C', TZ: 'UTC' } }).trim();
        /* c8 ignore next 3 -- only Windows has no ps */
    } catch {
        return '';
    }
}
