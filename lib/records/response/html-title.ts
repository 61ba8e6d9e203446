import { decodeHTML } from 'entities/decode';
import { decodedText } from './decoded-text.ts';

/** How far into the page a title is looked for. */
const SEARCHED_BYTES = 65_536;
/** Where nearly all titles end. */
const NEAR_BYTES = 2_048;
const MOST_CHARACTERS = 512;

/** A title, or what holds text that only looks like one. */
const OPENING = /<(?:!--|(title|script|style|textarea|svg)(?=[\s/>])[^>]*>?)/gi;
const CLOSING: Readonly<Record<string, RegExp>> = {
    title: /<\/title/gi,
    script: /<\/script/gi,
    style: /<\/style/gi,
    textarea: /<\/textarea/gi,
    svg: /<\/svg/gi,
};
const COMMENT_END = /--!?>/g;
/** White space but a single space. */
const WIDE_SPACE = /[^\S ]\s*| \s+/g;

/** The text of the first `<title>` that is the page's own, in one line. Null for none, or when it begins too late. */
export function htmlTitle(body: Buffer, charset: string | null): string | null {
    const page = body.subarray(0, SEARCHED_BYTES);
    const isWide = charset === 'utf-16le' || charset === 'utf-16be';
    const title = isWide ? wideTitle(decodedText(page, charset)) : narrowTitle(page, charset);
    return title === null ? null : oneLine(title.includes('&') ? decodeHTML(title) : title);
}

function wideTitle(text: string): string | null {
    const place = titlePlace(text);
    return place === null ? null : text.slice(place.start, place.end);
}

function narrowTitle(page: Buffer, charset: string | null): string | null {
    const near = page.length > NEAR_BYTES ? titlePlace(page.toString('latin1', 0, NEAR_BYTES)) : null;
    const place = near === null || near.end === NEAR_BYTES ? titlePlace(page.toString('latin1')) : near;
    return place === null ? null : decodedText(page.subarray(place.start, place.end), charset);
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
        const closing = firstFrom(CLOSING[name] ?? COMMENT_END, text, name === '' ? start - 2 : start);
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
    return line.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
}
