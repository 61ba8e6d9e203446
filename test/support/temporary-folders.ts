import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, symlinkSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Where Linux has a file system in memory that everybody may write to. */
const MEMORY = '/dev/shm';

/** More than all tests of a run have there at a time, with room for the processes beside them, in bytes. */
const ROOM = 8 * 2 ** 30;

/** Where tap makes the folders of tests. */
const OF_TESTS = join('.tap', 'fixtures');

/** A folder for what tests write. */
export interface FolderInMemory {
    readonly folder: string;
    remove(): void;
}

/**
 * A folder in memory, for `TMPDIR`, and for tap's folders of tests, which are there from now on. Databases are a thousand files each, made and removed
 * hundreds of times: on a disk that takes a quarter of the processor's time of all tests, in the kernel, which looks for inodes that were not used a
 * moment ago. Undefined where there is none with enough room, or none that programs may be run in, as in many containers.
 */
export function folderInMemory(): FolderInMemory | undefined {
    removeLink();
    if (!isOfUse(MEMORY)) {
        return undefined;
    }

    const folder = mkdtempSync(join(MEMORY, 'scanwire-'));
    // PostgreSQL runs as another user where this one is root.
    chmodSync(folder, 0o711);
    const ofTests = join(folder, 'fixtures');
    mkdirSync(ofTests);
    mkdirSync(dirname(OF_TESTS), { recursive: true });
    rmSync(OF_TESTS, { recursive: true, force: true });
    symlinkSync(ofTests, OF_TESTS);
    const remove = (): void => {
        removeLink();
        rmSync(folder, { recursive: true, force: true });
    };
    return { folder, remove };
}

/** A new folder that the user of a server may enter, who is another one where this one is root. */
export function folderOfServers(name: string): string {
    const place = process.getuid?.() === 0 && !tmpdir().startsWith(MEMORY) ? '/tmp' : tmpdir();
    const folder = mkdtempSync(join(place, `${name}-`));
    chmodSync(folder, 0o755);
    return folder;
}

/** A run that was killed has left its link. */
function removeLink(): void {
    if (lstatSync(OF_TESTS, { throwIfNoEntry: false })?.isSymbolicLink()) {
        unlinkSync(OF_TESTS);
    }
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
