import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompress, constants } from 'node:zlib';
import { unpackTar } from '../../lib/tar.ts';

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

/** Unpacks the archive into a folder that does not exist yet. */
export async function unpackTemplate(archive: string, folder: string): Promise<void> {
    await unpackTar([await readTemplate(archive)], folder);
}
