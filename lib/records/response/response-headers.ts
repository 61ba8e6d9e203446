import type { ResponseHeader, ResponseProblem } from './parsed-response.ts';
import { trimmed } from './trimmed.ts';

const SPACE = 0x20;
const TAB = 0x09;
const MOST_LINES = 1000;
const FOLD = /\r?\n[ \t]+/g;

/** The header lines of a head from a place on, in their order. A line without a name is passed over, as are those after the first 1000. */
export function responseHeaders(head: string, from: number, problems: Set<ResponseProblem>): ResponseHeader[] {
    const headers: ResponseHeader[] = [];
    let text = head;
    let colon = -1;
    let read = 0;
    for (let start = from; start < text.length; read += 1) {
        if (read === MOST_LINES) {
            problems.add('headers_capped');
            break;
        }

        let end = placeOf('\n', text, start);
        if (isSpace(text.charCodeAt(end + 1))) {
            // This line goes on in the next: joins all that do so, from here on.
            text = text.slice(start).replace(FOLD, ' ');
            start = 0;
            end = placeOf('\n', text, start);
            colon = -1;
        }

        // Not looked for again while it is ahead: there may be none in a thousand lines.
        colon = colon < start ? placeOf(':', text, start) : colon;
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

function placeOf(mark: string, text: string, from: number): number {
    const place = text.indexOf(mark, from);
    return place === -1 ? text.length : place;
}

function isSpace(code: number): boolean {
    return code === SPACE || code === TAB;
}

/** The value of the first header of this name. */
export function headerValue(headers: readonly ResponseHeader[], name: string): string | undefined {
    return headers.find((header) => header.name === name)?.value;
}

/** The elements of the comma-separated lists that all headers of this name make up, in lower case; at most `most` of each header. */
export function headerList(headers: readonly ResponseHeader[], name: string, most: number): readonly string[] {
    const list: string[] = [];
    for (const header of headers) {
        if (header.name === name) {
            list.push(...elementsOf(header.value, most));
        }
    }

    return list;
}

function elementsOf(value: string, most: number): readonly string[] {
    // Nearly all lists have one element.
    if (!value.includes(',')) {
        return value === '' ? [] : [value.toLowerCase()];
    }

    const elements = value.split(',', most).map((element) => trimmed(element, 0, element.length).toLowerCase());
    return elements.filter((element) => element !== '');
}
