import { decodeHTML } from 'entities/decode';
import { decodedText } from './charset.ts';

/** How far into the page a title is looked for. */
const SEARCHED_BYTES = 65_536;
const MAX_CHARACTERS = 512;

/** A title, or what holds text that only looks like one. */
const START = /<(?:!--|(title|script|style|textarea|svg)(?=[\s/>])[^>]*>?)/gi;
const ENDS: ReadonlyMap<string, RegExp> = new Map(
    ['title', 'script', 'style', 'textarea', 'svg'].map((name) => [name, new RegExp(`</${name}`, 'gi')]),
);
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
    const title = isWide ? wideTitle(body, charset) : narrowTitle(body, start, charset);
    return title === null ? null : oneLine(title.includes('&') ? decodeHTML(title) : title);
}

function wideTitle(body: Buffer, charset: string): string | null {
    const text = decodedText(body.subarray(0, SEARCHED_BYTES), charset);
    const range = titleRange(text);
    return range && text.slice(range.start, range.end);
}

function narrowTitle(body: Buffer, start: string, charset: string | null): string | null {
    const near = titleRange(start);
    const isNear = start.length === body.length || (near !== null && near.end < start.length);
    const range = isNear ? near : titleRange(body.toString('latin1', 0, SEARCHED_BYTES));
    return range && decodedText(body.subarray(range.start, range.end), charset);
}

/** Each search goes on where the last one ended, so the text is read once. */
function titleRange(text: string): { readonly start: number; readonly end: number } | null {
    let at = 0;
    while (true) {
        const tag = firstFrom(START, text, at);
        if (tag === null) {
            return null;
        }

        const start = tag.index + tag[0].length;
        const name = tag[1]?.toLowerCase() ?? '';
        // `<!-->` is a whole comment.
        const end = firstFrom(ENDS.get(name) ?? COMMENT_END, text, name === '' ? start - 2 : start);
        if (name === 'title') {
            return { start, end: end?.index ?? text.length };
        }

        if (end === null) {
            return null;
        }

        at = end.index + end[0].length;
    }
}

function firstFrom(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
    pattern.lastIndex = from;
    return pattern.exec(text);
}

function oneLine(text: string): string {
    const line = text.replace(WIDE_SPACE, ' ').trim();
    // Not half a character at the end.
    return line.length <= MAX_CHARACTERS ? line : line.slice(0, MAX_CHARACTERS).replace(/[\ud800-\udbff]$/, '');
}
