import type Joi from 'joi';
import { checked } from '../checked.ts';
import type { EventKind } from './event-kinds.ts';

/**
 * The exact text that is stored, signed and sent for an event: checked against its kind, compact, keys in the order of the
 * kind's schema. Made once; every try sends these bytes.
 *
 * @throws ScanwireError `INVALID_INPUT` that names the field and the rule it breaks.
 */
export function eventBody(kind: EventKind, body: unknown): string {
    const { schema, order } = formOf(kind);
    return JSON.stringify(inOrder(checked(schema, body, { subject: `Body of ${kind.name}` }), order));
}

/** Keys in order, each with the order of what is below it. An order without keys leaves its value as it is. */
interface KeyOrder {
    readonly keys?: ReadonlyMap<string, KeyOrder>;
    readonly items?: KeyOrder;
}

interface BodyForm {
    readonly schema: Joi.ObjectSchema;
    readonly order: KeyOrder;
}

const forms = new WeakMap<EventKind, BodyForm>();

/** Describing a schema costs more than checking a body: it is done once for each kind. */
function formOf(kind: EventKind): BodyForm {
    const known = forms.get(kind);
    if (known !== undefined) {
        return known;
    }

    const form = { schema: kind.schema.required(), order: keyOrder(kind.schema.describe()) };
    forms.set(kind, form);
    return form;
}

function keyOrder(description: Joi.Description): KeyOrder {
    if (description.keys !== undefined) {
        const entries = Object.entries<Joi.Description>(description.keys);
        return { keys: new Map(entries.map(([key, below]) => [key, keyOrder(below)])) };
    }

    const [items] = (description.items as Joi.Description[] | undefined) ?? [];
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
