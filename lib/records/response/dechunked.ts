import { blankLine } from './blank-line.ts';

export interface Dechunked {
    readonly bytes: Buffer;
    /** False when the chunks break off or are damaged; `bytes` is what came before. */
    readonly whole: boolean;
    /** Number of bytes after the last chunk and its trailers. */
    readonly excess: number;
}

const SIZE = /^[ \t]*([0-9a-f]{1,16})[ \t]*(?:[;\r]|$)/i;
const SIZE_LENGTH = 64;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/** Takes off the chunked transfer coding. Null when the bytes do not begin with the size of a chunk. Lines may end with LF alone. */
export function dechunked(bytes: Buffer): Dechunked | null {
    const joined = Buffer.allocUnsafe(bytes.length);
    let length = 0;
    let at = 0;
    while (true) {
        const lineFeed = bytes.indexOf(LINE_FEED, at);
        const lineEnd = lineFeed === -1 ? bytes.length : lineFeed;
        const size = sizeAt(bytes, at, lineEnd);
        if (size === null && at === 0) {
            return null;
        }

        if (size === 0) {
            return { bytes: joined.subarray(0, length), whole: true, excess: bytes.length - lastEnd(bytes, lineEnd) };
        }

        const start = Math.min(lineEnd + 1, bytes.length);
        const end = Math.min(start + (size ?? 0), bytes.length);
        length += size === null ? 0 : bytes.copy(joined, length, start, end);
        at = afterLineEnd(bytes, end);
        if (size === null || at === end) {
            return { bytes: joined.subarray(0, length), whole: false, excess: 0 };
        }
    }
}

function sizeAt(bytes: Buffer, start: number, lineEnd: number): number | null {
    const digits = SIZE.exec(bytes.toString('latin1', start, Math.min(lineEnd, start + SIZE_LENGTH)))?.[1];
    return digits === undefined ? null : Number.parseInt(digits, 16);
}

/** The same place when no line ends there. */
function afterLineEnd(bytes: Buffer, at: number): number {
    const lineFeed = bytes[at] === CARRIAGE_RETURN ? at + 1 : at;
    return bytes[lineFeed] === LINE_FEED ? lineFeed + 1 : at;
}

/** Servers forget the empty line at the very end. */
function lastEnd(bytes: Buffer, sizeLineEnd: number): number {
    return blankLine(bytes, sizeLineEnd)?.end ?? bytes.length;
}
