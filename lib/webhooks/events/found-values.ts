import { isIPv4 } from 'node:net';
import { type Block, parseAddress, unmapped } from '../../addresses.ts';

/** How deep a path looks into lists within lists. */
const MAX_NESTED = 8;
/** Up to so many objects are asked for each key; of more, all keys are read at once. */
const FEW_OBJECTS = 256;
/** So many values are compared one by one; of more, a set or a sorted list is made. */
const FEW_VALUES = 16;
const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]{5,18}(?:Z|[+-]\d{2}:?\d{2})$/i;

/** The least and the greatest of some numbers; of none, what no number is: infinite the other way. */
export interface Range {
    readonly least: number;
    readonly greatest: number;
}

/** The first and the last address of a block, as {@link sortable} writes them. */
export interface AddressRange {
    readonly first: string;
    readonly last: string;
}

/**
 * What a path leads to in a body. However many conditions ask, and of however many exporters, the values are gathered, compared and sorted once: what
 * a further condition costs does not grow with the body.
 */
export class FoundValues {
    /** In their order, without lists: their items are here. */
    readonly values: readonly unknown[];
    #distinct: ReadonlySet<unknown> | undefined;
    #texts: readonly string[] | undefined;
    #textLength: number | undefined;
    #sortedTexts: readonly string[] | undefined;
    #addresses: readonly string[] | undefined;
    #numbers: Range | undefined;
    #times: Range | undefined;
    #byKey: ReadonlyMap<string, readonly unknown[]> | undefined;

    constructor(values: readonly unknown[]) {
        this.values = values;
    }

    /** Whether the value is among them. */
    has(value: unknown): boolean {
        if (this.values.length <= FEW_VALUES) {
            return this.values.includes(value);
        }

        this.#distinct ??= new Set(this.values);
        return this.#distinct.has(value);
    }

    hasOneOf(wanted: ReadonlySet<unknown>): boolean {
        return wanted.size < this.values.length
            ? [...wanted].some((value) => this.has(value))
            : this.values.some((value) => wanted.has(value));
    }

