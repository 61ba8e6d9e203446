import { MAX_FIELD_LENGTH, MAX_PROBLEMS } from './check-record.ts';

/** Deeper objects are not part of a record, so nobody needs to know about their keys. */
const MAX_DEPTH = 2;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = /[ \t\n\r]*:/y;

/**
 * Paths of the keys that an object of the JSON text holds more than once, down to the objects inside the outermost one: as many as
 * are reported. `JSON.parse` keeps the last of them without a word.
 *
 * What is before the dot is cut where a field is cut that is shown. V8 tells long texts apart by their length alone before it
 * compares them, so a set of paths below one long key took time by the square of their number.
 *
 * @param json Valid JSON.
 */
export function duplicateKeys(json: string): string[] {
    const found = new Set<string>();
    const seen: Set<string>[] = [];
    let depth = 0;
    let parent = '';

    for (let at = 0; at < json.length && found.size < MAX_PROBLEMS; at += 1) {
        const character = json[at];
        if (character === '"') {
            const end = closingQuote(json, at);
            if (depth <= MAX_DEPTH && isKey(json, end)) {
                const key = JSON.parse(json.slice(at, end + 1)) as string;
                if (seen[depth]?.has(key) === true) {
                    found.add(depth === 1 ? key : `${parent}.${key}`);
                }

                seen[depth]?.add(key);
                parent = depth === 1 ? key.slice(0, MAX_FIELD_LENGTH + 1) : parent;
            }

            at = end;
        } else if (character === '{' || character === '[') {
            depth += 1;
            if (depth <= MAX_DEPTH) {
                seen[depth] = new Set();
            }
        } else if (character === '}' || character === ']') {
            depth -= 1;
        }
    }

    return [...found];
}

/**
 * Whether no key of the JSON text is repeated, given what `JSON.parse` made of it, which must be a record. A repeated
 * key leaves a string behind in the text; counting them is quicker than looking at the keys. Quicker still: a text without blanks
 * and escapes that is as long as the record needs holds no other key (a port like `1e4` hides two characters, a key takes more).
 */
export function repeatsNoKey(json: string, parsed: object): boolean {
    return json.length === compactLength(parsed) || stringsIn(json) === stringsOf(parsed);
}

/** Of the text that `JSON.stringify` makes where nothing has to be escaped. */
function compactLength(object: object): number {
    let length = 1;
    for (const key in object) {
        const value = object[key as keyof object] as unknown;
        // Two quotes and a colon, and the comma or the closing brace behind the value.
        length += key.length + 4;
        length +=
            typeof value === 'string'
                ? value.length + 2
                : typeof value === 'object'
                  ? compactLength(value as object)
                  : String(value).length;
    }

    return length === 1 ? 2 : length;
}

function stringsIn(json: string): number {
    let quotes = 0;
    for (let at = 0; at < json.length; at += 1) {
        const code = json.charCodeAt(at);
        if (code === QUOTE) {
            quotes += 1;
        } else if (code === BACKSLASH) {
            at += 1;
        }
    }

    return quotes / 2;
}

/** Keys and texts. */
function stringsOf(object: object): number {
    let count = 0;
    for (const key in object) {
        const value = object[key as keyof object] as unknown;
        count += typeof value === 'string' ? 2 : 1;
        count += typeof value === 'object' && value !== null ? stringsOf(value) : 0;
    }

    return count;
}

function closingQuote(json: string, start: number): number {
    let at = start;
    let escapes: number;
    do {
        at = json.indexOf('"', at + 1);
        escapes = 0;
        while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) {
            escapes += 1;
        }
    } while (escapes % 2 === 1);

    return at;
}

/** In valid JSON a string before a colon is a key. */
function isKey(json: string, end: number): boolean {
    COLON.lastIndex = end + 1;
    return COLON.test(json);
}
