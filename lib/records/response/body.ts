import { withoutCoding } from './content-coding.ts';
import { blankLine, headerList, type ResponseHead } from './head.ts';
import type { ResponseHeader, ResponseProblem } from './parse-response.ts';

const NO_BODY: Buffer = Buffer.alloc(0);
const MOST_CODINGS = 4;

/** The body without its transfer and content codings, at most `maxBytes` of it. */
export function responseBody({ status, headers }: ResponseHead, raw: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    if (status < 200 || status === 204 || status === 304) {
        if (raw.length > 0) {
            problems.add('body_excess');
        }

        return NO_BODY;
    }

    const transferCodings = codings(headers, 'transfer-encoding');
    const framed = transferCodings.includes('chunked') ? raw : ofLength(headers, raw, problems);
    const decoded = withoutCodings([...codings(headers, 'content-encoding'), ...transferCodings], framed, maxBytes, problems);
    // Some tools save an unpacked body under the old head, whose length is that of the packed one.
    const body = decoded === framed && problems.has('coding_absent') ? raw : decoded;
    if (body.length <= maxBytes) {
        return body;
    }

    problems.add('body_capped');
    return body.subarray(0, maxBytes);
}

function codings(headers: readonly ResponseHeader[], name: string): readonly string[] {
    return headerList(headers, name, MOST_CODINGS + 1).filter((coding) => coding !== 'identity');
}

/** The coding applied last is the last of the list. One that is not there is skipped; those under an unknown one are out of reach. */
function withoutCodings(list: readonly string[], coded: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    let bytes = coded;
    for (let index = list.length - 1; index >= 0 && !problems.has('coding_unknown'); index -= 1) {
        if (list.length - index > MOST_CODINGS) {
            problems.add('coding_unknown');
        } else {
            bytes = withoutOne(list[index] as string, bytes, maxBytes, problems);
        }
    }

    return bytes;
}

function withoutOne(coding: string, bytes: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    return coding === 'chunked' ? withoutChunks(bytes, problems) : withoutCoding(coding, bytes, maxBytes, problems);
}

function withoutChunks(bytes: Buffer, problems: Set<ResponseProblem>): Buffer {
    const result = dechunked(bytes);
    if (result === null) {
        problems.add(bytes.length === 0 ? 'chunks_broken' : 'chunks_absent');
        return bytes;
    }

    if (!result.whole) {
        problems.add('chunks_broken');
    }

    if (result.excess > 0) {
        problems.add('body_excess');
    }

    return result.bytes;
}

/** The bytes that Content-Length counts, as far as they are there. */
function ofLength(headers: readonly ResponseHeader[], raw: Buffer, problems: Set<ResponseProblem>): Buffer {
    const [value, ...others] = headerList(headers, 'content-length', MOST_CODINGS);
    if (value === undefined) {
        return raw;
    }

    if (others.some((other) => other !== value) || !/^[0-9]+$/.test(value)) {
        problems.add('length_invalid');
        return raw;
    }

    const length = Number(value);
    if (length === raw.length) {
        return raw;
    }

    problems.add(raw.length < length ? 'body_short' : 'body_excess');
    return raw.subarray(0, length);
}

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
function dechunked(bytes: Buffer): Dechunked | null {
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
