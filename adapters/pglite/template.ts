import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompress, constants } from 'node:zlib';
import { ScanwireError } from '../../lib/errors.ts';

/** Where `make-template.ts` puts an empty database, so that a first start need not make one (0.5 instead of 3 to 6 seconds). */
export const TEMPLATE: string = fileURLToPath(new URL('./template.tar.br', import.meta.url));

/** The template's file, null when this build has none. */
export function findTemplate(): string | null {
    return existsSync(TEMPLATE) ? TEMPLATE : null;
}

/** The archive's bytes, unpacked: a tar file. */
export async function readTemplate(archive: string): Promise<Buffer<ArrayBuffer>> {
    const params = { [constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 1 };
    return (await promisify(brotliDecompress)(await readFile(archive), { params })) as Buffer<ArrayBuffer>;
}

const BLOCK = 512;
const DIRECTORY = '5';

/** Unpacks the archive into a folder that does not exist yet. */
export async function unpackTemplate(archive: string, folder: string): Promise<void> {
    await unpackTar(await readTemplate(archive), folder);
}

/**
 * Unpacks a tar file into a folder that does not exist yet. By hand, since the archive is one of our own making and PGlite's
 * `loadDataDir` makes the first start 0.4 to 1.8 s longer.
 */
export async function unpackTar(tar: Buffer, folder: string): Promise<void> {
    await mkdir(folder, { mode: 0o700 });

    for (let at = 0; at + BLOCK <= tar.length && tar[at] !== 0; ) {
        const size = Number.parseInt(text(tar, at + 124, 12), 8) || 0;
        const path = join(folder, text(tar, at + 345, 155), text(tar, at, 100));
        if (!`${path}/`.startsWith(`${folder}/`)) {
            throw new ScanwireError('INVALID_INPUT', 'The archive has files outside of its folder');
        }

        if (text(tar, at + 156, 1) === DIRECTORY) {
            await mkdir(path, { recursive: true, mode: 0o700 });
        } else {
            await mkdir(dirname(path), { recursive: true, mode: 0o700 });
            await writeFile(path, tar.subarray(at + BLOCK, at + BLOCK + size), { mode: 0o600 });
        }

        at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    }
}

function text(tar: Buffer, start: number, length: number): string {
    return tar.toString('latin1', start, start + length).replace(/\0.*$/s, '');
}
