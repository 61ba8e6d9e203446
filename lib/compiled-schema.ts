import type Joi from 'joi';
import type { SchemaDescription } from './application-schema.ts';

/** Stands for a value that has to be shown to the schema itself. */
export const UNSURE: unique symbol = Symbol('unsure');

/** The value with its keys in the order of the schema, where it is certain that the schema takes it as it is; else {@link UNSURE}. */
export type QuickCheck = (value: unknown) => unknown;

/** What of a description by Joi is used here. */
interface Described extends SchemaDescription {
    readonly flags?: Flags;
    readonly rules?: readonly Rule[];
    readonly invalid?: readonly unknown[];
    readonly preferences?: object;
}

type Flags = SchemaDescription['flags'] & {
    readonly presence?: string;
    /** Whether nothing is taken but what is allowed. */
    readonly only?: boolean;
    /** What stands for a field that is absent. */
    readonly empty?: Described;
    /** `strip` for a field that is left out. */
    readonly result?: string;
};

interface Rule {
    readonly name: string;
    readonly args?: { readonly regex?: string; readonly options?: object; readonly limit?: unknown };
}

/** What a description may say if it is to be understood; of everything else the schema itself has to be asked. */
const UNDERSTOOD = new Set(['type', 'flags', 'allow', 'invalid', 'rules', 'keys', 'items', 'examples']);
const UNDERSTOOD_FLAGS = new Set(['presence', 'only', 'default', 'empty', 'result', 'label', 'format', 'description', 'unknown']);

/** Types whose rules are understood, or of which nothing is ever certain. */
const WITH_RULES = new Set(['array', 'string', 'number', 'date']);

/**
 * A schema of ours, compiled: it says yes a hundred times as quickly as Joi, and never no. What is not certain (a value that would be converted, any
 * fault) is {@link UNSURE}, so that Joi's is the only answer that anybody reads. Not for schemas of the application's: an extension of its Joi may give
 * the names of types and rules other meanings.
 *
 * @param patterns Those that the schema has: a description holds their texts alone.
 * @throws Error for a schema of which this knows too little.
 */
export function compiled(description: SchemaDescription, patterns: readonly RegExp[] = []): QuickCheck {
    const { type = '', flags = {}, allow = [], invalid = [] } = description as Described;
    const make = TYPES[type];
    const strange = strangeIn(description as Described);
    if (make === undefined || strange !== undefined) {
        throw new Error(`Cannot compile a schema of type ${type} with ${strange}`);
    }

    const check = flags.only === true ? () => UNSURE : make(description as Described, patterns);
    const absent = flags.empty?.allow ?? [];
    if (absent.length + allow.length + invalid.length === 0) {
        return check;
    }
    return (value) => {
        if (absent.includes(value)) {
            return undefined;
        }
        return allow.includes(value) ? value : invalid.includes(value) ? UNSURE : check(value);
    };
}

/**
 * The schema, which asks its {@link compiled} form first: that is made when the first value comes. What it is not certain of, and all where it knows too
 * little, Joi is asked. It is the same schema to whoever reads it.
 *
 * @param patterns As of {@link compiled}.
 */
export function quickly<T>(schema: Joi.ObjectSchema<T>, patterns: readonly RegExp[]): Joi.ObjectSchema<T> {
    let known: QuickCheck | null = null;
    const check = (value: unknown): unknown => {
        known ??= compiledIfKnown(schema, patterns);
        return known(value);
    };
    const validate = (value: unknown, options?: Joi.ValidationOptions): object => {
        const sure = check(value);
        return sure === UNSURE ? schema.validate(value, options) : { value: sure };
    };
    const validateAsync = async (value: unknown, options?: Joi.AsyncValidationOptions): Promise<unknown> => {
        const sure = check(value);
        return sure === UNSURE ? await schema.validateAsync(value, options) : sure;
    };
    return Object.create(schema, { validate: { value: validate }, validateAsync: { value: validateAsync } });
}

function compiledIfKnown(schema: Joi.Schema, patterns: readonly RegExp[]): QuickCheck {
    try {
        return compiled(schema.describe(), patterns);
    } catch {
        return () => UNSURE;
    }
}

