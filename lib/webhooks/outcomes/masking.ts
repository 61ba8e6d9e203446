import { lookFor, type Needles, type Reached } from './needles.ts';

/** Stands for what must not be shown. */
export const MASK = '***';

/** In what was decoded from base64 or hexadecimal, secrets shorter than this are not looked for: they could not be told from other bytes. */
const MIN_ENCODED = 4;
/** A secret shorter than this is not masked beside a letter or a digit: there it is part of another word. */
const MIN_ANYWHERE = 8;

/** A part of the text that is masked: from its first character to behind its last. */
type Span = readonly [from: number, to: number];

/** The text, or what it becomes when it is decoded. */
interface View {
    readonly text: string;
    /** The part of the original text from which a part of this one was decoded. */
    spanOf(from: number, to: number): Span;
    /** The indices at which the text may have been cut off. */
    readonly ends: readonly number[];
    /** Whether it was decoded from base64 or hexadecimal. That gives some bytes for any word, also for one that encodes nothing. */
    readonly bytes: boolean;
}

/** What is known of a text besides its characters. */
export interface MaskingOptions {
    /** Whether it was cut off: then the beginning of something secret at its end is masked too. */
    readonly cut: boolean;
}

/**
 * The text with {@link MASK} in place of each of these secrets, as they are or encoded: in JSON, HTML, percent-encoding, base64, hexadecimal
 * digits, and these within one another. The text is decoded, so that it does not matter which characters a writer escapes, and how. A secret that
 * somebody has encoded in yet another way, in order to have it shown, is not found.
 */
export function masked(text: string, secrets: readonly string[], { cut }: MaskingOptions): string {
    const needles = lookFor(needlesOf(secrets));
    /** For each index the end of the longest part that is masked from there; 0 where none begins. */
    const ends = new Uint32Array(text.length);
    for (const view of viewsOf(text.replaceAll(APART, OTHER_NONCHARACTER))) {
        for (const [from, to] of spansOf(needles, view, cut)) {
            ends[from] = Math.max(ends[from] ?? 0, Math.min(to, text.length));
        }
    }
    const parts: string[] = [];
    let shownTo = 0;
    for (const [from, to] of ends.entries()) {
        if (from >= shownTo && to > from) {
            parts.push(text.slice(shownTo, from), MASK);
        }
        shownTo = Math.max(shownTo, to);
    }
    return parts.join('') + text.slice(shownTo);
}

/** The forms of each secret to look for in a decoded text: as it is; as its bytes; and, where the secret itself encodes bytes, as those. */
function needlesOf(secrets: readonly string[]): readonly string[] {
    const all = secrets.flatMap((secret) => [
        secret,
        Buffer.from(secret).toString('latin1'),
        // the secret written in ISO-8859-1, when it is read as UTF-8
        secret.replaceAll(/[\u0080-\uffff]/g, '\uFFFD'),
        ...encodedBytes(secret),
        // So short a secret is not looked for in decoded words, where other bytes may be the same by chance, but as it looks in base64.
        ...(secret.length < MIN_ENCODED ? [Buffer.from(secret).toString('base64')] : []),
    ]);
    return [...new Set(all)].filter((needle) => needle !== '').map((needle) => needle.replaceAll(APART, OTHER_NONCHARACTER));
}

const HEX = /^(?:[\da-f]{2}){8,}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{16,}={0,2}$/;

function encodedBytes(secret: string): readonly string[] {
    const encoding = HEX.test(secret) ? 'hex' : BASE64.test(secret) ? 'base64' : null;
    return encoding === null ? [] : [Buffer.from(secret, encoding).toString('latin1')];
}

/** The parts of the original text in which the needles stand in a view; of a text that was cut off also those in which they may begin. */
function* spansOf(needles: Needles, { text, spanOf, ends, bytes }: View, cut: boolean): Generator<Span> {
    const cuts = new Set(cut ? ends : []);
    let reached = needles.start;
    for (let end = 1; end <= text.length; end += 1) {
        reached = needles.next(reached, text.charCodeAt(end - 1));
        const length = longestEnding(reached.needle, { text, end, bytes });
        if (length > 0) {
            yield spanOf(end - length, end);
        }
        const begun = cuts.has(end) ? longestBegun(reached, { text, end }) : 0;
        if (begun > 0) {
            yield [spanOf(end - begun, end)[0], Number.POSITIVE_INFINITY];
        }
    }
}

