import { bodyCharset } from './body-charset.ts';
import { htmlTitle } from './html-title.ts';
import type { HttpResponse, ParsedResponse, ResponseLimits, ResponseProblem } from './parsed-response.ts';
import { responseBody } from './response-body.ts';
import { type ResponseHead, responseHead } from './response-head.ts';
import { headerValue } from './response-headers.ts';

const MAX_BODY_BYTES = 4_194_304;
/** Where nearly all pages have named their charset and their title. */
const PAGE_START_BYTES = 2048;
const HTML_TYPE = /^(?:text\/html|application\/xhtml\+xml)[ \t]*(?:;|$)/i;
const CUTS: readonly ResponseProblem[] = ['head_cut_off', 'body_short', 'chunks_broken', 'coding_broken', 'body_capped'];

/** Reads whatever an endpoint answered. Never throws: what is wrong is in the result. */
export function parseResponse(bytes: Uint8Array, limits: ResponseLimits = {}): ParsedResponse {
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const problems = new Set<ResponseProblem>();
    const head = responseHead(buffer, problems);
    return head === null ? { http: false, bytes: buffer } : httpResponse(head, buffer.subarray(head.end), limits, problems);
}

function httpResponse(head: ResponseHead, rawBody: Buffer, limits: ResponseLimits, problems: Set<ResponseProblem>): HttpResponse {
    const { version, status, reason, headers } = head;
    const body = responseBody(head, rawBody, limits.maxBodyBytes ?? MAX_BODY_BYTES, problems);
    const contentType = headerValue(headers, 'content-type') ?? '';
    // Small devices leave the type out.
    const isHtml = contentType === '' || HTML_TYPE.test(contentType);
    const page = isHtml ? body.toString('latin1', 0, PAGE_START_BYTES) : '';
    const charset = bodyCharset(body, contentType, page, problems);
    const title = isHtml ? htmlTitle(body, page, charset) : null;
    const truncated = problems.size > 0 && CUTS.some((problem) => problems.has(problem));
    return { http: true, version, status, reason, headers, rawBody, body, charset, title, truncated, problems: [...problems] };
}
