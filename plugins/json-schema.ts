/** Schemas of Joi, and of the application, as JSON Schema, with an example that fulfils it. */
import type { ApplicationSchema, JoiSchema, SchemaDescription } from '../lib/application-schema.ts';
import type { JsonSchema } from '../lib/records/record-schema.ts';
import { isObject } from '../lib/schema-validation.ts';

/** What Joi tells of a schema beyond what {@link SchemaDescription} says. */
interface Told extends SchemaDescription {
    readonly examples?: readonly unknown[];
    readonly keys?: Readonly<Record<string, Told>>;
    readonly items?: readonly Told[];
}

/** Of a Standard Schema that tells its JSON Schema, as Joi from 18 on does. */
interface Telling {
    readonly '~standard'?: { readonly jsonSchema?: Readonly<Record<'input' | 'output', (options: { target: string }) => JsonSchema>> };
}

const DRAFT = { target: 'draft-2020-12' };

/**
 * The JSON Schema of what goes out, or comes in. What the schema itself does not tell stays open.
 *
 * @param side `input` where fields with a default need not be there.
 */
export function jsonSchemaOf({ schema, jsonSchema, fields = [] }: ApplicationSchema, side: 'input' | 'output' = 'output'): JsonSchema {
    if (jsonSchema !== undefined) {
        return jsonSchema;
    }

    const told = (schema as Telling)['~standard']?.jsonSchema?.[side](DRAFT);
    const description = 'describe' in schema ? ((schema as JoiSchema).describe() as Told) : null;
    if (told !== undefined) {
        return description === null ? told : overlaid(told, description);
    }

    const names = description === null ? fields : Object.keys(description.keys ?? {});
    return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) };
}

/** Types of our own, which Joi has no words for. */
const OWN_TYPES: Readonly<Record<string, JsonSchema>> = { timestamp: { type: 'string', format: 'date-time' } };

/** What Joi leaves out: examples, and what types of our own are. */
function overlaid(schema: JsonSchema, { type = '', examples, keys = {}, items = [] }: Told): JsonSchema {
    const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
    const [item] = items;
    return {
        ...schema,
        ...(examples !== undefined && { examples }),
        ...OWN_TYPES[type],
        ...(properties.length > 0 && {
            properties: Object.fromEntries(properties.map(([name, each]) => [name, overlaid(each, keys[name] ?? {})])),
        }),
        ...(isObject(schema.items) && item !== undefined && { items: overlaid(schema.items as JsonSchema, item) }),
    };
}

/** What stands for a text, by the name of its field. */
const TEXTS: Readonly<Record<string, string>> = {
    name: 'web-1',
    address: '192.0.2.7',
    mac: '00:50:56:aa:bb:cc',
    os_name: 'Linux',
    os_flavor: 'Debian',
    os_sp: '12',
    purpose: 'server',
    title: 'Suspicious authentication',
    link: 'https://example.com/1',
    emails: 'ada@example.com',
    hostname: 'web-1',
    shortname: 'web-1',
    fqdn: 'web-1.example.com',
};

const FORMATS: Readonly<Record<string, string>> = {
    'date-time': '2026-11-21T09:30:00+00:00',
    uuid: '7d2f1a52-5d3c-4c5e-9a1b-2f6e8c1d0a34',
};

/** A value that fulfils a schema: its own example, or else one that follows from its type. */
export function exampleOf(schema: JsonSchema, name = ''): unknown {
    const { examples, enum: values, type, anyOf, format, default: byDefault } = schema;
    const [given] = [...list(examples), ...(byDefault === undefined ? [] : [byDefault]), ...list(values)];
    if (given !== undefined) {
        return given;
    }

    const types = list(type);
    const [variant] = list(anyOf);
    if (types.includes('null') || (type === undefined && variant === undefined)) {
        return null;
    }
    if (isObject(variant)) {
        return exampleOf(variant as JsonSchema, name);
    }
    return types[0] === 'string' ? (FORMATS[String(format)] ?? TEXTS[name] ?? 'text') : ofType(schema, String(types[0]));
}

/** The schema with an example of its own. */
export function withExample(schema: JsonSchema): JsonSchema {
    return { ...schema, examples: [exampleOf(schema)] };
}

function list(value: unknown): readonly unknown[] {
    return value === undefined ? [] : [value].flat();
}

function ofType({ properties = {}, items = {}, minimum = 1, prefixItems }: JsonSchema, type: string): unknown {
    const fields = (): [string, unknown][] =>
        Object.entries(properties as Record<string, JsonSchema>).map(([key, each]) => [key, exampleOf(each, key)]);
    const values: Readonly<Record<string, () => unknown>> = {
        object: () => Object.fromEntries(fields()),
        array: () =>
            prefixItems === undefined ? [exampleOf(items as JsonSchema)] : list(prefixItems).map((each) => exampleOf(each as JsonSchema)),
        boolean: () => false,
    };
    return values[type]?.() ?? Math.max(Number(minimum), type === 'integer' || type === 'number' ? 1 : 0);
}
