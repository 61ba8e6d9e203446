import type { ResponseHeader, ResponseProblem } from './parse-response.ts';

/** A status line with its headers. */
export interface ResponseHead {
    readonly version: string;
    readonly status: number;
    readonly reason: string;
    readonly headers: readonly ResponseHeader[];
    /** Where the body begins. */
    readonly end: number;
}

interface Status extends Pick<ResponseHead, 'version' | 'status'> {
    /** Length of the line up to here. */
    readonly length: number;
}

const STATUS = /^(?:HTTP\/([0-9]{1,2}(?:\.[0-9]{1,2})?)|ICY)[ \t]{1,8}([0-9]{3})(?![0-9])/i;
const STATUS_LENGTH = 32;
const MAX_INTERIM = 8;
const MAX_HEAD_BYTES = 262_144;

const SPACE = 0x20;
const TAB = 0x09;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/**
 * The head of the final response, behind empty lines and interim heads (100 to 199, but 101); the last interim one when the final one
 * is not there. Null for what is no head.
 */
export function responseHead(bytes: Buffer, problems: Set<ResponseProblem>): ResponseHead | null {
    let start = afterLineEnds(bytes);
    let status = statusAt(bytes, start);
    for (let passed = 0; status !== null && isInterim(status) && passed < MAX_INTERIM; passed += 1) {
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

    const textEnd = Math.min(blank?.start ?? bytes.length, start + MAX_HEAD_BYTES);
    if (textEnd === start + MAX_HEAD_BYTES) {
        problems.add('headers_capped');
    }

    const text = bytes.toString('latin1', start, beforeBlanks(bytes, textEnd));
    const lineEnd = indexOrEnd('\n', text, 0);
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

const MAX_LINES = 1000;
const FOLD = /\r?\n[ \t]+/g;

/** The header lines of a head from `from` on, in their order. A line without a name is passed over, as are those after the first 1000. */
export function responseHeaders(head: string, from: number, problems: Set<ResponseProblem>): ResponseHeader[] {
    const headers: ResponseHeader[] = [];
    let text = head;
    let colon = -1;
    let read = 0;
    for (let start = from; start < text.length; read += 1) {
        if (read === MAX_LINES) {
            problems.add('headers_capped');
            break;
        }

        let end = indexOrEnd('\n', text, start);
        if (isSpace(text.charCodeAt(end + 1))) {
            // This line goes on in the next: joins all that do so, from here on.
            text = text.slice(start).replace(FOLD, ' ');
            start = 0;
            end = indexOrEnd('\n', text, start);
            colon = -1;
        }

        // Not looked for again while it is ahead: there may be none in a thousand lines.
        colon = colon < start ? indexOrEnd(':', text, start) : colon;
        // White space in front of the first line continues nothing.
        const rawName = colon >= end || isSpace(text.charCodeAt(start)) ? '' : trimmed(text, start, colon);
        if (rawName === '') {
            problems.add('header_malformed');
        } else {
            headers.push({ name: rawName.toLowerCase(), rawName, value: trimmed(text, colon + 1, end) });
        }

        start = end + 1;
    }

    return headers;
}

function indexOrEnd(mark: string, text: string, from: number): number {
    const index = text.indexOf(mark, from);
    return index === -1 ? text.length : index;
}

function isSpace(code: number): boolean {
    return code === SPACE || code === TAB;
}

/** The value of the first header of this name. */
export function headerValue(headers: readonly ResponseHeader[], name: string): string | undefined {
    return headers.find((header) => header.name === name)?.value;
}

/** The codings in `Transfer-Encoding` or `Content-Encoding`, the one applied last at the end; `identity` is none. */
export function headerCodings(headers: readonly ResponseHeader[], name: string): readonly string[] {
    return headerList(headers, name).filter((coding) => coding !== 'identity');
}

/** What `Content-Length` says, in bytes; null without one, `invalid` for anything but one whole number (which may be repeated). */
export function contentLength(headers: readonly ResponseHeader[]): number | 'invalid' | null {
    const [value, ...others] = headerList(headers, 'content-length');
    if (value === undefined) {
        return null;
    }

    return /^[0-9]+$/.test(value) && others.every((other) => other === value) ? Number(value) : 'invalid';
}

/** Of the list in one header: more than any response needs, and an end to what a hostile one makes us hold. */
const MAX_ELEMENTS = 5;

/** The elements of the comma-separated lists that all headers of this name make up, in lower case. */
function headerList(headers: readonly ResponseHeader[], name: string): readonly string[] {
    const list: string[] = [];
    for (const header of headers) {
        if (header.name === name) {
            list.push(...elementsOf(header.value));
        }
    }

    return list;
}

function elementsOf(value: string): readonly string[] {
    // Nearly all lists have one element.
    if (!value.includes(',')) {
        return value === '' ? [] : [value.toLowerCase()];
    }

    const elements = value.split(',', MAX_ELEMENTS).map((element) => trimmed(element, 0, element.length).toLowerCase());
    return elements.filter((element) => element !== '');
}

/** An empty line, by offsets in bytes. */
export interface BlankLine {
    /** Of the line feed before it. */
    readonly start: number;
    /** Of what comes after it. */
    readonly end: number;
}

/** The first empty line that follows another line from `from` on. Both may end with LF or CR LF. */
export function blankLine(bytes: Buffer, from: number): BlankLine | null {
    for (let start = bytes.indexOf(LINE_FEED, from); start !== -1; start = bytes.indexOf(LINE_FEED, start + 1)) {
        const lineFeed = bytes[start + 1] === CARRIAGE_RETURN ? start + 2 : start + 1;
        if (bytes[lineFeed] === LINE_FEED) {
            return { start, end: lineFeed + 1 };
        }
    }

    return null;
}

/** The part of the text without spaces, tabs and carriage returns at its ends. `trim()` would take bytes of UTF-8 text for white space. */
function trimmed(text: string, from: number, to: number): string {
    let start = from;
    let end = to;
    while (start < end && isBlank(text.charCodeAt(start))) {
        start += 1;
    }

    while (end > start && isBlank(text.charCodeAt(end - 1))) {
        end -= 1;
    }

    return text.slice(start, Math.max(start, end));
}

function isBlank(code: number | undefined): boolean {
    return code === SPACE || code === TAB || code === CARRIAGE_RETURN;
}
