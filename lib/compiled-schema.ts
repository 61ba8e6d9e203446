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
 * @throws Error for a schema of which this knows too little.
 */
export function compiled(description: SchemaDescription): QuickCheck {
    const { type, flags = {}, rules = [], ...rest } = description as Described;
    const strange = [...Object.keys(description), ...Object.keys(flags)].find((key) => !UNDERSTOOD.has(key) && key !== 'presence');
    const make = strange === undefined ? TYPES[type ?? ''] : undefined;
    if (make === undefined) {
        throw new Error(`Cannot compile a schema of type ${type} with ${strange}`);
    }
    return make({ ...rest, rules });
}

const { propertyIsEnumerable: isEnumerable } = Object.prototype;

const TYPES: Readonly<Record<string, (description: Described) => QuickCheck>> = {
    object: objectCheck,
    array: ({ items = [] }) => arrayCheck(items),
    string: textCheck,
    timestamp: () => (value) => (typeof value === 'string' && isTimestamp(value) ? value : UNSURE),
};

function objectCheck({ keys = {} }: Described): QuickCheck {
    const fields = Object.entries(keys).map(([name, description]) => {
        return { name, check: compiled(description), required: (description as Described).flags?.presence === 'required' };
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

function arrayCheck(items: readonly SchemaDescription[]): QuickCheck {
    const [description, ...others] = items;
    if (description === undefined || others.length > 0) {
        throw new Error('Cannot compile a schema of arrays whose items are not of one kind');
    }

    const check = compiled(description);
    return (value) => {
        const checked = Array.isArray(value) ? Array.from(value, check) : UNSURE;
        return checked === UNSURE || checked.includes(UNSURE) ? UNSURE : checked;
    };
}

/** As most write it; Joi takes other forms too. */
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function textCheck({ allow = [], rules = [] }: Described): QuickCheck {
    const patterns = rules.map(patternOf);
    return (value) => {
        const known = typeof value === 'string' && (value === '' ? allow.includes('') : patterns.every((pattern) => pattern.test(value)));
        return known ? value : UNSURE;
    };
}

function patternOf({ name, args: { regex = '', options = {} } = {} }: NonNullable<Described['rules']>[number]): RegExp {
    if (name === 'guid') {
        return GUID;
    }
    if (name !== 'pattern' || 'invert' in options) {
        throw new Error(`Cannot compile a schema of texts with the rule ${name}`);
    }
    const end = regex.lastIndexOf('/');
    return new RegExp(regex.slice(1, end), regex.slice(end + 1));
}

const TIMESTAMP_LENGTH = 'YYYY-MM-DDTHH:MM:SS.sssZ'.length;

/** Whether it is a time as events carry it. */
function isTimestamp(text: string): boolean {
    const time = text.length === TIMESTAMP_LENGTH ? Date.parse(text) : Number.NaN;
    return !Number.isNaN(time) && new Date(time).toISOString() === text;
}
