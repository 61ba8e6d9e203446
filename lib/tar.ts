import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorCode, ScanwireError } from './errors.ts';

/*
 * Tar files of our own making, and those of PGlite. By hand: they hold plain files and folders only, and PGlite's `loadDataDir` makes
 * the first start 0.4 to 1.8 s longer.
 */

/** Any iterable of bytes. */
type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const BLOCK = 512;
const MAX_NAME = 100;
const FILE = '0';
const FOLDER = '5';
/** What an entry is, by its type; a link or a device is nothing that comes from us. */
const KINDS: Readonly<Record<string, EntryKind>> = { [FILE]: 'file', [FOLDER]: 'folder' };
/** Below the folder, or its root as PGlite writes it: no name leads out of it. */
const PLAIN_NAME = /^\/?(?!\.{1,2}(?:\/|$))[\w.-]+(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)*$/;
const OCTAL = /^[0-7]+ ?$/;
/** Where a header has the sum of its bytes, and in how many. */
const SUM = { at: 148, length: 8 };

/** Whether an entry of this name can be written here, and is taken by {@link unpackTar}. */
export function isEntryName(name: string): boolean {
    return name.length <= MAX_NAME && PLAIN_NAME.test(name);
}

/** What is unpacked; an archive may have both only. */
export type EntryKind = 'file' | 'folder';

/** Whether an entry belongs into an archive, by its name as it stands there. */
export type Belongs = (name: string, kind: EntryKind) => boolean;

const ZEROS = Buffer.alloc(BLOCK);

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
    return header(name, { mode: '0000700', size: 0, type: FOLDER });
}

function header(name: string, { mode, size, type }: { readonly mode: string; readonly size: number; readonly type: string }): Buffer {
    // A longer one would be cut off, and be that of another file.
    if (name.length > MAX_NAME || Buffer.from(name, 'latin1').toString('latin1') !== name) {
        throw new ScanwireError('INVALID_INPUT', `A name in a tar file must have at most ${MAX_NAME} characters of Latin 1: ${name}`);
    }

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
 * @param belongs Asked of each entry, whose name leads nowhere out of the folder; all do by default.
 * @throws ScanwireError `INVALID_INPUT` for what is no tar file or was cut off, and for an entry, which it names, that does not belong into it,
 *     is neither a file nor a folder, or takes the place of another one; what the source throws.
 */
export async function unpackTar(tar: Bytes, folder: string, belongs: Belongs = () => true): Promise<void> {
    await mkdir(folder, { mode: 0o700 });
    const reader = readerOf(tar);
    try {
        // The end is said by a block of zeros.
        for (let header = await reader.block(); !header.equals(ZEROS); header = await reader.block()) {
            const entry = entryOf(header, belongs);
            await write(entry, folder, reader.take(entry.size));
            for await (const _ of reader.take(paddingOf(entry.size))) {
                // Nobody's bytes.
            }
        }

        await reader.drain();
    } finally {
        await reader.close();
    }
}

interface Entry {
    /** As it stands there. */
    readonly name: string;
    /** In bytes; a folder has none. */
    readonly size: number;
    readonly kind: EntryKind;
}

function entryOf(header: Buffer, belongs: Belongs): Entry {
    if (Number.parseInt(text(header, SUM.at, SUM.length), 8) !== sumOf(header)) {
        throw new ScanwireError('INVALID_INPUT', 'The archive is no tar file');
    }

    const name = [text(header, 345, 155), text(header, 0, 100)].filter((part) => part !== '').join('/');
    const kind = KINDS[text(header, 156, 1)];
    if (kind === undefined) {
        throw refused(name, 'which is neither a file nor a folder');
    }

    if (!PLAIN_NAME.test(name) || !belongs(name, kind)) {
        throw refused(name, 'which does not belong into it');
    }

    const size = text(header, 124, 12);
    if (!OCTAL.test(size) || (kind === 'folder' && Number.parseInt(size, 8) > 0)) {
        throw refused(name, 'whose size is none');
    }

    return { name, size: Number.parseInt(size, 8), kind };
}

function refused(name: string, why: string, cause?: unknown): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `The archive has ${JSON.stringify(name)}, ${why}`, { cause });
}

/** What comes up where one entry is in the place of another one. */
const TAKEN: ReadonlySet<string> = new Set(['EEXIST', 'EISDIR', 'ENOTDIR']);

async function write({ name, kind }: Entry, folder: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(folder, name);
    try {
        await mkdir(kind === 'folder' ? path : dirname(path), { recursive: true, mode: 0o700 });
        if (kind === 'file') {
            await writeFile(path, content, { mode: 0o600, flag: 'wx' });
        }
    } catch (cause) {
        throw TAKEN.has(errorCode(cause)) ? refused(name, 'which takes the place of another entry', cause) : cause;
    }
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
