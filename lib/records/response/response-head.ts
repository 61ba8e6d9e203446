import { blankLine } from './blank-line.ts';
import type { ResponseHeader, ResponseProblem } from './parsed-response.ts';
import { responseHeaders } from './response-headers.ts';
import { isBlank, trimmed } from './trimmed.ts';

export interface ResponseHead {
    readonly version: string;
    readonly status: number;
    readonly reason: string;
    readonly headers: readonly ResponseHeader[];
    /** Where the body begins. */
    readonly end: number;
}

interface Status {
    readonly version: string;
    readonly status: number;
    /** Length of the line up to here. */
    readonly length: number;
}

const STATUS = /^(?:HTTP\/([0-9]{1,2}(?:\.[0-9]{1,2})?)|ICY)[ \t]{1,8}([0-9]{3})(?![0-9])/i;
const STATUS_LENGTH = 32;
const MOST_INTERIM = 8;
const MOST_HEAD_BYTES = 262_144;

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/**
 * The head of the final response, behind empty lines and interim heads (100 to 199, but 101); the last interim one when the final one
 * is not there. Null for what is no head.
 */
export function responseHead(bytes: Buffer, problems: Set<ResponseProblem>): ResponseHead | null {
    let start = afterLineEnds(bytes);
    let status = statusAt(bytes, start);
    for (let passed = 0; status !== null && isInterim(status) && passed < MOST_INTERIM; passed += 1) {
        const next = blankLine(bytes, start)?.end ?? bytes.length;
        const nextStatus = statusAt(bytes, next);
        if (nextStatus === null) {
            break;
        }

        start = next;
        status = nextStatus;
    }

    if (status === null) {
        return null;
    }

    if (isInterim(status)) {
        problems.add('head_cut_off');
    }

    return headAt(bytes, start, status, problems);
}

function headAt(bytes: Buffer, start: number, { version, status, length }: Status, problems: Set<ResponseProblem>): ResponseHead {
    const blank = blankLine(bytes, start);
    if (blank === null) {
        problems.add('head_cut_off');
    }

    const textEnd = Math.min(blank?.start ?? bytes.length, start + MOST_HEAD_BYTES);
    if (textEnd === start + MOST_HEAD_BYTES) {
        problems.add('headers_capped');
    }

    const text = bytes.toString('latin1', start, beforeBlanks(bytes, textEnd));
    const lineFeed = text.indexOf('\n');
    const lineEnd = lineFeed === -1 ? text.length : lineFeed;
    const reason = trimmed(text, length, lineEnd);
    const headers = responseHeaders(text, lineEnd + 1, problems);
    return { version, status, reason, headers, end: blank?.end ?? bytes.length };
}

function statusAt(bytes: Buffer, start: number): Status | null {
    const match = STATUS.exec(bytes.toString('latin1', start, start + STATUS_LENGTH));
    return match === null ? null : { version: match[1] ?? 'ICY', status: Number(match[2]), length: match[0].length };
}

function isInterim({ status }: Status): boolean {
    return status >= 100 && status <= 199 && status !== 101;
}

function beforeBlanks(bytes: Buffer, end: number): number {
    let at = end;
    while (isBlank(bytes[at - 1])) {
        at -= 1;
    }

    return at;
}

function afterLineEnds(bytes: Buffer): number {
    let at = 0;
    while (bytes[at] === CARRIAGE_RETURN || bytes[at] === LINE_FEED) {
        at += 1;
    }

    return at;
}
