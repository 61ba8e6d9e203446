import type { ResponseHeader, ResponseProblem } from './parsed-response.ts';
import { trimmed } from './trimmed.ts';

const SPACE = 0x20;
const TAB = 0x09;
const MOST_LINES = 1000;
const NONE: readonly string[] = [];
const FOLD = /\r?\n[ \t]+/g;

/** The header lines of a head, in their order. A line without a name is passed over, as are those after the first 1000. */
export function responseHeaders(text: string, problems: Set<ResponseProblem>): ResponseHeader[] {
    const lines = text.includes('\n ') || text.includes('\n\t') ? text.replace(FOLD, ' ') : text;
    const headers: ResponseHeader[] = [];
    let read = 0;
    for (let start = 0; start < lines.length; read += 1) {
        if (read === MOST_LINES) {
            problems.add('headers_capped');
            break;
        }

        const lineFeed = lines.indexOf('\n', start);
        const end = lineFeed === -1 ? lines.length : lineFeed;
        const header = responseHeader(lines.slice(start, end));
        if (header === null) {
            problems.add('header_malformed');
        } else {
            headers.push(header);
        }

        start = end + 1;
    }

    return headers;
}

function responseHeader(line: string): ResponseHeader | null {
    const colon = line.indexOf(':');
    const first = line.charCodeAt(0);
    // White space in front of the first line continues nothing.
    const rawName = first === SPACE || first === TAB ? '' : trimmed(line, 0, colon);
    return rawName === '' ? null : { name: rawName.toLowerCase(), rawName, value: trimmed(line, colon + 1, line.length) };
}

/** The value of the first header of this name. */
export function headerValue(headers: readonly ResponseHeader[], name: string): string | undefined {
    return headers.find((header) => header.name === name)?.value;
}

/** The elements of the comma-separated lists that all headers of this name make up, in lower case; at most `most` of each header. */
export function headerList(headers: readonly ResponseHeader[], name: string, most: number): readonly string[] {
    if (!headers.some((header) => header.name === name)) {
        return NONE;
    }

    const list: string[] = [];
    for (const header of headers) {
        if (header.name === name) {
            const elements = header.value.split(',', most).map((element) => trimmed(element, 0, element.length).toLowerCase());
            list.push(...elements.filter((element) => element !== ''));
        }
    }

    return list;
}
