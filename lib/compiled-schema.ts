import type { SchemaDescription } from './application-schema.ts';

/** Stands for a value that has to be shown to the schema itself. */
export const UNSURE: unique symbol = Symbol('unsure');

/** The value with its keys in the order of the schema, where it is certain that the schema takes it as it is; else {@link UNSURE}. */
export type QuickCheck = (value: unknown) => unknown;

/** What of a description by Joi is used here. */
interface Described extends SchemaDescription {
    readonly flags?: SchemaDescription['flags'] & { readonly presence?: string };
    readonly rules?: readonly { readonly name: string; readonly args?: { readonly regex?: string; readonly options?: object } }[];
}

/** What a description may say if it is to be understood; of everything else the schema itself has to be asked. */
const UNDERSTOOD = new Set(['type', 'flags', 'allow', 'rules', 'keys', 'items', 'examples']);

/**
 * A schema of ours, compiled: it says yes a hundred times as quickly as Joi, and never no. What is not certain (a value that would be converted, any
 * fault) is {@link UNSURE}, so that Joi's is the only answer that anybody reads. Not for schemas of the application's: an extension of its Joi may give
 * the names of types and rules other meanings.
 *
 * @param patterns Those that the schema has: a description holds their texts alone.
 * @throws Error for a schema of which this knows too little.
 */
export function compiled(description: SchemaDescription, patterns: readonly RegExp[] = []): QuickCheck {
    const { type, flags = {}, rules = [], ...rest } = description as Described;
    const strange = [...Object.keys(description), ...Object.keys(flags)].find((key) => !UNDERSTOOD.has(key) && key !== 'presence');
    const make = strange === undefined ? TYPES[type ?? ''] : undefined;
    if (make === undefined) {
        throw new Error(`Cannot compile a schema of type ${type} with ${strange}`);
    }
    return make({ ...rest, rules }, patterns);
}

const { propertyIsEnumerable: isEnumerable } = Object.prototype;

const TYPES: Readonly<Record<string, (description: Described, patterns: readonly RegExp[]) => QuickCheck>> = {
    object: objectCheck,
    array: arrayCheck,
    string: textCheck,
    timestamp: () => (value) => (typeof value === 'string' && isTimestamp(value) ? value : UNSURE),
};

function objectCheck({ keys = {} }: Described, patterns: readonly RegExp[]): QuickCheck {
    const fields = Object.entries(keys).map(([name, description]) => {
        return { name, check: compiled(description, patterns), required: (description as Described).flags?.presence === 'required' };
    });
    return (value) => {
        if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) {
            return UNSURE;
        }

        const ordered: Record<string, unknown> = {};
        let found = 0;
        for (const { name, check, required } of fields) {
            if (isEnumerable.call(value, name)) {
                const checked = check((value as Record<string, unknown>)[name]);
                if (checked === UNSURE) {
                    return UNSURE;
                }
                ordered[name] = checked;
                found += 1;
            } else if (required) {
                return UNSURE;
            }
        }
        return found === Object.keys(value).length ? ordered : UNSURE;
    };
}

function arrayCheck({ items = [] }: Described, patterns: readonly RegExp[]): QuickCheck {
    const [description, ...others] = items;
    if (description === undefined || others.length > 0) {
        throw new Error('Cannot compile a schema of arrays whose items are not of one kind');
    }

    const check = compiled(description, patterns);
    return (value) => {
        const checked = Array.isArray(value) ? Array.from(value, check) : UNSURE;
        return checked === UNSURE || checked.includes(UNSURE) ? UNSURE : checked;
    };
}

/** As most write it; Joi takes other forms too. */
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function textCheck({ allow = [], rules = [] }: Described, patterns: readonly RegExp[]): QuickCheck {
    const all = rules.map((rule) => patternOf(rule, patterns));
    return (value) => {
        const known = typeof value === 'string' && (value === '' ? allow.includes('') : all.every((pattern) => pattern.test(value)));
        return known ? value : UNSURE;
    };
}

function patternOf(
    { name, args: { regex, options = {} } = {} }: NonNullable<Described['rules']>[number],
    patterns: readonly RegExp[],
): RegExp {
    const pattern = name === 'guid' ? GUID : name === 'pattern' && !('invert' in options) && patterns.find((one) => String(one) === regex);
    if (!pattern) {
        throw new Error(`Cannot compile a schema of texts with the rule ${name}`);
    }
    return pattern;
}

const TIMESTAMP_LENGTH = 'YYYY-MM-DDTHH:MM:SS.sssZ'.length;

/** Whether it is a time as events carry it. */
function isTimestamp(text: string): boolean {
    const time = text.length === TIMESTAMP_LENGTH ? Date.parse(text) : Number.NaN;
    return !Number.isNaN(time) && new Date(time).toISOString() === text;
}
