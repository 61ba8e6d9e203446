import { isAscii, isUtf8 } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { replaceCodePoint } from 'entities/decode';
import type { HttpResponse, ResponseProblem } from './parse-response.ts';

/**
 * The body as text, in its charset; where nobody names one, in UTF-8 if it can be and else in windows-1252. What is not of the
 * charset becomes U+FFFD, and a byte order mark is left out.
 */
export function bodyText({ body, charset }: HttpResponse): string {
    return decodedText(body, charset);
}

/** Where an HTML page names its charset (HTML Standard, 13.2.3.2). */
const META_BYTES = 1024;

const PARAMETER = /;[ \t]*charset[ \t]*=[ \t]*["']?([^\s"';,]+)/i;
/** One that does not end takes all that follows. */
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g;
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

/** Decodes text of one charset, by its name in the Encoding Standard. Never throws; what is not of that charset becomes U+FFFD. */
interface CharsetDecoder {
    readonly charset: string;
    decode(bytes: Uint8Array): string;
}

/** Of known labels only, none with white space around it, so there are not many. */
const decoders = new Map<string, CharsetDecoder>();

/** The decoder for a label of the Encoding Standard, in any case and without white space; null for one that nobody knows. */
function charsetDecoder(label: string): CharsetDecoder | null {
    const name = label.toLowerCase();
    const known = decoders.get(name);
    if (known !== undefined) {
        return known;
    }

    try {
        const decoder = new TextDecoder(name);
        const { encoding: charset } = decoder;
        const made = { charset, decode: charset === 'windows-1252' ? decodeWindows1252 : (bytes: Uint8Array) => decoder.decode(bytes) };
        decoders.set(name, made);
        return made;
    } catch {
        return null;
    }
}

/** Node 20 takes windows-1252 for ISO-8859-1. Character references to these codes mean windows-1252, so there is a table already. */
function decodeWindows1252(bytes: Uint8Array): string {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    return text.replace(/[\x80-\x9f]/g, (character) => String.fromCharCode(replaceCodePoint(character.charCodeAt(0))));
}

/** Charsets in which ASCII is ASCII, as nearly all text is. */
const USUAL: readonly (string | null)[] = [null, 'utf-8', 'windows-1252'];

/** Text whose charset nobody names is UTF-8 if it can be. */
export function decodedText(bytes: Buffer, charset: string | null): string {
    if (USUAL.includes(charset) && isAscii(bytes)) {
        return bytes.toString('latin1');
    }

    return charsetDecoder(charset ?? (isUtf8(bytes) ? 'utf-8' : 'windows-1252'))?.decode(bytes) ?? '';
}
