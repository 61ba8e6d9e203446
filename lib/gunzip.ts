import { pipeline, type TransformOptions } from 'node:stream';
import { createGunzip, createGzip } from 'node:zlib';
import { errorCode, ScanwireError } from './errors.ts';
import { peek, startsWith } from './peek.ts';
import { wakeUps } from './within.ts';

const GZIP = [0x1f, 0x8b];
/** How a member of a gzip file begins: with the only method there is. */
const MEMBER: Buffer = Buffer.from([...GZIP, 8]);
/** In bytes: the checksum and the length at its end. */
const TRAILER = 8;

/** What other packers begin with, and no text does. */
const OTHERS: readonly (readonly [name: string, start: string])[] = [
    ['a zip file', 'PK\x03\x04'],
    ...Array.from('123456789', (level) => ['packed with bzip2', `BZh${level}1AY&SY`] as const),
    ['packed with xz', '\xfd7zXZ\0'],
    ['packed with zstd', '\x28\xb5\x2f\xfd'],
];
const LONGEST = 10;

/** In bytes: how much zlib unpacks in one step, and throws away when it meets damage in that step. A shorter one costs speed. */
const STEP = 65_536;
/** The same for a source that can be read again, in shorter steps, for what was thrown away. */
const LONG_STEP = 131_072;
/** In bytes: this much of a member is remembered, to be unpacked again up to the very byte where it is damaged. */
const BLOCK = 1_048_576;
/** In bytes: the piece with the damage is written again in parts of this length, then the part with the damage in parts of the next. */
const REPLAY_PARTS: readonly number[] = [512, 1];
/** In bytes: shorter members are written together, since a step takes its time however little it unpacks. */
const SHORT_MEMBER = 16_384;

/** How much larger than its gzip form an expanded file may be. */
export interface Expansion {
    /** So many times, from the first so many bytes on. */
    readonly times: number;
    readonly freeBytes: number;
    /** What somebody may do who meant it. */
    readonly hint?: string;
}

/** Of files that whoever reads them has chosen. */
const OF_FILES: Expansion = { times: 250, freeBytes: 64 * 1024 * 1024 };

/** Of what clients send: reading it costs so many times what the same bytes cost that are not packed, and that of 1 MiB of them besides. */
export const OF_REQUESTS: Expansion = { times: 50, freeBytes: 1024 * 1024, hint: '; send it unpacked' };

const NOTHING: Buffer = Buffer.alloc(0);

/** Gzip that cannot be read any further, or what is packed in another way. */
export class GzipError extends ScanwireError {
    constructor(message: string, cause?: unknown) {
        super('INVALID_INPUT', message, { cause });
    }
}

/** A source that can be read more than once, as a file: quicker to unpack, and where it is damaged, unpacked once more. */
export interface Rereadable extends AsyncIterable<Uint8Array> {
    /** The same bytes from the beginning. */
    again(): AsyncIterable<Uint8Array>;
}

/**
 * The bytes of a file, unpacked where its first ones say that it is gzip, of one member or of several. All that comes before
 * damage, the end of a file that was cut off, or what else ends the reading, is handed on before the error. Only where a member is
 * longer than 1 MiB (packed), up to 64 KiB (unpacked) before damage, or before something else behind it, are lost.
 *
 * @param signal Ends the reading, also that of what was received already.
 * @param expansion Of a file, unless another one is given.
 * @throws GzipError for gzip that is damaged, cut off or expands beyond all measure, and for other archives; the reason of the signal.
 */
export async function* unpacked(
    source: AsyncIterable<Uint8Array> | Rereadable,
    signal?: AbortSignal,
    expansion: Expansion = OF_FILES,
): AsyncGenerator<Uint8Array, void, undefined> {
    const again = 'again' in source ? () => piecesOf(source.again()) : undefined;
    const peeked = await peek(source, LONGEST);
    try {
        assertReadable(peeked.head);
        yield* startsWith(peeked.head, GZIP) ? gunzip(piecesOf(peeked), { again, signal, expansion }) : peeked;
    } catch (error) {
        throw errorCode(error).startsWith('Z_') ? refusal(error as Error) : error;
    } finally {
        await peeked.return();
    }
}