/** The length of the longest needle that ends at an index and is to be masked there; 0 where none is. */
function longestEnding(longest: Reached | null, { text, end, bytes }: Pick<View, 'text' | 'bytes'> & { readonly end: number }): number {
    for (let needle = longest; needle !== null; needle = needle.shorter?.needle ?? null) {
        const { length } = needle;
        if (length >= MIN_ANYWHERE) {
            return length;
        }
        if ((bytes && length < MIN_ENCODED) || isWithinWord(text, end)) {
            return 0;
        }
        if (!isWithinWord(text, end - length)) {
            return length;
        }
    }
    return 0;
}

/** The length of the part before an end of the text that may be the beginning of a needle; 0 where there is none. */
function longestBegun(longest: Reached, { text, end }: { readonly text: string; readonly end: number }): number {
    for (let begun: Reached | null = longest; begun !== null; begun = begun.shorter) {
        const { length } = begun;
        if (begun.longest > length && (begun.longest >= MIN_ANYWHERE || !isWithinWord(text, end - length))) {
            return length;
        }
    }
    return 0;
}

/** Whether letters or digits stand on both sides. */
function isWithinWord(text: string, at: number): boolean {
    return /^[\p{L}\p{N}]{2}$/u.test(text.slice(Math.max(0, at - 1), at + 1));
}

/** How deep encodings are looked for within one another, and how many views a text may have, since somebody may write one that has very many. */
const MAX_DEPTH = 3;
const MAX_VIEWS = 20;

/** A text and what it may have been before somebody has encoded it. */
function viewsOf(text: string): readonly View[] {
    const first: View = { text, spanOf: (from, to) => [from, to], ends: endsOf(text, [text.length]), bytes: false };
    const views: View[] = [first];
    const seen = new Set([text]);
    let last: readonly View[] = [first];
    for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
        const next = last.flatMap((view) => DECODERS.map((decode) => decode(view)));
        last = next.filter((view) => view.text !== '' && !seen.has(view.text) && seen.add(view.text)).slice(0, MAX_VIEWS - views.length);
        views.push(...last);
    }
    return views;
}

