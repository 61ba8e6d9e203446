import { assertByteLimit } from '../record.ts';
import { responseBody } from './body.ts';
import { bodyCharset } from './charset.ts';
import { headerValue, type ResponseHead, responseHead } from './head.ts';
import { htmlTitle } from './html-title.ts';

const MAX_BODY_BYTES = 4_194_304;
/** Where nearly all pages have named their charset and their title. */
const PAGE_START_BYTES = 2048;
const HTML_TYPE = /^(?:text\/html|application\/xhtml\+xml)[ \t]*(?:;|$)/i;
const CUTS: readonly ResponseProblem[] = ['head_cut_off', 'body_short', 'chunks_broken', 'coding_broken', 'body_capped'];

/**
 * Reads whatever an endpoint sent as its response: what is wrong with it is in the result.
 *
 * @throws ScanwireError `MISCONFIGURED` for a limit that cannot be kept, and for nothing in the bytes.
 */
export function parseResponse(bytes: Uint8Array, limits: ResponseLimits = {}): ParsedResponse {
    const maxBodyBytes = bodyLimit(limits);
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const problems = new Set<ResponseProblem>();
    const head = responseHead(buffer, problems);
    return head === null ? { http: false, bytes: buffer } : httpResponse(head, buffer.subarray(head.end), maxBodyBytes, problems);
}

/** @throws ScanwireError `MISCONFIGURED` for a limit that zlib does not take, or whose body is more than a text can hold. */
export function bodyLimit({ maxBodyBytes = MAX_BODY_BYTES }: ResponseLimits): number {
    assertByteLimit(maxBodyBytes, 'Response limits', 'maxBodyBytes');
    return maxBodyBytes;
}

function httpResponse(head: ResponseHead, rawBody: Buffer, maxBodyBytes: number, problems: Set<ResponseProblem>): HttpResponse {
    const { version, status, reason, headers } = head;
    const body = responseBody(head, rawBody, maxBodyBytes, problems);
    const contentType = headerValue(headers, 'content-type') ?? '';
    // Small devices leave the type out.
    const isHtml = contentType === '' || HTML_TYPE.test(contentType);
    const page = isHtml ? body.toString('latin1', 0, PAGE_START_BYTES) : '';
    const charset = bodyCharset(body, contentType, page, problems);
    const title = isHtml ? htmlTitle(body, page, charset) : null;
    const truncated = problems.size > 0 && CUTS.some((problem) => problems.has(problem));
    return { http: true, version, status, reason, headers, rawBody, body, charset, title, truncated, problems: [...problems] };
}

/** What can be wrong with a response. `docs/records.md` says what each one means. */
export const RESPONSE_PROBLEMS = [
    'head_cut_off',
    'header_malformed',
    'headers_capped',
    'length_invalid',
    'body_short',
    'body_excess',
    'chunks_absent',
    'chunks_broken',
    'coding_unknown',
    'coding_absent',
    'coding_broken',
    'body_capped',
    'charset_unknown',
] as const;

/** One of {@link RESPONSE_PROBLEMS}. */
export type ResponseProblem = (typeof RESPONSE_PROBLEMS)[number];

/** What a parsed response may hold. */
export interface ResponseLimits {
    /** Longest decoded body; more is cut off. 4 MiB by default, 256 MiB at most. */
    readonly maxBodyBytes?: number;
}

/** A header line. */
export interface ResponseHeader {
    /** In lower case. */
    readonly name: string;
    /** As it came. */
    readonly rawName: string;
    /** ISO-8859-1, without white space at the ends; folded lines are joined. */
    readonly value: string;
}

/** An HTTP response. Both bodies are views of the bytes that were parsed, where nothing had to be decoded. */
export interface HttpResponse {
    readonly http: true;
    /** For example `1.1`, or `ICY` for the streaming servers that put that word in place of `HTTP/1.0`. */
    readonly version: string;
    /** Three digits, as a number. */
    readonly status: number;
    /** ISO-8859-1; empty when there is none. */
    readonly reason: string;
    /** In the order of the wire, with repeats. */
    readonly headers: readonly ResponseHeader[];
    /** All bytes after the head, as they came. */
    readonly rawBody: Buffer;
    /** Without chunks and content coding; as it came where these cannot be taken off. */
    readonly body: Buffer;
    /** The charset that the body or the head names, as the Encoding Standard calls it, for example `windows-1252`; null for none. */
    readonly charset: string | null;
    /** Title of an HTML page, at most 512 UTF-16 units; null when there is none. */
    readonly title: string | null;
    /** The response, or what is kept of its body, is not whole. */
    readonly truncated: boolean;
    readonly problems: readonly ResponseProblem[];
}

/** Anything that does not begin with the status line of an HTTP response. */
export interface OtherResponse {
    readonly http: false;
    /** All of it. */
    readonly bytes: Buffer;
}

/** What {@link parseResponse} makes of bytes. */
export type ParsedResponse = HttpResponse | OtherResponse;
