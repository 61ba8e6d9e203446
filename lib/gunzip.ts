import { constants, crc32, gunzipSync } from 'node:zlib';
import { type ByteReader, byteReader } from './byte-reader.ts';
import { timeSlice } from './clock.ts';
import { errorCode, ScanwireError } from './errors.ts';
import { INFLATED_CHUNK, inflated } from './inflated.ts';
import type { Opening } from './opening.ts';

/*
 * RFC 1952 by hand around zlib's raw inflate: Node's own gunzip throws away what it unpacked last when it meets a wrong checksum or
 * something else behind the end, up to a chunk that was good.
 */

/** The first bytes of a member. */
export const GZIP: readonly number[] = [0x1f, 0x8b];
/** The only method there is. */
const DEFLATE = 8;
const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
const HEADER_CRC = 0x02;
const EXTRA = 0x04;
const NAME = 0x08;
const COMMENT = 0x10;
const RESERVED = 0xe0;

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
 * Unpacks gzip of one member or of several. What was unpacked before an error is handed on before it, but for up to a chunk before
 * damaged data.
 *
 * @throws GzipError for gzip that is damaged, cut off or expands beyond all measure.
 */
export async function* gunzip(source: Opening): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = byteReader(source);
    const yieldIfDue = timeSlice();
    let expanded = 0;
    try {
        do {
            await yieldIfDue();
            await passHeader(bytes);
            let crc = 0;
            let length = 0;
            for await (const chunk of inflated(bytes)) {
                crc = crc32(chunk, crc);
                length += chunk.byteLength;
                expanded += chunk.byteLength;
                if (expanded > EXPANSION_FREE && expanded > bytes.taken * EXPANSION_LIMIT) {
                    throw new GzipError(`The gzip file expands more than ${EXPANSION_LIMIT} times: not read any further`);
                }

                yield chunk;
            }

            const trailer = await exactly(TRAILER_BYTES, bytes);
            if (trailer.readUInt32LE(0) !== crc || trailer.readUInt32LE(4) !== length >>> 0) {
                throw damaged();
            }
        } while (await isMore(bytes));
    } catch (error) {
        if (!isZlibError(error)) {
            throw error;
        }

        if (expanded === 0) {
            yield beginning(source.head);
        }

        throw damaged(error);
    } finally {
        void source.return();
    }
}

function damaged(cause?: unknown): GzipError {
    return new GzipError('The gzip file is damaged or was cut off', cause);
}

async function passHeader(bytes: ByteReader): Promise<void> {
    const header = await bytes.take(HEADER_BYTES);
    if (GZIP.some((byte, index) => index < header.length && header[index] !== byte)) {
        throw new GzipError('The gzip file has something else behind it: not read any further');
    }

    const [, , method, flags = 0] = header;
    if (header.length < HEADER_BYTES || method !== DEFLATE || (flags & RESERVED) !== 0) {
        throw damaged();
    }

    if ((flags & EXTRA) !== 0) {
        await exactly((await exactly(2, bytes)).readUInt16LE(), bytes);
    }

    for (const text of [NAME, COMMENT]) {
        if ((flags & text) !== 0) {
            await passText(bytes);
        }
    }

    await exactly((flags & HEADER_CRC) !== 0 ? 2 : 0, bytes);
}

async function exactly(length: number, bytes: ByteReader): Promise<Buffer> {
    const taken = await bytes.take(length);
    if (taken.length < length) {
        throw damaged();
    }

    return taken;
}

/** It ends with a zero. */
async function passText(bytes: ByteReader): Promise<void> {
    for (let chunk = await bytes.next(); chunk !== null; chunk = await bytes.next()) {
        const end = chunk.indexOf(0);
        if (end >= 0) {
            bytes.giveBack(chunk.subarray(end + 1));
            return;
        }
    }

    throw damaged();
}

/** Whether something follows a member. Zeros at the very end are padding, as tapes have it. */
async function isMore(bytes: ByteReader): Promise<boolean> {
    let isPadded = false;
    for (let chunk = await bytes.next(); chunk !== null; chunk = await bytes.next()) {
        const zeros = chunk.findIndex((byte) => byte !== 0);
        isPadded ||= zeros !== 0;
        if (zeros !== -1 && isPadded) {
            throw new GzipError('The gzip file has padding with something behind it: not read any further');
        }

        if (zeros === 0) {
            bytes.giveBack(chunk);
            return true;
        }
    }

    return false;
}

/**
 * What can be unpacked of a small file before damage in it, for zlib throws away what it unpacked in the same step: the longest
 * beginning without an error. Of a larger file that is no more than a chunk.
 */
function beginning(head: Uint8Array): Uint8Array {
    let unpacked = new Uint8Array(0);
    let good = 0;
    let bad = head.length + 1;
    while (bad - good > 1) {
        const middle = (good + bad) >>> 1;
        try {
            unpacked = gunzipSync(head.subarray(0, middle), { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 2 * INFLATED_CHUNK });
            good = middle;
        } catch {
            bad = middle;
        }
    }

    return unpacked;
}

function isZlibError(error: unknown): boolean {
    return errorCode(error).startsWith('Z_');
}
