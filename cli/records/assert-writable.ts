import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { unwritable } from './unwritable.ts';

export interface Places {
    /** Where the records come from. */
    readonly file: string;
    /** Where they go; it may be where they come from. */
    readonly output: string | undefined;
    readonly report: string | undefined;
}

/**
 * Looks whether the results can go where they shall, before the work that ends in them.
 *
 * @throws ScanwireError `INVALID_INPUT` when a place is a folder, its folder is not there, or the report would take the place of
 * records.
 */
export async function assertWritable({ file, output, report }: Places): Promise<void> {
    const outputAt = output === undefined ? null : await placeOf(output);
    const reportAt = report === undefined ? null : await placeOf(report);
    const fileAt = await placeOf(file).catch(() => null);
    if (reportAt !== null && (reportAt === outputAt || reportAt === fileAt)) {
        throw new ScanwireError('INVALID_INPUT', `Cannot write the report to ${report}: the records are there`, { field: 'report' });
    }
}

/** Whether two paths lead to the same file. */
export async function isSamePlace(file: string, other: string): Promise<boolean> {
    const [at, otherAt] = await Promise.all([file, other].map((path) => placeOf(path).catch(() => null)));
    return at !== null && at === otherAt;
}

/** The path without links, of what is not there yet as well. */
async function placeOf(file: string): Promise<string> {
    const found = await stat(file).catch(() => null);
    if (found?.isDirectory() === true) {
        throw new ScanwireError('INVALID_INPUT', `Cannot write ${file}: it is a folder`);
    }

    const place = found === null ? realpath(dirname(file)).then((folder) => join(folder, basename(file))) : realpath(file);
    return await place.catch((error: unknown) => {
        throw unwritable(file, error);
    });
}
