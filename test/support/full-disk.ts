import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Whoever runs the server, where that is not this user. */
interface User {
    readonly uid: number;
    readonly gid: number;
}

/** Sets the limit of the processes that are there, which their children take over. One may have ended meanwhile. */
const SET_LIMIT = 'limit=$1; shift; for id in "$@"; do prlimit --pid "$id" --fsize="$limit:" 2>/dev/null; done; true';

/**
 * Fills the disk of a server, or makes room again: none of its processes can write beyond so many bytes of a file. The system refuses that
 * with EFBIG where a disk without room has ENOSPC, and every write that is refused is a real one. Needs Linux, and no rights but those of
 * the user whom the server runs as. The server must ignore SIGXFSZ, as PostgreSQL does for this very purpose.
 *
 * @param bytes Null for room without a limit.
 */
export async function limitFiles(server: number, bytes: number | null, user?: User): Promise<void> {
    const limit = bytes === null ? 'unlimited' : String(bytes);
    const set = (ids: readonly string[]): Promise<unknown> => run('sh', ['-c', SET_LIMIT, 'sh', limit, ...ids], { ...user });
    // What it starts from now on is limited too, so that nobody slips through.
    await set([String(server)]);
    const [, found = limit] = /^Max file size\s+(\S+)/m.exec(said(server, 'limits')) ?? [];
    if (found !== limit) {
        throw new Error(`The files of process ${server} are limited to ${found}, and not to ${limit}: is there the program prlimit?`);
    }
    await set(said(server, `task/${server}/children`).split(' '));
}

/** What the system says of a process; nothing of one that has ended, as servers may as soon as they cannot write. */
function said(server: number, what: string): string {
    try {
        return readFileSync(`/proc/${server}/${what}`, 'utf8').trim();
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT' || (error as NodeJS.ErrnoException).code === 'ESRCH') {
            return '';
        }
        throw error;
    }
}
