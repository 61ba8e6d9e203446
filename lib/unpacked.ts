import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { openingOf, startsWith } from './opening.ts';
import { ScanwireError } from './scanwire-error.ts';

const GZIP = [0x1f, 0x8b];

/** An expanded file may be this many times as large as its gzip form, from the first so many bytes on. */
const EXPANSION_LIMIT = 250;
const EXPANSION_FREE = 64 * 1024 * 1024;

/**
 * The bytes of a file, unpacked where its first ones say that it is gzip.
 *
 * @throws ScanwireError `INVALID_INPUT` for gzip that is damaged or expands beyond all measure.
 */
export async function* unpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const opening = await openingOf(source, GZIP.length);
    try {
        yield* startsWith(opening.head, GZIP) ? gunzip(opening) : opening;
    } finally {
        await opening.return();
    }
}

async function* gunzip(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const unpacking = createGunzip();
    const stream = Readable.from(source, { objectMode: false }).on('error', (error) => unpacking.destroy(error));
    let expanded = 0;
    try {
        for await (const chunk of stream.pipe(unpacking)) {
            expanded += chunk.byteLength;
            if (expanded > EXPANSION_FREE && expanded > unpacking.bytesWritten * EXPANSION_LIMIT) {
                throw new ScanwireError('INVALID_INPUT', `The gzip file expands more than ${EXPANSION_LIMIT} times: not read any further`);
            }

            yield chunk;
        }
    } catch (error) {
        throw isZlibError(error) ? new ScanwireError('INVALID_INPUT', 'The gzip file is damaged or was cut off', { cause: error }) : error;
    } finally {
        stream.destroy();
        unpacking.destroy();
    }
}

function isZlibError(error: unknown): boolean {
    return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_');
}
