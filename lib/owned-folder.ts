import { chmod, lstat, mkdir, readdir } from 'node:fs/promises';
import { ScanwireError } from './errors.ts';

/** How whoever is told of a folder has named it. */
export interface FolderOption {
    /** The option, as errors have it for programs. */
    readonly field: string;
    /** What people read after "name another folder". */
    readonly by: string;
}

/** Rights of group and others. */
const OTHERS = 0o077;

/**
 * Makes the folder unless it exists, for the owner's eyes only. From one that is there and empty the rights of others are taken away.
 *
 * @returns What it holds, once that is known to be its owner's alone.
 * @throws ScanwireError `MISCONFIGURED` for a folder that is a link, belongs to somebody else or lets others in; what the file system says
 *     is thrown as it is.
 */
export async function makeOwnedFolder(path: string, option: FolderOption): Promise<readonly string[]> {
    await mkdir(path, { recursive: true, mode: 0o700 });
    const mode = await assertOwned(path, option);
    if ((mode & OTHERS) !== 0 && (await readdir(path)).length === 0) {
        await chmod(path, 0o700);
    }

    return await namesInOwned(path, option);
}

/** What a folder that is there holds. @throws What {@link makeOwnedFolder} does. */
export async function namesInOwned(path: string, option: FolderOption): Promise<readonly string[]> {
    await assertOwned(path, option);
    const names = await readdir(path);
    await assertOwned(path, option, names);
    return names;
}

/** Its mode. @param names What it holds: as long as that is nothing, others may look. */
async function assertOwned(path: string, option: FolderOption, names: readonly string[] = []): Promise<number> {
    const found = await lstat(path);
    if (found.isSymbolicLink()) {
        throw linkedFolder(path, option);
    }

    const user = process.getuid?.();
    if (user !== undefined && found.uid !== user) {
        const who = `belongs to user ${found.uid} and not to ${user}, who runs this (mode ${modeText(found.mode)})`;
        throw refusedFolder(`${path} ${who}: name another folder${option.by}`, option);
    }

    if (user !== undefined && (found.mode & OTHERS) !== 0 && names.length > 0) {
        const open = `of user ${user} has mode ${modeText(found.mode)}, so that others can reach what is in it`;
        throw refusedFolder(`${path} ${open}. If nobody did, say: chmod 700 ${quoted(path)}`, option);
    }

    return found.mode;
}

function modeText(mode: number): string {
    return (mode & 0o7777).toString(8).padStart(4, '0');
}

/** What is said of a link in the place of a folder: whoever may change it has the folder. */
export function linkedFolder(path: string, option: FolderOption): ScanwireError {
    return refusedFolder(`${path} is a link: name the folder that it leads to${option.by}`, option);
}

/** What is said of a folder that is not taken. */
export function refusedFolder(message: string, { field }: FolderOption): ScanwireError {
    return new ScanwireError('MISCONFIGURED', message, { field });
}

/** For a shell, as one word. */
export function quoted(text: string): string {
    return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
