import { type BodyEnd, chunksEnd } from './chunks-end.ts';

const LF = 0x0a;
const CR = 0x0d;
/** So many bytes at the end may belong to a blank line that is not whole yet. */
const BLANK_LINE = 3;

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
            const headEnd = blankLineEnd(received, seen);
            if (headEnd === null) {
                seen = Math.max(headStart, received.length - BLANK_LINE);
                return null;
            }

            const head = received.toString('latin1', headStart, headEnd);
            headStart = headEnd;
            seen = headEnd;
            body = /^HTTP\/1\.[01] 1(?!01)\d\d/.test(head) ? null : bodyEnd(head, headEnd);
        }

        return body(received);
    };
}

/** Lines end with LF, with or without CR. */
function blankLineEnd(bytes: Buffer, from: number): number | null {
    for (let at = bytes.indexOf(LF, from); at !== -1; at = bytes.indexOf(LF, at + 1)) {
        if (bytes[at + 1] === LF) {
            return at + 2;
        }

        if (bytes[at + 1] === CR && bytes[at + 2] === LF) {
            return at + 3;
        }
    }

    return null;
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

    const { codings, lengths } = framing(head);
    if (codings.length > 0) {
        return codings.at(-1) === 'chunked' ? chunksEnd(start) : untilClosed;
    }

    const [length] = lengths;
    return length === undefined || !/^\d{1,15}$/.test(length) || lengths.some((other) => other !== length)
        ? untilClosed
        : exactly(start + Number(length));
}

function exactly(end: number): BodyEnd {
    return ({ length }) => (length >= end ? end : null);
}

function framing(head: string): { readonly codings: readonly string[]; readonly lengths: readonly string[] } {
    const values = (wanted: string): string[] =>
        head
            .split('\n')
            .filter((line) => line.slice(0, line.indexOf(':') + 1).toLowerCase() === `${wanted}:`)
            .flatMap((line) => line.slice(wanted.length + 1).split(','))
            .map((value) => value.trim().toLowerCase());
    return { codings: values('transfer-encoding'), lengths: values('content-length') };
}
