import { checkedBy, describedSchema, type SchemaDescription } from '../../application-schema.ts';
import { compiled, type QuickCheck, UNSURE } from '../../compiled-schema.ts';
import { ScanwireError } from '../../errors.ts';
import type { OnWarning } from '../../process-warning.ts';
import type { EventKind } from './event-kinds.ts';

/**
 * The exact text that is stored, signed and sent for an event: checked against its kind, compact, keys in the order of the
 * kind's schema. Made once; every attempt sends these bytes.
 *
 * @param maxBytes The most that the text may have in UTF-8.
 * @throws ScanwireError `INVALID_INPUT` that names the field and the rule it breaks; the field of a body that is too long is `body`.
 */
export function eventBody(kind: EventKind, body: unknown, maxBytes: number = Number.POSITIVE_INFINITY): string {
    return judged(kind, writtenBody(kind, body, maxBytes), maxBytes);
}

/** A body as text that has been checked against its kind, and neither for its length nor for its depth. */
export interface WrittenBody {
    readonly text: string;
    /** Whether the check bounds how deep it is. */
    readonly isShallow: boolean;
}

/**
 * The first half of {@link eventBody}. What is large takes milliseconds in either, between which others can get through. What has more characters
 * than it may have bytes is refused here already: nobody needs to wait with it.
 */
export function writtenBody(kind: EventKind, body: unknown, maxBytes: number): WrittenBody {
    const quick = quickChecks.get(kind)?.()(body) ?? UNSURE;
    const isShallow = quick !== UNSURE;
    const text = isShallow ? JSON.stringify(quick) : checkedText(kind, body);
    if (text.length > maxBytes) {
        throw tooLong(kind, Buffer.byteLength(text), maxBytes);
    }

    return { text, isShallow };
}

/** The second half of {@link eventBody}. */
export function judged(kind: EventKind, { text, isShallow }: WrittenBody, maxBytes: number): string {
    if (!isShallow && isNestedDeeper(text, MAX_DEPTH)) {
        throw tooDeep(kind);
    }

    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) {
        throw tooLong(kind, bytes, maxBytes);
    }

    return text;
}

function tooLong({ name }: EventKind, bytes: number, maxBytes: number): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Body of ${name} must be at most ${maxBytes} bytes; it has ${bytes}`, { field: 'body' });
}

/** From this length on a body is large: each step with it, as to write, store, sign or send it, keeps the process from all else for milliseconds. */
const LARGE_BODY = 65_536;

/** A step with a mebibyte takes 5 to 10 ms. The rest after it is a few times as long. */
const LENGTH_PER_MILLISECOND = 50_000;
const LONGEST_REST = 50;

/** Whether a body is one after which to rest. */
export function isLarge({ length }: string): boolean {
    return length >= LARGE_BODY;
}

/**
 * Milliseconds to rest between two steps with a body, so that others get through; 0 for one that is not large. Without a rest the steps follow
 * each other closely, and an event that comes meanwhile is held up by all of them.
 */
export function restAfter(body: string): number {
    return isLarge(body) ? Math.min(Math.ceil(body.length / LENGTH_PER_MILLISECOND), LONGEST_REST) : 0;
}

/** How deep a body may be nested. Low enough that code which parses the body again, deeper in its own stack, does not overflow. */
const MAX_DEPTH = 1000;

/** The text of a body after the check; the body that is given may be any value of JavaScript. */
function checkedText(kind: EventKind, body: unknown): string {
    const checked = overflowing(kind, () => checkedBy(kind.schema, body, `Body of ${kind.name}`));
    return overflowing(kind, () => jsonOf(kind, inOrder(checked, orderOf(kind))));
}

/** Turns an overflow of the stack into a refusal: schemas and JSON go down a body by recursion. */
function overflowing<T>(kind: EventKind, act: () => T): T {
    try {
        return act();
    } catch (error) {
        throw error instanceof RangeError && /call stack/.test(error.message) ? tooDeep(kind) : error;
    }
}

function tooDeep({ name }: EventKind): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Body of ${name} is nested too deep: it may have ${MAX_DEPTH} levels at most`, {
        field: 'body',
    });
}