/** The bytes as a gzip file of one member. What the source throws comes out here, and when this ends the source has ended. */
export async function* packed(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    let gzip: AsyncIterable<Uint8Array> = source;
    const ended = new Promise<void>((resolve) => {
        gzip = pipeline(source, createGzip(), () => resolve()) as AsyncIterable<Uint8Array>;
    });
    try {
        yield* gzip;
    } finally {
        await ended;
    }
}

function assertReadable(head: Uint8Array): void {
    const text = Buffer.from(head.subarray(0, LONGEST)).toString('latin1');
    const other = OTHERS.find(([, start]) => text.startsWith(start));
    if (other !== undefined) {
        throw new GzipError(`The file is ${other[0]}: unpack it first, only gzip is read packed`);
    }
}

function refusal(cause: Error): GzipError {
    return cause.message === 'incorrect header check'
        ? new GzipError('The gzip file has something else behind it: not read any further', cause)
        : new GzipError('The gzip file is damaged or was cut off', cause);
}

/** Part of a gzip file that is written to zlib at once. */
interface Piece {
    readonly bytes: Buffer;
    /** What its member holds before it; null when that is too long to be remembered. */
    readonly before: Buffer | null;
}

interface GunzipOptions {
    readonly skip?: number;
    readonly parts?: readonly number[];
    readonly again?: (() => AsyncIterable<Piece>) | undefined;
    readonly signal: AbortSignal | undefined;
    readonly expansion: Expansion;
}

/**
 * Unpacks gzip; where it is damaged, once more from the start of the member or of the source, for what zlib threw away. Errors are
 * those of zlib.
 *
 * @param how `skip`: so many bytes of what comes out are known already; `again`: all pieces once more.
 */
async function* gunzip(
    pieces: AsyncIterable<Piece> | Iterable<Piece>,
    { skip = 0, parts: [length, ...smaller] = REPLAY_PARTS, again, signal, expansion }: GunzipOptions,
): AsyncGenerator<Buffer, void, undefined> {
    const { stream, write, next } = gunzipStream(again === undefined ? STEP : LONG_STEP);
    /** The last one that was written. */
    let piece: Piece = { bytes: NOTHING, before: null };
    let written = 0;
    let expanded = 0;
    /** What had come out before the member. */
    let start = 0;
    try {
        for await (piece of pieces) {
            start = piece.before?.length === 0 ? expanded : start;
            // Else it has come to zeros behind a member, and takes no more.
            if (stream.bytesWritten === written) {
                write(piece.bytes);
            }

            for (let chunk = await next(); chunk !== null; chunk = await next()) {
                signal?.throwIfAborted();
                assertMeasure(stream.bytesWritten, expanded + chunk.length, expansion);
                expanded += chunk.length;
                if (expanded > skip) {
                    yield skip > expanded - chunk.length ? chunk.subarray(skip - expanded) : chunk;
                }
            }

            written += piece.bytes.length;
            assertPadding(piece.bytes.subarray(Math.max(0, piece.bytes.length + stream.bytesWritten - written)));
        }

        write(null);
        await next();
    } catch (error) {
        const { before, bytes } = piece;
        if (errorCode(error) === 'Z_DATA_ERROR' && before !== null && length !== undefined) {
            yield* gunzip(inParts(before, bytes, length), { skip: Math.max(skip, expanded - start), parts: smaller, signal, expansion });
            /* c8 ignore next -- the second reading ends at the damage too, by an error */
        } else if (again !== undefined && (errorCode(error) === 'Z_DATA_ERROR' || error instanceof GzipError)) {
            yield* secondReading(again(), { skip: expanded, signal, expansion }, error);
        }

        throw error;
    } finally {
        stream.destroy();
    }
}

/** What it gives beyond the first. Where the source itself fails by now, as a file that was removed, the first error stays. */
async function* secondReading(
    pieces: AsyncIterable<Piece>,
    options: GunzipOptions,
    first: unknown,
): AsyncGenerator<Buffer, void, undefined> {
    try {
        yield* gunzip(pieces, options);
    } catch (second) {
        throw errorCode(second).startsWith('Z_') || second instanceof GzipError || options.signal?.aborted === true ? second : first;
    }
}

