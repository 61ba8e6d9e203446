import { isUtf8 } from 'node:buffer';
import zlib, { type ZlibOptions } from 'node:zlib';
import { errorCode } from '../../errors.ts';
import { chunkWalk, nextChunk } from './chunks.ts';
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
            const coding = list[index] as string;
            bytes = coding === 'chunked' ? withoutChunks(bytes, problems) : withoutCoding(coding, bytes, maxBytes, problems);
        }
    }

    return bytes;
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

/** Takes off the chunked transfer coding. What does not begin with the size of a chunk comes back as it is. */
function withoutChunks(bytes: Buffer, problems: Set<ResponseProblem>): Buffer {
    const joined = Buffer.allocUnsafe(bytes.length);
    const walk = chunkWalk(0);
    let length = 0;
    while (nextChunk(walk, bytes, true)) {
        length += walk.dataStart < bytes.length ? bytes.copy(joined, length, walk.dataStart, Math.min(walk.at, bytes.length)) : 0;
    }

    const { state, at } = walk;
    if (at === 0) {
        problems.add(bytes.length === 0 ? 'chunks_broken' : 'chunks_absent');
        return bytes;
    }

    // Servers forget the empty line at the very end.
    if (state !== 'end' && state !== 'trailer') {
        problems.add('chunks_broken');
    }

    if (state === 'end' && at < bytes.length) {
        problems.add('body_excess');
    }

    return joined.subarray(0, length);
}

/** One of zlib's synchronous functions, with what tells its form from others. */
interface Form {
    readonly expand: (bytes: Buffer, options: ZlibOptions) => Buffer;
    /** Makes it give what there is of bytes that were cut off. */
    readonly finishFlush: number;
    /** How the bytes begin; null for a form without a mark. */
    readonly mark: readonly number[] | null;
}

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants;
/** Not in every Node version. */
const { zstdDecompressSync } = zlib as { readonly zstdDecompressSync?: Form['expand'] };

const GZIP: Form = { expand: zlib.gunzipSync, finishFlush: Z_SYNC_FLUSH, mark: [0x1f, 0x8b] };
const RAW_DEFLATE: Form = { expand: zlib.inflateRawSync, finishFlush: Z_SYNC_FLUSH, mark: null };
const ZSTD_FLUSH = 1;

const FORMS: ReadonlyMap<string, Form> = new Map([
    ['gzip', GZIP],
    ['x-gzip', GZIP],
    ['deflate', { expand: zlib.inflateSync, finishFlush: Z_SYNC_FLUSH, mark: [] }],
    ['br', { expand: zlib.brotliDecompressSync, finishFlush: BROTLI_OPERATION_FLUSH, mark: null }],
    ...(zstdDecompressSync === undefined
        ? []
        : [['zstd', { expand: zstdDecompressSync, finishFlush: ZSTD_FLUSH, mark: [0x28, 0xb5, 0x2f, 0xfd] }] as const]),
]);

/** Each step halves the part of damaged bytes of which it is not known whether it can be read. */
const STEPS = 8;

/**
 * Takes off a content coding. What is cut off, damaged or longer than `maxBytes` is kept as far as it can be decoded; the bytes
 * come back as they are when that is nothing at all, or when they are not in that coding.
 */
function withoutCoding(name: string, bytes: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    const form = name === 'deflate' && !hasZlibHeader(bytes) ? RAW_DEFLATE : FORMS.get(name);
    if (form === undefined) {
        problems.add('coding_unknown');
        return bytes;
    }

    if (bytes.length === 0) {
        return bytes;
    }

    if (form.mark?.some((byte, index) => bytes[index] !== byte) === true) {
        problems.add('coding_absent');
        return bytes;
    }

    try {
        return form.expand(bytes, { maxOutputLength: maxBytes });
    } catch (error) {
        return keptOf(form, bytes, maxBytes, errorCode(error), problems);
    }
}

/** RFC 1950, 2.2. Many servers send bare deflate data (RFC 1951) under the same name. */
function hasZlibHeader(bytes: Buffer): boolean {
    const [method = 0, flags = 0] = bytes;
    return (method & 0x0f) === 8 && ((method << 8) | flags) % 31 === 0;
}

function keptOf(form: Form, bytes: Buffer, maxBytes: number, code: string, problems: Set<ResponseProblem>): Buffer {
    const isCapped = code === 'ERR_BUFFER_TOO_LARGE';
    if (!isCapped && isUtf8(bytes)) {
        problems.add('coding_absent');
        return bytes;
    }

    problems.add(isCapped ? 'body_capped' : 'coding_broken');
    const expand = (part: Buffer): Buffer | null => expanded(form, part, maxBytes);
    const kept = code === 'Z_BUF_ERROR' ? expand(bytes) : form.mark !== null || isCapped ? beginning(bytes, expand) : null;
    return kept === null || kept.length === 0 ? bytes : kept;
}

/** zlib keeps nothing of what it decoded before an error: looks for the longest beginning without one. */
function beginning(bytes: Buffer, expand: (part: Buffer) => Buffer | null): Buffer | null {
    let best: Buffer | null = null;
    let good = 0;
    let bad = bytes.length;
    for (let step = 0; step < STEPS; step += 1) {
        const length = (good + bad) >>> 1;
        const result = expand(bytes.subarray(0, length));
        best = result ?? best;
        good = result === null ? good : length;
        bad = result === null ? length : bad;
    }

    return best;
}

function expanded({ expand, finishFlush }: Form, bytes: Buffer, maxBytes: number): Buffer | null {
    try {
        return expand(bytes, { finishFlush, maxOutputLength: maxBytes });
    } catch {
        return null;
    }
}
