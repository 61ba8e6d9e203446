import { statfs } from 'node:fs/promises';
import { type Finding, found } from '../lib/webhooks/observing/finding.ts';

/** What the database and its log need before somebody can look, and what is worth a warning, in bytes. */
const [TOO_LITTLE, LITTLE] = [256 * 2 ** 20, 2 * 2 ** 30];

/** How much of a disk there is: blocks that are free to us, and the bytes of one. */
type ReadDisk = (path: string) => Promise<{ readonly bavail: number; readonly bsize: number }>;

/** Whether there is room on the disk of the folder of that path, as the doctor says it. */
export async function diskFinding(path: string, read: ReadDisk = statfs): Promise<Finding> {
    const { bavail, bsize } = await read(path);
    const free = bavail * bsize;
    const values = [(free / 2 ** 30).toFixed(1), path];
    return free >= LITTLE
        ? found('disk', 'ok', 'disk_free', values)
        : found('disk', free < TOO_LITTLE ? 'wrong' : 'warning', 'disk_full', values);
}
