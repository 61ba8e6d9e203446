import { execFileSync } from 'node:child_process';

/*
 * The schema of one event class of OCSF as JSON Schema, made from a checkout of https://github.com/ocsf/ocsf-schema: names, types,
 * enumerations, what is required and the constraints, as its compiler resolves them without profiles.
 */

interface Attribute {
    readonly type?: string;
    readonly is_array?: boolean;
    readonly requirement?: string;
    readonly enum?: Readonly<Record<string, unknown>>;
    readonly profile?: string | null;
}

interface Definition {
    readonly extends?: string;
    readonly uid?: number;
    readonly attributes: Readonly<Record<string, Attribute>>;
    readonly constraints?: Readonly<Record<string, readonly string[]>>;
}

interface ScalarType {
    readonly type?: string;
    readonly regex?: string;
    readonly range?: readonly [number, number];
    readonly max_len?: number;
}

interface Dictionary {
    readonly attributes: Readonly<Record<string, Attribute>>;
    readonly types: { readonly attributes: Readonly<Record<string, ScalarType>> };
}

type JsonSchema = Readonly<Record<string, unknown>>;

const JSON_TYPES: Readonly<Record<string, string>> = {
    string_t: 'string',
    boolean_t: 'boolean',
    float_t: 'number',
    integer_t: 'integer',
    long_t: 'integer',
};

/**
 * @param checkout A git directory of ocsf-schema.
 * @param tag The version, for example `1.8.0`.
 * @param objects Objects that are described; any other one may have anything.
 */
export function detectionFindingSchema(checkout: string, tag: string, objects: readonly string[]): JsonSchema {
    const read = <T>(path: string): T =>
        JSON.parse(execFileSync('git', ['-C', checkout, 'show', `${tag}:${path}`], { encoding: 'utf8', maxBuffer: 1e8 })) as T;
    const dictionary = read<Dictionary>('dictionary.json');

    function resolved(path: (name: string) => string, name: string): Definition {
        const own = read<Definition>(path(name));
        const parent = own.extends === undefined ? undefined : resolved(path, own.extends);
        const attributes: Record<string, Attribute> = { ...parent?.attributes };
        for (const [key, attribute] of Object.entries(own.attributes).filter(([key]) => key !== '$include')) {
            const inherited = attributes[key];
            attributes[key] = { ...inherited, ...attribute, enum: { ...inherited?.enum, ...attribute.enum } };
        }

        const constraints = own.constraints ?? parent?.constraints;
        return { attributes, ...(own.uid !== undefined && { uid: own.uid }), ...(constraints && { constraints }) };
    }

    function scalar(name: string): JsonSchema {
        const { type, regex, range, max_len: maxLength } = dictionary.types.attributes[name] ?? {};
        const base = name === 'json_t' ? {} : { type: JSON_TYPES[name] ?? JSON_TYPES[type ?? ''] ?? 'integer' };
        return {
            ...base,
            ...(regex !== undefined && { pattern: regex }),
            ...(maxLength !== undefined && { maxLength }),
            ...(range !== undefined && { minimum: range[0], maximum: range[1] }),
        };
    }

    function property(key: string, own: Attribute): JsonSchema {
        const { type = own.type ?? '', is_array: isArray = false, enum: base } = dictionary.attributes[key] ?? {};
        const numbers = Object.keys({ ...base, ...own.enum }).map(Number);
        const one = type.endsWith('_t')
            ? { ...scalar(own.type ?? type), ...(numbers.length > 0 && numbers.every(Number.isInteger) && { enum: numbers }) }
            : objects.includes(type)
              ? { $ref: `#/$defs/${type}` }
              : { type: 'object' };
        return isArray ? { type: 'array', items: one } : one;
    }

    function objectSchema({ attributes, constraints }: Definition): JsonSchema {
        // what a profile brings must not be there while none is applied
        const open = Object.entries(attributes).filter(([, { profile }]) => profile === undefined || profile === null);
        const required = open.filter(([, { requirement }]) => requirement === 'required').map(([key]) => key);
        return {
            type: 'object',
            properties: Object.fromEntries(open.map(([key, attribute]) => [key, property(key, attribute)])),
            ...(required.length > 0 && { required }),
            ...(constraints?.at_least_one && { anyOf: constraints.at_least_one.map((key) => ({ required: [key] })) }),
            ...(constraints?.just_one && { oneOf: constraints.just_one.map((key) => ({ required: [key] })) }),
            additionalProperties: false,
        };
    }

    const eventPath = (name: string): string => (name === 'base_event' ? 'events/base_event.json' : `events/findings/${name}.json`);
    const finding = resolved(eventPath, 'detection_finding');
    const category = read<{ attributes: Record<string, { uid: number }> }>('categories.json').attributes.findings?.uid ?? 0;
    const classUid = category * 1000 + (finding.uid ?? 0);
    const activities = Object.keys(finding.attributes.activity_id?.enum ?? {}).map((id) => classUid * 100 + Number(id));
    const schema = objectSchema(finding) as { readonly properties: JsonSchema };
    return {
        $comment: `Derived from https://github.com/ocsf/ocsf-schema ${tag} (Apache-2.0) by test/interop/ocsf-schema.ts: no text of it, only its rules`,
        ...schema,
        properties: {
            ...schema.properties,
            category_uid: { const: category },
            class_uid: { const: classUid },
            type_uid: { enum: activities },
        },
        $defs: Object.fromEntries(objects.map((name) => [name, objectSchema(resolved((one) => `objects/${one}.json`, name))])),
    };
}
