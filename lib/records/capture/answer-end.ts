import { blankLine } from '../response/blank-line.ts';
import { headerList, responseHeaders } from '../response/response-headers.ts';
import { type BodyEnd, chunksEnd } from './chunks-end.ts';

/** So many bytes at the end may belong to a blank line that is not whole yet. */
const BLANK_LINE = 3;
/** Of a header that is a list. */
const MOST_ELEMENTS = 5;

/**
 * Finds where an answer to a `GET` ends, as it comes in, so that nobody waits for a server that keeps the connection open. Interim
 * answers belong to it. Of what is not HTTP, or says no length, nobody knows the end before the connection is closed.
 *
 * @returns A function to be called with all bytes received so far; it answers with the length of the whole answer, or null while
 * there may be more to come. Each byte is looked at once, however the bytes are cut.
 */
export function answerEnd(): (received: Buffer) => number | null {
    let headStart = 0;
    let seen = 0;
    let body: BodyEnd | null = null;

    return (received) => {
        while (body === null) {
            const blank = blankLine(received, seen);
            if (blank === null) {
                seen = Math.max(headStart, received.length - BLANK_LINE);
                return null;
            }

            const head = received.toString('latin1', headStart, blank.start);
            headStart = blank.end;
            seen = blank.end;
            body = /^HTTP\/1\.[01] 1(?!01)\d\d/.test(head) ? null : bodyEnd(head, blank.end);
        }

        return body(received);
    };
}

const untilClosed: BodyEnd = () => null;

function bodyEnd(head: string, start: number): BodyEnd {
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head) ?? [];
    if (status === undefined || status === '101') {
        return untilClosed;
    }

    if (status === '204' || status === '304') {
        return () => start;
    }

    const headers = responseHeaders(head, head.indexOf('\n') + 1, new Set());
    const codings = headerList(headers, 'transfer-encoding', MOST_ELEMENTS).filter((coding) => coding !== 'identity');
    if (codings.length > 0) {
        return codings.at(-1) === 'chunked' ? chunksEnd(start) : untilClosed;
    }

    const [length, ...others] = headerList(headers, 'content-length', MOST_ELEMENTS);
    return length === undefined || !/^\d{1,15}$/.test(length) || others.some((other) => other !== length)
        ? untilClosed
        : exactly(start + Number(length));
}

function exactly(end: number): BodyEnd {
    return ({ length }) => (length >= end ? end : null);
}