/** What was written before a piece at once, then the piece in parts. */
function* inParts(before: Buffer, bytes: Buffer, length: number): Generator<Piece, void, undefined> {
    const member = Buffer.concat([before, bytes]);
    yield { bytes: member.subarray(0, before.length), before: NOTHING };
    for (let start = before.length; start < member.length; start += length) {
        yield { bytes: member.subarray(start, start + length), before: member.subarray(0, start) };
    }
    /* c8 ignore next -- nobody reads beyond the damage, which is in one of the parts */
}

function assertMeasure(packed: number, expanded: number, { times, freeBytes, hint = '' }: Expansion): void {
    if (expanded > freeBytes && expanded > packed * times) {
        throw new GzipError(`The gzip file expands more than ${times} times: not read any further${hint}`);
    }
}

function assertPadding(bytes: Uint8Array): void {
    if (bytes.some((byte) => byte !== 0)) {
        throw new GzipError('The gzip file has padding with something behind it: not read any further');
    }
}

function gunzipStream(step: number) {
    // An error throws away what waits to be read. With room for one byte, no step begins before the outcome of the last one is read.
    const room: Pick<TransformOptions, 'readableHighWaterMark'> = { readableHighWaterMark: 1 };
    const stream = createGunzip({ chunkSize: step, ...room });
    let pending = false;
    const { wake, change } = wakeUps();
    for (const event of ['readable', 'end', 'error', 'close']) {
        stream.on(event, wake);
    }

    function written(): void {
        pending = false;
        wake();
    }

    return {
        stream,

        /** Null ends the file. */
        write(bytes: Buffer | null): void {
            pending = true;
            bytes === null ? stream.end() : stream.write(bytes, written);
        },

        /** What comes out next of what was written; null when that was all. Rejects with an error of zlib. */
        async next(): Promise<Buffer | null> {
            for (;;) {
                const chunk = stream.read() as Buffer | null;
                if (chunk !== null || stream.errored !== null) {
                    return chunk ?? Promise.reject(stream.errored);
                }

                if (!pending || stream.destroyed || stream.readableEnded) {
                    return null;
                }

                await change();
            }
        },
    };
}

/**
 * Pieces as they come, cut where a member seems to begin: what came before that is good, and need not be remembered. What is longer
 * than can be remembered goes in blocks: so it makes no difference how the source is cut into chunks; and the last trailer goes by
 * itself: so a wrong checksum takes nothing with it. The bytes of a piece are valid until the next one.
 */
async function* piecesOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Piece, void, undefined> {
    const block = Buffer.allocUnsafe(BLOCK + TRAILER);
    let start = 0;
    let filled = 0;
    for await (const chunk of source) {
        let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
        while (rest.length > 0 && start < BLOCK) {
            start = beginsMember(rest) ? 0 : start;
            const length = rest.copy(block, start, 0, pieceLength(rest, start));
            yield { bytes: block.subarray(start, start + length), before: block.subarray(0, start) };
            start += length;
            rest = rest.subarray(length);
        }

        while (rest.length > 0) {
            const length = rest.copy(block, filled);
            filled += length;
            rest = rest.subarray(length);
            if (filled === block.length) {
                yield { bytes: block.subarray(0, BLOCK), before: null };
                filled = block.copy(block, 0, BLOCK);
            }
        }
    }

    const trailer = Math.max(0, filled - TRAILER);
    yield { bytes: block.subarray(0, trailer), before: null };
    yield { bytes: block.subarray(trailer, filled), before: null };
}

/** Up to the next member, or to what cannot be remembered. */
function pieceLength(bytes: Buffer, start: number): number {
    const piece = bytes.subarray(0, BLOCK - start);
    let member = piece.indexOf(MEMBER, start === 0 ? SHORT_MEMBER : 1);
    while (member !== -1 && !beginsMember(bytes.subarray(member))) {
        member = piece.indexOf(MEMBER, member + 1);
    }

    return member === -1 ? piece.length : member;
}

/** Whether it is a header of RFC 1952, with flags, a level and a system that there are: by chance once in 10^11 bytes. */
function beginsMember(bytes: Uint8Array): boolean {
    const [, , , flags = 255, , , , , level = 255, system = 254] = bytes;
    return startsWith(bytes, MEMBER) && flags < 32 && [0, 2, 4].includes(level) && (system < 14 || system === 255);
}
