import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ScanwireError } from '../scanwire-error.ts';
import type { HostInput } from './host.ts';
import { readHostLines } from './read-host-lines.ts';
import { readNmap } from './read-nmap.ts';

const BOM = [0xef, 0xbb, 0xbf];
const GZIP = [0x1f, 0x8b];
const UTF16 = [
    [0xff, 0xfe],
    [0xfe, 0xff],
];
const OPEN_ANGLE = 0x3c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Bytes before the first one that is not blank. */
const BLANK_LIMIT = 64 * 1024;
/** An expanded file may be this many times as large as its gzip form, from the first so many bytes on. */
const EXPANSION_LIMIT = 250;
const EXPANSION_FREE = 64 * 1024 * 1024;

/**
 * Reads a scan of either form, told apart by its first character: the XML of nmap, or JSON lines of hosts. Both may be packed
 * with gzip. Memory does not depend on the size.
 *
 * @throws ScanwireError `INVALID_INPUT` with the line and the reason.
 */
export async function* readScan(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const packed = await openingOf(source, 2);
    try {
        const opening = await openingOf(startsWith(packed.head, GZIP) ? gunzip(packed) : packed, 3);
        try {
            yield* readerOf(opening.head)(opening);
        } finally {
            await opening.return();
        }
    } finally {
        await packed.return();
    }
}

function readerOf(head: Uint8Array): (source: AsyncIterable<Uint8Array>) => AsyncIterable<HostInput> {
    if (UTF16.some((mark) => startsWith(head, mark))) {
        throw new ScanwireError('INVALID_INPUT', 'Line 1: this is UTF-16 text; save it as UTF-8');
    }

    const first = firstCharacter(head);
    if (first === OPEN_ANGLE) {
        return readNmap;
    }

    if (first === OPEN_BRACE) {
        return readHostLines;
    }

    throw new ScanwireError('INVALID_INPUT', `Line 1: ${strange(first)}`);
}

/** A source whose first bytes are known. */
interface Opening extends AsyncIterable<Uint8Array> {
    readonly head: Uint8Array;
    /** Ends the source, read or not. */
    return(): Promise<void>;
}

/** Reads until there are `size` bytes and one that is not blank, or the source ends. */
async function openingOf(source: AsyncIterable<Uint8Array>, size: number): Promise<Opening> {
    const iterator = source[Symbol.asyncIterator]();
    let head: Uint8Array = new Uint8Array(0);
    let ended = false;
    while (!ended && (head.byteLength < size || firstCharacter(head) === null) && head.byteLength < BLANK_LIMIT) {
        const next = await iterator.next();
        ended = next.done === true;
        head = next.done === true ? head : Buffer.concat([head, next.value]);
    }

    return {
        head,
        async *[Symbol.asyncIterator]() {
            yield head;
            for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
                yield next.value;
            }
        },
        async return() {
            await iterator.return?.();
        },
    };
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

function firstCharacter(head: Uint8Array): number | null {
    const start = startsWith(head, BOM) ? BOM.length : 0;
    return head.subarray(start).find((byte) => byte !== 0x20 && (byte < 0x09 || byte > 0x0d)) ?? null;
}

function strange(first: number | null): string {
    if (first === null) {
        return 'the file is empty';
    }

    return first === OPEN_BRACKET
        ? 'this is one JSON list; write one host, a JSON object, on each line'
        : 'neither the XML of nmap nor JSON lines of hosts';
}

function startsWith(bytes: Uint8Array, start: readonly number[]): boolean {
    return start.every((byte, index) => bytes[index] === byte);
}
