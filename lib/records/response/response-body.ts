import { withoutCoding } from './content-coding.ts';
import { dechunked } from './dechunked.ts';
import type { ResponseHeader, ResponseProblem } from './parsed-response.ts';
import type { ResponseHead } from './response-head.ts';
import { headerList } from './response-headers.ts';

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
