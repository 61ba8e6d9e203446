import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { unwritable } from './unwritable.ts';

/**
 * Looks whether a file can have this name, before the work that ends in it.
 *
 * @throws ScanwireError `INVALID_INPUT` when it is a folder, or its folder is not there.
 */
export async function assertWritable(file: string): Promise<void> {
    try {
        await stat(dirname(file));
    } catch (error) {
        throw unwritable(file, error);
    }

    const found = await stat(file).catch(() => null);
    if (found?.isDirectory()) {
        throw new ScanwireError('INVALID_INPUT', `Cannot write ${file}: it is a folder`);
    }
}
