import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ScanwireError } from './errors.ts';

/*
 * Tar files of our own making, and those of PGlite. By hand: they hold plain files and folders only, and PGlite's `loadDataDir` makes
 * the first start 0.4 to 1.8 s longer.
 */

/** Any iterable of bytes. */
type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const BLOCK = 512;
const FILE = '0';
const DIRECTORY = '5';
/** Where a header has the sum of its bytes, and in how many. */
const SUM = { at: 148, length: 8 };

/** What stands behind the last file. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK);

/** The bytes of a file in a tar file, for its owner's eyes only. */
export function tarEntry(name: string, content: Uint8Array): readonly Uint8Array[] {
    return [tarHeader(name, content.length), content, tarPadding(content.length)];
}

/** What stands before the bytes of a file, of which there have to be `size`. */
export function tarHeader(name: string, size: number): Uint8Array {
    return header(name, { mode: '0000600', size, type: FILE });
}

/** What stands behind so many bytes: files begin where blocks do. */
export function tarPadding(size: number): Uint8Array {
    return Buffer.alloc(paddingOf(size));
}

/** A folder in a tar file, for its owner's eyes only. */
export function tarFolder(name: string): Uint8Array {
    return header(`${name}/`, { mode: '0000700', size: 0, type: DIRECTORY });
}

function header(name: string, { mode, size, type }: { readonly mode: string; readonly size: number; readonly type: string }): Buffer {
    const bytes = Buffer.alloc(BLOCK);
    const fields = [
        [0, name],
        [100, mode],
        [108, '0000000'],
        [116, '0000000'],
        [124, size.toString(8).padStart(11, '0')],
        [136, '00000000000'],
        [156, type],
        [257, 'ustar\x0000'],
    ] as const;
    for (const [at, value] of fields) {
        bytes.write(value, at, 'latin1');
    }

    bytes.write(`${sumOf(bytes).toString(8).padStart(6, '0')}\0 `, SUM.at, 'latin1');
    return bytes;
}

/**
 * Unpacks a tar file into a folder that does not exist yet, as it comes: memory does not depend on its size. It is read to its end, so
 * that the source can tell of damage behind the last file.
 *
 * @throws ScanwireError `INVALID_INPUT` for what is no tar file, was cut off or has files outside of its folder; what the source throws.
 */
export async function unpackTar(tar: Bytes, folder: string): Promise<void> {
    await mkdir(folder, { mode: 0o700 });
    const reader = readerOf(tar);
    try {
        // The end is said by a block of zeros.
        for (let header = await reader.block(); header[0] !== 0; header = await reader.block()) {
            const { path, size, directory } = entryOf(header, folder);
            if (directory) {
                await mkdir(path, { recursive: true, mode: 0o700 });
            } else {
                await mkdir(dirname(path), { recursive: true, mode: 0o700 });
                await writeFile(path, reader.take(size), { mode: 0o600 });
            }

            for await (const _ of reader.take(directory ? size + paddingOf(size) : paddingOf(size))) {
                // Nobody's bytes.
            }
        }

        await reader.drain();
    } finally {
        await reader.close();
    }
}

interface Entry {
    readonly path: string;
    /** In bytes. */
    readonly size: number;
    readonly directory: boolean;
}

function entryOf(header: Buffer, folder: string): Entry {
    if (Number.parseInt(text(header, SUM.at, SUM.length), 8) !== sumOf(header)) {
        throw new ScanwireError('INVALID_INPUT', 'The archive is no tar file');
    }

    const path = join(folder, text(header, 345, 155), text(header, 0, 100));
    if (!`${path}/`.startsWith(`${folder}/`)) {
        throw new ScanwireError('INVALID_INPUT', 'The archive has files outside of its folder');
    }

    return { path, size: Number.parseInt(text(header, 124, 12), 8) || 0, directory: text(header, 156, 1) === DIRECTORY };
}

function readerOf(source: Bytes) {
    const iterator = (async function* () {
        yield* source;
    })();
    let rest: Uint8Array = Buffer.alloc(0);

    /** What there is of the next so many bytes, at least one; null at the end. */
    async function some(max: number): Promise<Uint8Array | null> {
        while (rest.length === 0) {
            const next = await iterator.next();
            if (next.done === true) {
                return null;
            }

            rest = next.value;
        }

        const taken = rest.subarray(0, max);
        rest = rest.subarray(taken.length);
        return taken;
    }

    async function* take(length: number): AsyncGenerator<Uint8Array, void, undefined> {
        for (let missing = length; missing > 0; ) {
            const bytes = await some(missing);
            if (bytes === null) {
                throw new ScanwireError('INVALID_INPUT', 'The archive was cut off');
            }

            missing -= bytes.length;
            yield bytes;
        }
    }

    return {
        take,

        async block(): Promise<Buffer> {
            const pieces: Uint8Array[] = [];
            for await (const bytes of take(BLOCK)) {
                pieces.push(bytes);
            }

            return Buffer.concat(pieces);
        },

        async drain(): Promise<void> {
            rest = Buffer.alloc(0);
            for await (const _ of iterator) {
                // Only the source looks at them.
            }
        },

        async close(): Promise<void> {
            await iterator.return();
        },
    };
}

/** The sum of a header's bytes, with blanks where the sum itself goes. */
function sumOf(header: Buffer): number {
    const blanked = Buffer.from(header).fill(' ', SUM.at, SUM.at + SUM.length);
    return blanked.reduce((total, byte) => total + byte, 0);
}

/** Files begin where blocks do. */
function paddingOf(size: number): number {
    return (BLOCK - (size % BLOCK)) % BLOCK;
}

function text(tar: Buffer, start: number, length: number): string {
    return tar.toString('latin1', start, start + length).replace(/\0.*$/s, '');
}
