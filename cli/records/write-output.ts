import { createWriteStream } from 'node:fs';
import { chmod, realpath, rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { unwritable } from './unwritable.ts';

/**
 * Writes bytes to stdout or to a file. The file has its name only when it is whole: until then it is `<file>.<pid>.partial`. One that
 * was there before keeps its mode. A device or a pipe is written to as it is.
 *
 * @param isWanted Is asked when a file is whole; without its consent what was there before stays.
 * @throws ScanwireError `INVALID_INPUT` when the file cannot be written.
 */
export async function writeOutput(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    file: string | undefined,
    isWanted: () => boolean = () => true,
): Promise<void> {
    if (file === undefined) {
        await pipeline(bytes, process.stdout, { end: false });
        return;
    }

    try {
        const replaced = await replaceable(file);
        await (replaced === null ? pipeline(bytes, createWriteStream(file)) : replace(replaced, bytes, isWanted));
    } catch (error) {
        throw unwritable(file, error);
    }
}

interface Replaceable {
    readonly file: string;
    /** Of the one that is there. */
    readonly mode?: number;
}

/** The file behind links; null for what is there and no file: it must not be replaced by one. */
async function replaceable(file: string): Promise<Replaceable | null> {
    try {
        const found = await stat(file);
        return found.isFile() ? { file: await realpath(file), mode: found.mode } : null;
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return { file };
        }

        throw error;
    }
}

async function replace(
    { file, mode }: Replaceable,
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    isWanted: () => boolean,
): Promise<void> {
    const partial = `${file}.${process.pid}.partial`;
    // A link that somebody put there would lead elsewhere.
    await rm(partial, { force: true });
    try {
        await pipeline(bytes, createWriteStream(partial, { flags: 'wx', flush: true, ...(mode !== undefined && { mode }) }));
        if (mode !== undefined) {
            // What the umask took away.
            await chmod(partial, mode);
        }

        await (isWanted() ? rename(partial, file) : rm(partial));
    } catch (error) {
        // What went wrong first is what is said.
        await rm(partial, { force: true }).catch(() => {});
        throw error;
    }
}