/** What of a description is not understood. */
function strangeIn({ flags = {}, preferences = {}, ...description }: Described): string | undefined {
    const { default: byDefault, empty, unknown } = flags;
    const { type = '', rules = [], invalid = [], keys } = description;
    return [
        ...(WITH_RULES.has(type) ? [] : rules.map(({ name }) => `the rule ${name}`)),
        ...(invalid.some((value) => typeof value === 'object' && value !== null) ? ['values that are not allowed by reference'] : []),
        ...(unknown === true && keys !== undefined ? ['unknown fields beside its own'] : []),
        ...Object.keys(description).filter((key) => !UNDERSTOOD.has(key)),
        ...Object.keys(flags).filter((flag) => !UNDERSTOOD_FLAGS.has(flag)),
        ...Object.keys(preferences).filter((preference) => preference !== 'messages'),
        ...(byDefault !== null && ['object', 'function'].includes(typeof byDefault) ? ['a default that is made'] : []),
        ...(empty !== undefined && (empty.type !== 'any' || empty.flags?.only !== true) ? ['more than values that are empty'] : []),
    ][0];
}

const { propertyIsEnumerable: isEnumerable } = Object.prototype;

/** Also one without any prototype, as hapi has the parameters of a request. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
    const prototype: unknown = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined;
    return prototype === Object.prototype || prototype === null;
}

const TYPES: Readonly<Record<string, (description: Described, patterns: readonly RegExp[]) => QuickCheck>> = {
    object: objectCheck,
    array: arrayCheck,
    string: textCheck,
    number: numberCheck,
    boolean: () => (value) => (typeof value === 'boolean' ? value : UNSURE),
    any: () => (value) => value ?? UNSURE,
    date: () => () => UNSURE,
    timestamp: () => (value) => (typeof value === 'string' && isTimestamp(value) ? value : UNSURE),
};

function objectCheck({ keys }: Described, patterns: readonly RegExp[]): QuickCheck {
    if (keys === undefined) {
        return (value) => (isPlain(value) ? value : UNSURE);
    }

    const fields = Object.entries(keys).map(([name, description]) => {
        const { presence, result, default: byDefault }: Flags = description.flags ?? {};
        return { name, check: compiled(description, patterns), required: presence === 'required', stripped: result === 'strip', byDefault };
    });
    return (value) => {
        if (!isPlain(value)) {
            return UNSURE;
        }

        const ordered: Record<string, unknown> = {};
        let found = 0;
        for (const { name, check, required, stripped, byDefault } of fields) {
            const given = isEnumerable.call(value, name);
            found += Number(given);
            const checked = given && !stripped ? check(value[name]) : undefined;
            if (checked === UNSURE || (checked === undefined && required)) {
                return UNSURE;
            }

            const kept = checked === undefined ? byDefault : checked;
            if (kept !== undefined) {
                ordered[name] = kept;
            }
        }
        return found === Object.keys(value).length ? ordered : UNSURE;
    };
}

function arrayCheck({ items = [], rules = [] }: Described, patterns: readonly RegExp[]): QuickCheck {
    const [description, ...others] = items;
    if (others.length > 0) {
        throw new Error('Cannot compile a schema of arrays whose items are not of one kind');
    }

    const check: QuickCheck = description === undefined ? (value) => value : compiled(description, patterns);
    const { max } = limitsOf('arrays', rules, ['max']);
    return (value) => {
        if (!Array.isArray(value) || value.length > max) {
            return UNSURE;
        }

        const checked: unknown[] = [];
        for (const item of value) {
            const one = check(item);
            if (one === UNSURE || one === undefined) {
                return UNSURE;
            }
            checked.push(one);
        }
        return checked;
    };
}

/** Whole numbers alone, and not -0, which Joi makes 0. */
function numberCheck({ rules = [] }: Described): QuickCheck {
    const { min, max } = limitsOf('numbers', rules, ['integer', 'min', 'max']);
    return (value) => (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max ? value : UNSURE);
}

/** @param known Rules that there may be. */
function limitsOf(what: string, rules: readonly Rule[], known: readonly string[]): { readonly min: number; readonly max: number } {
    let [min, max] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const { name, args: { limit = 0 } = {} } of rules) {
        if (!known.includes(name) || typeof limit !== 'number') {
            throw new Error(`Cannot compile a schema of ${what} with the rule ${name}`);
        }
        min = name === 'min' ? Math.max(min, limit) : min;
        max = name === 'max' ? Math.min(max, limit) : max;
    }
    return { min, max };
}

/** As most write it; Joi takes other forms too. */
const GUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function textCheck({ rules = [] }: Described, patterns: readonly RegExp[]): QuickCheck {
    const [limits, others] = [rules.filter(({ name }) => name === 'max'), rules.filter(({ name }) => name !== 'max')];
    const { max } = limitsOf('texts', limits, ['max']);
    const all = others.map((rule) => patternOf(rule, patterns));
    return (value) => {
        const known = typeof value === 'string' && value !== '' && value.length <= max && all.every((pattern) => pattern.test(value));
        return known ? value : UNSURE;
    };
}

function patternOf({ name, args: { regex, options = {} } = {} }: Rule, patterns: readonly RegExp[]): RegExp {
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
