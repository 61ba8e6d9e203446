import { decodeHTML } from 'entities/decode';
import { decodedText } from './text.ts';

/** How far into the page a title is looked for. */
const SEARCHED_BYTES = 65_536;
const MOST_CHARACTERS = 512;

/** A title, or what holds text that only looks like one. */
const OPENING = /<(?:!--|(title|script|style|textarea|svg)(?=[\s/>])[^>]*>?)/gi;
const CLOSING: ReadonlyMap<string, RegExp> = new Map([
    ['title', /<\/title/gi],
    ['script', /<\/script/gi],
    ['style', /<\/style/gi],
    ['textarea', /<\/textarea/gi],
    ['svg', /<\/svg/gi],
]);
const COMMENT_END = /--!?>/g;
/** White space but a single space. */
const WIDE_SPACE = /[^\S ]\s*| \s+/g;

/**
 * The text of the first `<title>` that is the page's own, in one line. Null for none, or when it begins too late.
 *
 * @param start The first bytes of the body as text, where nearly all titles end.
 */
export function htmlTitle(body: Buffer, start: string, charset: string | null): string | null {
    const isWide = charset === 'utf-16le' || charset === 'utf-16be';
    const title = isWide ? wideTitle(decodedText(body.subarray(0, SEARCHED_BYTES), charset)) : narrowTitle(body, start, charset);
    return title === null ? null : oneLine(title.includes('&') ? decodeHTML(title) : title);
}

function wideTitle(text: string): string | null {
    const place = titlePlace(text);
    return place === null ? null : text.slice(place.start, place.end);
}

function narrowTitle(body: Buffer, start: string, charset: string | null): string | null {
    const near = titlePlace(start);
    const isNear = start.length === body.length || (near !== null && near.end < start.length);
    const place = isNear ? near : titlePlace(body.toString('latin1', 0, SEARCHED_BYTES));
    return place === null ? null : decodedText(body.subarray(place.start, place.end), charset);
}

interface Place {
    readonly start: number;
    readonly end: number;
}

/** Each search goes on where the last one ended, so the text is read once. */
function titlePlace(text: string): Place | null {
    let at = 0;
    while (true) {
        const opening = firstFrom(OPENING, text, at);
        if (opening === null) {
            return null;
        }

        const start = opening.index + opening[0].length;
        const name = opening[1]?.toLowerCase() ?? '';
        // `<!-->` is a whole comment.
        const closing = firstFrom(CLOSING.get(name) ?? COMMENT_END, text, name === '' ? start - 2 : start);
        if (name === 'title') {
            return { start, end: closing?.index ?? text.length };
        }

        if (closing === null) {
            return null;
        }

        at = closing.index + closing[0].length;
    }
}

function firstFrom(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
    pattern.lastIndex = from;
    return pattern.exec(text);
}

function oneLine(text: string): string {
    const line = text.replace(WIDE_SPACE, ' ').trim();
    // Not half a character at the end.
    return line.length <= MOST_CHARACTERS ? line : line.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
}