    /** Whether one is a text that starts so. */
    hasTextFrom(start: string): boolean {
        if (this.texts.length <= FEW_VALUES) {
            return this.texts.some((text) => text.startsWith(start));
        }

        this.#sortedTexts ??= this.texts.toSorted();
        return firstFrom(this.#sortedTexts, start)?.startsWith(start) ?? false;
    }

    /** Whether one is the text of an IP address in the range. */
    hasAddressIn({ first, last }: AddressRange): boolean {
        this.#addresses ??= this.texts
            .map(addressOf)
            .filter((address) => address !== '')
            .sort();
        const found = firstFrom(this.#addresses, first);
        return found !== undefined && found <= last;
    }

    /** Each text once where there are many. */
    get texts(): readonly string[] {
        this.#texts ??= textsAmong(this.values);
        return this.#texts;
    }

    /** Characters of {@link texts} in all, and one for each text. */
    get textLength(): number {
        this.#textLength ??= this.texts.reduce((sum, text) => sum + text.length + 1, 0);
        return this.#textLength;
    }

    get numbers(): Range {
        this.#numbers ??= rangeOf(this.values, (value) => (typeof value === 'number' ? value : Number.NaN));
        return this.#numbers;
    }

    /** Of those that are ISO 8601 times with a zone, in milliseconds since 1970. */
    get times(): Range {
        this.#times ??= rangeOf(this.texts, (text) => (TIME.test(text) ? Date.parse(text) : Number.NaN));
        return this.#times;
    }

    /** What a key of the objects leads to. */
    below(key: string): FoundValues {
        const found: unknown[] = [];
        if (this.values.length > FEW_OBJECTS) {
            this.#byKey ??= valuesByKey(this.values.filter(isAnObject));
            for (const value of this.#byKey.get(key) ?? []) {
                addWithoutLists(value, found);
            }
        } else {
            for (const value of this.values) {
                if (isAnObject(value) && Object.hasOwn(value, key)) {
                    addWithoutLists((value as Readonly<Record<string, unknown>>)[key], found);
                }
            }
        }
        return new FoundValues(found);
    }
}

function isAnObject(value: unknown): value is object {
    return typeof value === 'object' && value !== null;
}

function valuesByKey(objects: readonly object[]): ReadonlyMap<string, readonly unknown[]> {
    const byKey = new Map<string, unknown[]>();
    for (const object of objects) {
        for (const [key, value] of Object.entries(object)) {
            const values = byKey.get(key) ?? [];
            byKey.set(key, values);
            values.push(value);
        }
    }
    return byKey;
}

/** Adds a value, or the items of a list, those of lists in it too. */
function addWithoutLists(value: unknown, found: unknown[], nested = 0): void {
    if (!Array.isArray(value)) {
        if (value !== undefined) {
            found.push(value);
        }
    } else if (nested < MAX_NESTED) {
        for (const item of value) {
            addWithoutLists(item, found, nested + 1);
        }
    }
}

function rangeOf<Value>(values: Iterable<Value>, numberOf: (value: Value) => number): Range {
    let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const value of values) {
        const number = numberOf(value);
        if (!Number.isNaN(number)) {
            least = Math.min(least, number);
            greatest = Math.max(greatest, number);
        }
    }
    return { least, greatest };
}

/** The bytes of an address as text, behind one that tells its family: the texts of a block of addresses follow each other in the order of `<`. */
function sortable(bytes: readonly number[]): string {
    let text = String.fromCharCode(bytes.length);
    for (const byte of bytes) {
        text += String.fromCharCode(byte);
    }
    return text;
}

/** The addresses of a block. */
export function addressRange([network, bits]: Block): AddressRange {
    const bytes = network.toByteArray();
    const open = bytes.map((_, index) => 0xff >> Math.min(8, Math.max(0, bits - 8 * index)));
    return {
        first: sortable(bytes.map((byte, index) => byte & ~(open[index] as number))),
        last: sortable(bytes.map((byte, index) => byte | (open[index] as number))),
    };
}

/** Characters of the longest text of an address: IPv6 that ends as IPv4. */
const LONGEST_ADDRESS = 45;

/** As {@link sortable} writes it; empty for a text that is no address. */
function addressOf(text: string): string {
    if (isIPv4(text)) {
        return sortable(text.split('.').map(Number));
    }

    const address = text.length > LONGEST_ADDRESS ? null : parseAddress(text);
    return address === null ? '' : sortable(unmapped(address).toByteArray());
}

function textsAmong(values: readonly unknown[]): readonly string[] {
    const texts = values.filter((value) => typeof value === 'string');
    return texts.length > FEW_VALUES ? [...new Set(texts)] : texts;
}

/** The first of sorted texts that is not before this one; undefined when all are. */
function firstFrom(sorted: readonly string[], text: string): string | undefined {
    let [from, to] = [0, sorted.length];
    while (from < to) {
        const middle = (from + to) >>> 1;
        if ((sorted[middle] as string) < text) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return sorted[from];
}

/**
 * What was found in the body that was asked last, by the paths: all exporters are asked of an event before any is asked of the next. A weak map from
 * bodies would cost several times as much as most filters do, since the garbage collector has to go through it.
 */
let last: { readonly body: unknown; readonly byPath: Map<string, FoundValues> } = { body: undefined, byPath: new Map() };

/** What the keys of a path (with dots between them) lead to in a body. The body must not change afterwards. */
export function foundValues(body: unknown, path: string): FoundValues {
    if (last.body !== body) {
        last = { body, byPath: new Map() };
    }
    return foundIn(body, path, last.byPath);
}

function foundIn(body: unknown, path: string, byPath: Map<string, FoundValues>): FoundValues {
    const found = byPath.get(path);
    if (found !== undefined) {
        return found;
    }

    const dot = path.lastIndexOf('.');
    const above = dot === -1 ? wholeOf(body) : foundIn(body, path.slice(0, dot), byPath);
    const values = above.below(path.slice(dot + 1));
    byPath.set(path, values);
    return values;
}

function wholeOf(body: unknown): FoundValues {
    const found: unknown[] = [];
    addWithoutLists(body, found);
    return new FoundValues(found);
}