function jsonOf({ name }: EventKind, value: unknown): string {
    try {
        return JSON.stringify(value);
    } catch (cause) {
        if (cause instanceof TypeError) {
            const message = `Body of ${name} cannot be written as JSON: it must have neither circles nor values of the type BigInt`;
            throw new ScanwireError('INVALID_INPUT', message, { field: 'body', cause });
        }
        throw cause;
    }
}

const [QUOTE, BACKSLASH] = ['"', '\\'].map((character) => character.charCodeAt(0));
const OPENING: ReadonlySet<number> = new Set(['[', '{'].map((character) => character.charCodeAt(0)));
const CLOSING: ReadonlySet<number> = new Set([']', '}'].map((character) => character.charCodeAt(0)));

/**
 * Whether JSON has more levels than that. It jumps from quote to quote, since nearly all of a large body is in texts, and looks at each character
 * outside of them once. A regular expression would keep a step for every character of a long text.
 */
function isNestedDeeper(json: string, levels: number): boolean {
    // Most bodies are too short to be deep.
    if (json.length <= 2 * levels) {
        return false;
    }

    let depth = 0;
    for (let index = 0; index < json.length && depth <= levels; index += 1) {
        const character = json.charCodeAt(index);
        if (character === QUOTE) {
            index = endOfText(json, index);
        } else {
            depth += Number(OPENING.has(character)) - Number(CLOSING.has(character));
        }
    }

    return depth > levels;
}

/** The index of the quote that ends the text which begins with the quote at `start`. */
function endOfText(json: string, start: number): number {
    let end = json.indexOf('"', start + 1);
    while (isEscaped(json, end)) {
        end = json.indexOf('"', end + 1);
    }

    return end;
}

/** Whether an odd number of backslashes stands before it. */
function isEscaped(json: string, index: number): boolean {
    let before = index - 1;
    while (json.charCodeAt(before) === BACKSLASH) {
        before -= 1;
    }

    return (index - before) % 2 === 0;
}

/** Keys in order, each with the order of what is below it. A value without keys in its order stays as it is. */
interface KeyOrder {
    readonly keys?: ReadonlyMap<string, KeyOrder>;
    readonly items?: KeyOrder;
}

const descriptions = new WeakMap<EventKind, SchemaDescription>();
const orders = new WeakMap<EventKind, KeyOrder>();

const quickChecks = new WeakMap<EventKind, () => QuickCheck>();

/**
 * A kind of ours whose events come by the thousand. Its bodies are checked by a compiled form of its schema, which is made when the first body
 * comes.
 *
 * @param patterns The regular expressions of its schema.
 */
export function frequent(kind: EventKind, patterns: readonly RegExp[]): EventKind {
    let quick: QuickCheck | null = null;
    quickChecks.set(kind, () => (quick ??= compiled(describedBody(kind), patterns)));
    return kind;
}

/**
 * The description of a kind's bodies. To describe a schema costs more than to check a body, so it is done once for each kind; what is doubtful is
 * warned of then.
 */
export function describedBody(kind: EventKind, onWarning?: OnWarning): SchemaDescription {
    const description = descriptions.get(kind) ?? describedSchema(kind, `Event kind ${kind.name}`, onWarning);
    descriptions.set(kind, description);
    return description;
}

/** The order in which the kind has its keys. */
export function orderOf(kind: EventKind): KeyOrder {
    const order = orders.get(kind) ?? keyOrder(describedBody(kind));
    orders.set(kind, order);
    return order;
}

function keyOrder({ keys, items: [items] = [] }: SchemaDescription): KeyOrder {
    if (keys !== undefined) {
        return { keys: new Map(Object.entries(keys).map(([key, below]) => [key, keyOrder(below)])) };
    }

    return items === undefined ? {} : { items: keyOrder(items) };
}

function inOrder(value: unknown, order: KeyOrder): unknown {
    if (order.items !== undefined && Array.isArray(value)) {
        const { items } = order;
        return value.map((item) => inOrder(item, items));
    }

    if (order.keys === undefined || typeof value !== 'object' || value === null) {
        return value;
    }

    const known = [...order.keys]
        .filter(([key]) => Object.hasOwn(value, key))
        .map(([key, below]) => [key, inOrder(Reflect.get(value, key), below)]);
    const others = Object.entries(value).filter(([key]) => !order.keys?.has(key));
    return Object.fromEntries([...known, ...others]);
}
