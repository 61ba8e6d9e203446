import { createWriteStream, fstatSync, type WriteStream } from 'node:fs';
import { chmod, link, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { errorCode, ScanwireError } from '../../lib/errors.ts';
import { fileError } from './errors.ts';

/** Bytes, or texts that become UTF-8. */
type Pieces = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>;

/** When a file may be written. */
export interface OutputRules {
    /** Is asked when it is whole; without its consent what was there before stays. */
    readonly isWanted?: () => boolean;
    /** Whether it may take the place of one that is there. True by default. */
    readonly replaces?: boolean;
    /** Of a file that is not there yet, for example `0o600`; else the one that new files get. */
    readonly mode?: number;
}

/**
 * Writes bytes to stdout or to a file. The file has its name only when it is whole: until then it is `<file>.<pid>.partial`. One that
 * was there before keeps its mode. A device or a pipe is written to as it is. By hand, since write-file-atomic wants all of a file at
 * once: files of records are larger than the memory.
 *
 * @throws ScanwireError `INVALID_INPUT` when the file cannot be written, `CONFLICT` when it is there and may not be replaced.
 */
export async function writeOutput(bytes: Pieces, file: string | undefined, rules: OutputRules = {}): Promise<void> {
    if (file === undefined) {
        await pipeline(bytes, process.stdout, { end: false });
        return;
    }

    try {
        const target = await targetAt(file);
        if (target?.mode !== undefined && rules.replaces === false) {
            throw existsAlready(file);
        }

        await (target === null ? pipeline(bytes, createWriteStream(file)) : writeWhole(target, bytes, rules));
    } catch (error) {
        throw errorCode(error) === 'EEXIST' ? existsAlready(file) : unwritable(file, error);
    }
}

function existsAlready(file: string): ScanwireError {
    return new ScanwireError('CONFLICT', `${file} exists already: name another file, or replace it with --force`, { field: 'output' });
}

/** The file behind links, and the mode of one that is there; null for what is there and no file: it must not be replaced by one. */
async function targetAt(file: string): Promise<{ readonly file: string; readonly mode?: number } | null> {
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

/** Those that this process writes now: a server may write two backups to one file at once. */
const partials = new Set<string>();

function freePartial(file: string): string {
    let partial = `${file}.${process.pid}.partial`;
    for (let number = 2; partials.has(partial); number += 1) {
        partial = `${file}.${process.pid}-${number}.partial`;
    }

    return partial;
}

async function writeWhole(
    { file, mode }: { readonly file: string; readonly mode?: number },
    bytes: Pieces,
    { isWanted = () => true, replaces = true, mode: newMode }: OutputRules,
): Promise<void> {
    const partial = freePartial(file);
    partials.add(partial);
    try {
        // A link that somebody put there would lead elsewhere.
        await rm(partial, { force: true });
        await pipeWhole(bytes, createWriteStream(partial, { flags: 'wx', flush: true, mode: mode ?? newMode ?? 0o666 }));
        if (mode !== undefined) {
            // What the umask took away.
            await chmod(partial, mode);
        }

        if (isWanted()) {
            // Unlike a rename, a link never takes the place of a file that has come meanwhile.
            await (replaces ? rename : link)(partial, file);
        }
        await rm(partial, { force: true });
    } catch (error) {
        // What went wrong first is what is said.
        await rm(partial, { force: true }).catch(() => {});
        throw error;
    } finally {
        partials.delete(partial);
    }
}

/** Resolves, or rejects, once the file is closed: one whose source fails at once may still be about to be made. */
async function pipeWhole(bytes: Pieces, output: WriteStream): Promise<void> {
    const closed = new Promise<void>((resolve) => output.once('close', resolve));
    try {
        await pipeline(bytes, output);
    } finally {
        await closed;
    }
}

/** What is said of an error in writing a file; an error that is not of the file system stays as it is. */
export function unwritable(file: string, cause: unknown): unknown {
    return (cause as NodeJS.ErrnoException).syscall === undefined ? cause : fileError('write', file, cause);
}

/**
 * Looks whether the results can go where they shall, before the work that ends in them.
 *
 * @param file Where the records come from, `-` for stdin.
 * @param output Where they go; it may be where they come from.
 * @returns Whether the records go to the file that they come from.
 * @throws ScanwireError `INVALID_INPUT` when a path is a folder, its folder is not there, or the report would replace records.
 */
export async function assertWritable(file: string, output: string | undefined, report: string | undefined): Promise<boolean> {
    const outputAt = output === undefined ? null : await realPathOf(output);
    const reportAt = report === undefined ? null : await realPathOf(report);
    const isSource = file === '-' ? isStdin : await isFile(file);
    if (reportAt !== null && (reportAt === outputAt || (await isSource(reportAt)))) {
        throw new ScanwireError('INVALID_INPUT', `Cannot write the report to ${report}: the records are there`, { field: 'report' });
    }

    return outputAt !== null && (await isSource(outputAt));
}

/** Whether a path, without links, leads to what a shell reads from for us: it has opened the file and told no path. */
async function isStdin(path: string): Promise<boolean> {
    const found = await stat(path, { bigint: true }).catch(() => null);
    if (found?.isFile() !== true) {
        return false;
    }

    const stdin = fstatSync(0, { bigint: true });
    return found.ino === stdin.ino && found.dev === stdin.dev;
}

/** The same for a file that has a path. */
async function isFile(file: string): Promise<(path: string) => boolean> {
    const at = await realPathOf(file).catch(() => null);
    return (path) => path === at;
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
