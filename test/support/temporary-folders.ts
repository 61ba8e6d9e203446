import {
    chmodSync,
    lstatSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statfsSync,
    symlinkSync,
    unlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** Where Linux has a file system in memory that everybody may write to. */
const MEMORY = '/dev/shm';

/** More than all tests of a run have there at a time, with room for the processes beside them, in bytes. */
const ROOM = 4 * 2 ** 30;

/** A folder for what the tests of a run write. */
export interface FolderInMemory {
    readonly path: string;
    /** A link to a folder in it, for those that tap makes for tests: tap leaves the working directory for one that is not below it. */
    readonly link: string;
    remove(): void;
}

/**
 * A folder in memory. Databases are a thousand files each, made and removed hundreds of times: on a disk that takes up to half of the processor's time of
 * such a test, in the kernel, which looks for inodes that were not used a moment ago. Undefined where there is none with enough room, or none that
 * programs may be run in, as in many containers.
 */
export function folderInMemory(): FolderInMemory | undefined {
    if (!isOfUse(MEMORY)) {
        return undefined;
    }

    removeLeft();
    const path = mkdtempSync(join(MEMORY, `scanwire-${process.pid}-`));
    // PostgreSQL runs as another user where this one is root.
    chmodSync(path, 0o711);
    const link = join('.tap', basename(path));
    mkdirSync(join(path, 'tests'));
    mkdirSync('.tap', { recursive: true });
    symlinkSync(join(path, 'tests'), link);
    const remove = (): void => {
        unlinkSync(link);
        rmSync(path, { recursive: true, force: true });
    };
    return { path, link, remove };
}

/** A new folder that the user of a server may enter, who is another one where this one is root. */
export function folderOfServers(name: string): string {
    const place = process.getuid?.() === 0 && !tmpdir().startsWith(MEMORY) ? '/tmp' : tmpdir();
    const folder = mkdtempSync(join(place, `${name}-`));
    chmodSync(folder, 0o755);
    return folder;
}

function isOfUse(memory: string): boolean {
    if (process.platform !== 'linux') {
        return false;
    }

    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n');
    const [, , type, flags = ''] = mounts.findLast((line) => line.split(' ')[1] === memory)?.split(' ') ?? [];
    const runsPrograms = !flags.split(',').includes('noexec');
    return type === 'tmpfs' && runsPrograms && Math.min(roomOf(memory), process.availableMemory()) >= ROOM;
}

function roomOf(folder: string): number {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
}

/** Removes what runs have left that were killed: it would take up memory until the machine is started again. */
function removeLeft(): void {
    for (const name of readdirSync(MEMORY)) {
        const [, id] = /^scanwire-(\d+)-/.exec(name) ?? [];
        const path = join(MEMORY, name);
        if (id !== undefined && lstatSync(path).uid === process.getuid?.() && !isRunning(Number(id))) {
            rmSync(path, { recursive: true, force: true });
            rmSync(join('.tap', name), { force: true });
        }
    }
}

function isRunning(id: number): boolean {
    try {
        return process.kill(id, 0);
    } catch (error) {
        // It may be somebody else's by now.
        return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
}
