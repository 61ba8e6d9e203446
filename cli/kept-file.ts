import { randomUUID } from 'node:crypto';
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

const OWNER_ONLY = 0o600;

/** The text of the file, null when there is none. */
export async function readKept(path: string): Promise<string | null> {
    try {
        return await readFile(path, 'utf8');
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
            return null;
        }

        throw error;
    }
}

/**
 * The text of the file, made now when there is none. Of several processes that make it at once one wins, and all of them
 * answer with what is on disk.
 */
export async function keptOrMade(path: string, make: () => string | Promise<string>): Promise<string> {
    const kept = await readKept(path);
    if (kept !== null) {
        return kept;
    }

    const made = await make();
    return (await place(path, made, link)) ? made : ((await readKept(path)) ?? made);
}

/** Replaces the file at once: whoever reads it sees the old text or the new, never half of one. */
export async function replaceKept(path: string, text: string): Promise<void> {
    await place(path, text, rename);
}

/** False when the file was there already and `move` does not replace. */
async function place(path: string, text: string, move: (from: string, to: string) => Promise<void>): Promise<boolean> {
    const temporary = `${path}.${randomUUID()}`;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    try {
        const file = await open(temporary, 'wx', OWNER_ONLY);
        try {
            await file.writeFile(text);
            await file.sync();
        } finally {
            await file.close();
        }

        await move(temporary, path);
        return true;
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
            return false;
        }

        throw error;
    } finally {
        await rm(temporary, { force: true });
    }
}
