import { isUtf8 } from 'node:buffer';
import zlib, { type ZlibOptions } from 'node:zlib';
import { errorCode } from '../../errors.ts';
import type { ResponseProblem } from './parse-response.ts';

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
const ZLIB: Form = { expand: zlib.inflateSync, finishFlush: Z_SYNC_FLUSH, mark: [] };
const RAW_DEFLATE: Form = { expand: zlib.inflateRawSync, finishFlush: Z_SYNC_FLUSH, mark: null };
const BROTLI: Form = { expand: zlib.brotliDecompressSync, finishFlush: BROTLI_OPERATION_FLUSH, mark: null };
const ZSTD_MARK = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_FLUSH = 1;

/** Each step halves the part of damaged bytes of which it is not known whether it can be read. */
const STEPS = 8;

/**
 * Takes off a content coding. What is cut off, damaged or longer than `maxBytes` is kept as far as it can be decoded; the bytes
 * come back as they are when that is nothing at all, or when they are not in that coding.
 */
export function withoutCoding(name: string, bytes: Buffer, maxBytes: number, problems: Set<ResponseProblem>): Buffer {
    const form = formOf(name, bytes);
    if (form === null) {
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

function formOf(name: string, bytes: Buffer): Form | null {
    switch (name) {
        case 'gzip':
        case 'x-gzip':
            return GZIP;
        case 'deflate':
            return hasZlibHeader(bytes) ? ZLIB : RAW_DEFLATE;
        case 'br':
            return BROTLI;
        case 'zstd':
            return zstdDecompressSync === undefined ? null : { expand: zstdDecompressSync, finishFlush: ZSTD_FLUSH, mark: ZSTD_MARK };
        default:
            return null;
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