/** At the end of a text that was cut off: an escape whose rest may be missing, or the end of a line. */
const CUT_THROUGH = /(?:\\(?:u[\da-f]{0,3}|x[\da-f]?)?|%[\da-f]?|&(?:#?[\da-z]{0,8})?|\r|\r?\n)$/i;
const MAX_CUT_THROUGH = 10;

/** These ends of a text, and for each of them the end before an escape that was cut through there. */
function endsOf(text: string, ends: readonly number[]): readonly number[] {
    const all = ends.flatMap((end) => {
        const from = Math.max(0, end - MAX_CUT_THROUGH);
        const cutAt = text.slice(from, end).search(CUT_THROUGH);
        return cutAt === -1 ? [end] : [end, from + cutAt];
    });
    return [...new Set(all)];
}

/** The index of the last of these ascending numbers that is at most `max`; -1 where none is. */
function lastUpTo(max: number, numbers: readonly number[]): number {
    let [low, high] = [0, numbers.length];
    while (low < high) {
        const middle = (low + high) >>> 1;
        [low, high] = (numbers[middle] as number) <= max ? [middle + 1, high] : [low, middle];
    }
    return low - 1;
}

/** Replaces every match by the character that it stands for; a match that stands for none stays. */
function unescaping(pattern: RegExp, characterOf: (match: RegExpExecArray) => string | undefined): (view: View) => View {
    return (view) => {
        const parts: string[] = [];
        /** Where each character stands that replaces something, and what it replaces. */
        const [positions, begins, ends]: [number[], number[], number[]] = [[], [], []];
        let copiedTo = 0;
        for (const match of view.text.matchAll(pattern)) {
            const replacement = characterOf(match);
            if (replacement !== undefined) {
                const between = view.text.slice(copiedTo, match.index);
                parts.push(between, replacement);
                positions.push((positions.at(-1) ?? -1) + between.length + 1);
                copiedTo = match.index + match[0].length;
                begins.push(match.index);
                ends.push(copiedTo);
            }
        }
        const replacedAt = (at: number): Span => {
            const last = lastUpTo(at, positions);
            const beyond = at - (positions[last] ?? -1);
            const end = ends[last] ?? 0;
            return beyond === 0 ? [begins[last] as number, end] : [end + beyond - 1, end + beyond];
        };
        /** The position in the decoded text of an end in the original one; an end within an escape counts as before its character. */
        const decodedEnd = (end: number): number => {
            const last = lastUpTo(end - 1, begins);
            const beyond = end - (ends[last] ?? 0);
            return beyond < 0 ? (positions[last] as number) : (positions[last] ?? -1) + 1 + beyond;
        };
        const text = parts.join('') + view.text.slice(copiedTo);
        const spanOf = (from: number, to: number): Span => view.spanOf(replacedAt(from)[0], replacedAt(to - 1)[1]);
        return { text, spanOf, ends: endsOf(text, view.ends.map(decodedEnd)), bytes: view.bytes };
    };
}

/** Characters that JSON escapes by a letter. In other encodings such an escape stands for the letter itself. */
const CONTROLS: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** Names of HTML's entities for ASCII characters other than letters and digits. */
const NAMED: Readonly<Record<string, string>> = Object.fromEntries(
    [
        ...'amp& lt< gt> quot" apos\' sol/ bsol\\ equals= plus+ colon: semi; comma, period. num# dollar$ percnt% lpar( rpar) ast*'.split(
            ' ',
        ),
        ...'lsqb[ lbrack[ rsqb] rbrack] lcub{ lbrace{ rcub} rbrace} verbar| vert| excl! quest? commat@ Hat^ lowbar_ grave`'.split(' '),
    ].map((entry) => [entry.slice(0, -1), entry.slice(-1)]),
);

const character = (digits: string | undefined, radix: number): string =>
    String.fromCharCode(Number.parseInt(digits ?? '', radix)).replace(APART, OTHER_NONCHARACTER);

/** Each undoes one encoding; parts that are not encoded stay as they are. */
const DECODERS: readonly ((view: View) => View)[] = [
    // JSON, and what else writes so
    unescaping(/\\(?:u([\da-f]{4})|x([\da-f]{2})|([^ux]))/gis, ([, four, two, escaped = '']) =>
        (four ?? two) === undefined ? (CONTROLS[escaped] ?? escaped) : character(four ?? two, 16),
    ),
    unescaping(/%([\da-f]{2})/gi, ([, digits]) => character(digits, 16)),
    // bodies of HTML forms (application/x-www-form-urlencoded)
    unescaping(/%([\da-f]{2})|\+/gi, ([, digits]) => (digits === undefined ? ' ' : character(digits, 16))),
    unescaping(/&(?:#(\d{1,5})|#x([\da-f]{1,4})|([a-z]{2,6}));?/gi, ([, decimal, hex, name = '']) =>
        (decimal ?? hex) === undefined ? NAMED[name] : character(decimal ?? hex, decimal === undefined ? 16 : 10),
    ),
    decoding(/[\w+/-](?:\r?\n?[\w+/-]){3,}/g, 'base64', [0, 1, 2, 3], 6),
    decoding(/[\da-f]{8,}/gi, 'hex', [0, 1], 4),
];

/** Stands between bytes that did not stand next to each other in the text, so that nothing is found across them. No byte becomes this character. */
const APART = '\uFFFF';
/** Stands for {@link APART} where a text or a secret has that character itself. */
const OTHER_NONCHARACTER = '\uFFFE';

/**
 * Decodes runs of base64 or hexadecimal digits (the characters of such an alphabet) to the bytes that they stand for.
 *
 * @param offsets The indices of the digits at which bytes may begin. Text before the encoded bytes may consist of the same characters, so that the
 *     run may begin within a group of digits.
 * @param bits How many bits a digit stands for.
 */
function decoding(runs: RegExp, encoding: 'base64' | 'hex', offsets: readonly number[], bits: number): (view: View) => View {
    return (view) => {
        const parts: string[] = [];
        /** Where the bytes of each run begin, and a function that gives the position in the text of a digit by its index in the run. */
        const [begins, positionOfDigit, ends]: [number[], ((digit: number) => number)[], number[]] = [[], [], []];
        let length = 0;
        for (const { 0: run, index } of view.text.matchAll(runs)) {
            const digits = run.replaceAll(/[\r\n]/g, '');
            const positions = digits === run ? null : Array.from(run.matchAll(/[^\r\n]/g), (digit) => digit.index);
            for (const offset of offsets) {
                const bytes = Buffer.from(digits.slice(offset), encoding).toString('latin1');
                begins.push(length);
                positionOfDigit.push((digit) => index + (positions?.[offset + digit] ?? offset + digit));
                parts.push(bytes, APART);
                length += bytes.length + 1;
                if (view.ends.includes(index + run.length)) {
                    ends.push(...endsOf(bytes, [bytes.length]).map((end) => length - 1 - bytes.length + end));
                }
            }
        }
        const spanOf = (from: number, to: number): Span => {
            const last = lastUpTo(from, begins);
            const [begin, positionOf] = [begins[last] as number, positionOfDigit[last] as (digit: number) => number];
            const first = positionOf(Math.floor(((from - begin) * 8) / bits));
            return view.spanOf(first, positionOf(Math.floor(((to - begin) * 8 - 1) / bits)) + 1);
        };
        return { text: parts.join(''), spanOf, ends, bytes: true };
    };
}
