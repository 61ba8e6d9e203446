import { checkedBy, describedSchema, type SchemaDescription } from '../../application-schema.ts';
import { compiled, type QuickCheck, UNSURE } from '../../compiled-schema.ts';
import { ScanwireError } from '../../errors.ts';
import type { EventKind } from './event-kinds.ts';

/**
 * The exact text that is stored, signed and sent for an event: checked against its kind, compact, keys in the order of the
 * kind's schema. Made once; every try sends these bytes.
 *
 * @param maxBytes The most that the text may have in UTF-8.
 * @throws ScanwireError `INVALID_INPUT` that names the field and the rule it breaks; the field of a body that is too long is `body`.
 */
export function eventBody(kind: EventKind, body: unknown, maxBytes: number = Number.POSITIVE_INFINITY): string {
    const quick = quickChecks.get(kind)?.()(body) ?? UNSURE;
    const text = JSON.stringify(quick === UNSURE ? inOrder(checkedBy(kind.schema, body, `Body of ${kind.name}`), orderOf(kind)) : quick);
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes) {
        throw new ScanwireError('INVALID_INPUT', `Body of ${kind.name} must be at most ${maxBytes} bytes; it has ${bytes}`, {
            field: 'body',
        });
    }

    return text;
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
 * A kind of ours whose events come by the thousand: bodies are checked by its schema compiled, which is done when the first one comes.
 *
 * @param patterns Those of its schema.
 */
export function frequent(kind: EventKind, patterns: readonly RegExp[]): EventKind {
    let quick: QuickCheck | null = null;
    quickChecks.set(kind, () => (quick ??= compiled(describedBody(kind), patterns)));
    return kind;
}

/** What a body of the kind has. Describing a schema costs more than checking a body: it is done once for each kind. */
export function describedBody(kind: EventKind): SchemaDescription {
    const description = descriptions.get(kind) ?? describedSchema(kind, `Event kind ${kind.name}`);
    descriptions.set(kind, description);
    return description;
}

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
