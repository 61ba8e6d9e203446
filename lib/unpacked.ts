import { constants, createGunzip, type Gunzip, gunzipSync } from 'node:zlib';
import { errorCode } from './error-code.ts';
import { type Opening, openingOf, startsWith } from './opening.ts';
import { ScanwireError } from './scanwire-error.ts';

const GZIP = [0x1f, 0x8b];

/** What other packers begin with, and no text does. */
const OTHERS: readonly (readonly [name: string, start: string])[] = [
    ['a zip file', 'PK\x03\x04'],
    ...Array.from('123456789', (level) => ['packed with bzip2', `BZh${level}1AY&SY`] as const),
    ['packed with xz', '\xfd7zXZ\0'],
    ['packed with zstd', '\x28\xb5\x2f\xfd'],
];
const LONGEST = 10;

/** In bytes. Larger chunks cost memory, smaller ones a switch of threads each. */
const CHUNK = 131_072;

/** An expanded file may be this many times as large as its gzip form, from the first so many bytes on. */
const EXPANSION_LIMIT = 250;
const EXPANSION_FREE = 64 * 1024 * 1024;

/** Gzip that cannot be read any further, or what is packed in another way. */
export class GzipError extends ScanwireError {
    constructor(message: string, cause?: unknown) {
        super('INVALID_INPUT', message, { cause });
    }
}

/**
 * The bytes of a file, unpacked where its first ones say that it is gzip, of one member or of several. What comes before
 * the end of a file that was cut off is handed on before the error.
 *
 * @throws GzipError for gzip that is damaged, cut off or expands beyond all measure, and for other archives.
 */
export async function* unpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const opening = await openingOf(source, LONGEST);
    if (startsWith(opening.head, GZIP)) {
        yield* gunzip(opening);
        return;
    }

    try {
        assertReadable(opening.head);
        yield* opening;
    } finally {
        await opening.return();
    }
}

function assertReadable(head: Uint8Array): void {
    const text = Buffer.from(head.subarray(0, LONGEST)).toString('latin1');
    const other = OTHERS.find(([, start]) => text.startsWith(start));
    if (other !== undefined) {
        throw new GzipError(`The file is ${other[0]}: unpack it first, only gzip is read packed`);
    }
}

async function* gunzip(source: Opening): AsyncGenerator<Uint8Array, void, undefined> {
    const unpacking = createGunzip({ chunkSize: CHUNK });
    let wake = (): void => {};
    const fed = feed(source, unpacking, () => new Promise((resolve) => (wake = resolve)));
    let expanded = 0;
    try {
        for await (const chunk of unpacking as AsyncIterable<Uint8Array>) {
            wake();
            expanded += chunk.byteLength;
            if (expanded > EXPANSION_FREE && expanded > unpacking.bytesWritten * EXPANSION_LIMIT) {
                throw new GzipError(`The gzip file expands more than ${EXPANSION_LIMIT} times: not read any further`);
            }

            yield chunk;
        }

        if (!(await fed)) {
            throw new GzipError('The gzip file has padding with something behind it: not read any further');
        }
    } catch (error) {
        if (!isZlibError(error)) {
            throw error;
        }

        if (expanded === 0) {
            yield beginning(source.head);
        }

        throw new GzipError('The gzip file is damaged or was cut off', error);
    } finally {
        unpacking.destroy();
        wake();
        void source.return();
    }
}

/**
 * What can be unpacked of a small file before an error in it, for zlib throws away what it unpacked in the same step: the longest
 * beginning without an error. Of a larger file that is no more than a chunk.
 */
function beginning(head: Uint8Array): Uint8Array {
    let unpacked = new Uint8Array(0);
    let good = 0;
    let bad = head.length + 1;
    while (bad - good > 1) {
        const middle = (good + bad) >>> 1;
        try {
            unpacked = gunzipSync(head.subarray(0, middle), { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 * CHUNK });
            good = middle;
        } catch {
            bad = middle;
        }
    }

    return unpacked;
}

/**
 * Never rejects: what goes wrong is an error of the stream. The end is told only when all is unpacked and taken, since the news
 * that the file was cut off throws away what is not.
 *
 * @param taken Resolves when the next chunk is taken, or nobody wants more.
 * @returns Whether all was unpacked but zeros at the end. zlib passes over whatever follows them.
 */
async function feed(source: Opening, unpacking: Gunzip, taken: () => Promise<void>): Promise<boolean> {
    let given = 0;
    let left = 0;
    let isPadded = true;
    try {
        for await (const chunk of source) {
            if (left === 0 && !(await written(chunk, unpacking)) && !unpacking.readableEnded) {
                break;
            }

            given += chunk.byteLength;
            left = Math.min(chunk.byteLength, given - unpacking.bytesWritten);
            isPadded = chunk.subarray(chunk.byteLength - left).every((byte) => byte === 0);
            if (!isPadded) {
                break;
            }
        }

        while (unpacking.readableLength > 0 && !unpacking.destroyed) {
            await taken();
        }

        unpacking.end();
    } catch (error) {
        unpacking.destroy(error as Error);
    } finally {
        await source.return();
    }

    return isPadded;
}

/** False when the stream takes no more: it was destroyed, or only padding follows the last member. */
function written(chunk: Uint8Array, unpacking: Gunzip): Promise<boolean> {
    return new Promise((resolve) => {
        const closed = (): void => resolve(false);
        unpacking.once('close', closed);
        unpacking.write(chunk, (error) => {
            unpacking.off('close', closed);
            resolve(error == null);
        });
    });
}

function isZlibError(error: unknown): boolean {
    return errorCode(error).startsWith('Z_');
}
