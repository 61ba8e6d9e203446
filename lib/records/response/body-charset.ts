import { charsetDecoder } from './charset-decoder.ts';
import type { ResponseProblem } from './parsed-response.ts';

/** Where an HTML page names its charset (HTML Standard, 13.2.3.2). */
const META_BYTES = 1024;

const PARAMETER = /;[ \t]*charset[ \t]*=[ \t]*["']?([^\s"';,]+)/i;
const COMMENT = /<!--[\s\S]*?-->/g;
const META = /<meta[\s/]([^>]*)/gi;
const CHARSET = /charset/i;
const META_CHARSET = /charset\s*=\s*["']?([^\s"'/;]+)/i;
const IS_CONTENT_TYPE = /http-equiv\s*=\s*["']?content-type/i;
const HAS_CONTENT = /\bcontent\s*=/i;

/**
 * By byte order mark, `Content-Type` or `<meta>`, in this order. A name that nobody knows counts as none.
 *
 * @param page The first bytes of an HTML page as text; empty for anything else.
 */
export function bodyCharset(body: Buffer, contentType: string, page: string, problems: Set<ResponseProblem>): string | null {
    return (
        markedCharset(body) ??
        knownCharset(PARAMETER.exec(contentType)?.[1], problems) ??
        knownCharset(metaLabel(page.slice(0, META_BYTES)), problems)
    );
}

function knownCharset(label: string | undefined, problems: Set<ResponseProblem>): string | null {
    if (label === undefined) {
        return null;
    }

    const decoder = charsetDecoder(label);
    if (decoder === null) {
        problems.add('charset_unknown');
    }

    return decoder?.charset ?? null;
}

function markedCharset(body: Buffer): string | null {
    const first = body[0];
    const second = body[1];
    if (first === 0xef && second === 0xbb && body[2] === 0xbf) {
        return 'utf-8';
    }

    return first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : null;
}

function metaLabel(start: string): string | undefined {
    if (!CHARSET.test(start)) {
        return undefined;
    }

    const text = start.includes('<!--') ? start.replace(COMMENT, '') : start;
    // `matchAll` would make a copy of the pattern for each page.
    META.lastIndex = 0;
    for (let tag = META.exec(text); tag !== null; tag = META.exec(text)) {
        const [, attributes = ''] = tag;
        const label = META_CHARSET.exec(attributes)?.[1];
        if (label !== undefined && (IS_CONTENT_TYPE.test(attributes) || !HAS_CONTENT.test(attributes))) {
            // A page in which this can be read is not in UTF-16.
            return /^utf-?16/i.test(label) ? 'utf-8' : label;
        }
    }

    return undefined;
}
