import { chunkWalk, nextChunk } from './chunks.ts';
import { withoutCoding } from './content-coding.ts';
import { contentLength, headerCodings, type ResponseHead } from './head.ts';
import type { ResponseHeader, ResponseProblem } from './parse-response.ts';

const NO_BODY: Buffer = Buffer.alloc(0);
const MAX_CODINGS = 4;

/** The body without its transfer and content codings, at most `maxBytes` of it. */
export function responseBody({ status, headers }: ResponseHead, raw: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    if (status < 200 || status === 204 || status === 304) {
        if (raw.length > 0) {
            problems.add('body_excess');
        }

        return NO_BODY;
    }

    const transferCodings = headerCodings(headers, 'transfer-encoding');
    const framed = transferCodings.includes('chunked') ? raw : ofLength(headers, raw, problems);
    const decoded = withoutCodings([...headerCodings(headers, 'content-encoding'), ...transferCodings], framed, maxBytes, problems);
    // Some tools save an unpacked body under the old head, whose length is that of the packed one.
    const body = decoded === framed && problems.has('coding_absent') ? raw : decoded;
    if (body.length <= maxBytes) {
        return body;
    }

    problems.add('body_capped');
    return body.subarray(0, maxBytes);
}

/** The coding applied last is the last of the list. One that is not there is skipped; those under an unknown one are out of reach. */
function withoutCodings(list: readonly string[], coded: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    let bytes = coded;
    for (let index = list.length - 1; index >= 0 && !problems.has('coding_unknown'); index -= 1) {
        if (list.length - index > MAX_CODINGS) {
            problems.add('coding_unknown');
        } else {
            bytes = decode(list[index] as string, bytes, maxBytes, problems);
        }
    }

    return bytes;
}

function decode(coding: string, bytes: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
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
    const length = contentLength(headers);
    if (length === 'invalid') {
        problems.add('length_invalid');
        return raw;
    }

    if (length === null || length === raw.length) {
        return raw;
    }

    problems.add(raw.length < length ? 'body_short' : 'body_excess');
    return raw.subarray(0, length);
}

interface Dechunked {
    readonly bytes: Buffer;
    /** False when the chunks break off or are damaged; `bytes` is what came before. */
    readonly whole: boolean;
    /** Number of bytes after the last chunk and its trailers. */
    readonly excess: number;
}

/** Takes off the chunked transfer coding. Null when the bytes do not begin with the size of a chunk. */
function dechunked(bytes: Buffer): Dechunked | null {
    const joined = Buffer.allocUnsafe(bytes.length);
    const walk = chunkWalk(0);
    let length = 0;
    while (nextChunk(walk, bytes, true)) {
        length += walk.dataStart < bytes.length ? bytes.copy(joined, length, walk.dataStart, Math.min(walk.at, bytes.length)) : 0;
    }

    const { state, at } = walk;
    if (at === 0) {
        return null;
    }

    // Servers forget the empty line at the very end.
    const whole = state === 'end' || state === 'trailer';
    return { bytes: joined.subarray(0, length), whole, excess: state === 'end' ? bytes.length - at : 0 };
}
