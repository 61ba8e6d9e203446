import { createWriteStream } from 'node:fs';
import { chmod, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ScanwireError } from '../../lib/errors.ts';
import { fileError } from '../output/errors.ts';

/**
 * Writes bytes to stdout or to a file. The file has its name only when it is whole: until then it is `<file>.<pid>.partial`. One that
 * was there before keeps its mode. A device or a pipe is written to as it is. By hand, since write-file-atomic wants all of a file at
 * once: files of records are larger than the memory.
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

/** The file behind links, and the mode of one that is there; null for what is there and no file: it must not be replaced by one. */
async function replaceable(file: string): Promise<{ readonly file: string; readonly mode?: number } | null> {
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
    { file, mode }: { readonly file: string; readonly mode?: number },
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

/** What is said of an error in writing a file; an error that is not of the file system stays as it is. */
export function unwritable(file: string, cause: unknown): unknown {
    return (cause as NodeJS.ErrnoException).syscall === undefined ? cause : fileError('write', file, cause);
}

/**
 * Looks whether the results can go where they shall, before the work that ends in them.
 *
 * @param file Where the records come from.
 * @param output Where they go; it may be where they come from.
 * @returns Whether the records go to the file that they come from.
 * @throws ScanwireError `INVALID_INPUT` when a path is a folder, its folder is not there, or the report would replace records.
 */
export async function assertWritable(file: string, output: string | undefined, report: string | undefined): Promise<boolean> {
    const outputAt = output === undefined ? null : await realPathOf(output);
    const reportAt = report === undefined ? null : await realPathOf(report);
    const fileAt = await realPathOf(file).catch(() => null);
    if (reportAt !== null && (reportAt === outputAt || reportAt === fileAt)) {
        throw new ScanwireError('INVALID_INPUT', `Cannot write the report to ${report}: the records are there`, { field: 'report' });
    }

    return outputAt !== null && outputAt === fileAt;
}

/** The path without links, of what is not there yet as well. */
async function realPathOf(file: string): Promise<string> {
    const found = await stat(file).catch(() => null);
    if (found?.isDirectory() === true) {
        throw fileError('write', file, { code: 'EISDIR' });
    }

    const path = found === null ? realpath(dirname(file)).then((folder) => join(folder, basename(file))) : realpath(file);
    return await path.catch((error: unknown) => {
        throw unwritable(file, error);
    });
}
