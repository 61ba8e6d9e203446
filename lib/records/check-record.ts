import type Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { fieldPath, isObject } from '../schema-validation.ts';
import { isBase64 } from './base64.ts';
import type { HttpsRecord } from './record.ts';
import { recordSchema } from './record-schema.ts';

/** What is wrong with one field. */
export interface RecordProblem {
    /** Path of the field, for example `subject.CN`; `''` for the record as a whole. */
    readonly field: string;
    /** Completes a sentence that begins with the field, for example `must be a number`. Never holds the value. */
    readonly reason: string;
}

/** A value that was checked: the record that it is, or what is wrong with it. */
export type CheckedRecord =
    | { readonly ok: true; readonly record: HttpsRecord }
    | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/** In characters: more of a field is not shown. */
export const MAX_FIELD_LENGTH = 64;
/** So many are told of one record. */
export const MAX_PROBLEMS = 20;
/** Far more than a record has. */
const MAX_KEYS = 64;

/** The value against the strict profile, with all that is wrong with it (the first 20 problems). */
export function checkRecord(value: unknown): CheckedRecord {
    const { error, value: record } = recordSchema.validate(withoutExcess(value), { abortEarly: false, errors: { label: false } });
    const problems = [...(error?.details ?? []).map(problem), ...hiddenKeys(value)];
    return problems.length === 0 ? { ok: true, record } : refusedRecord(problems);
}

/**
 * Refuses a value that is no record of the strict profile.
 *
 * @param number Of the record among others, from 1: for the message.
 * @throws ScanwireError `INVALID_INPUT` with the number, the field and the reason.
 */
export function assertRecord(value: unknown, number: number): asserts value is HttpsRecord {
    const checked = isRecord(value) ? null : checkRecord(value);
    if (checked?.ok === false) {
        const { field, reason } = checked.problems[0] ?? { field: '', reason: 'is not valid' };
        throw new ScanwireError('INVALID_INPUT', `Record ${number}: ${`${field} ${reason}`.trim()}`, { field });
    }
}

/** The problems of a value, the first 20: unknown keys come from outside, in any number and of any length. */
export function refusedRecord(problems: readonly RecordProblem[]): CheckedRecord & { readonly ok: false } {
    return { ok: false, problems: problems.slice(0, MAX_PROBLEMS).map(({ field, reason }) => ({ field: shortened(field), reason })) };
}

/** Joi takes seconds to complain of a hundred thousand unknown keys; those beyond what is reported anyway are kept from it. */
function withoutExcess(value: unknown): unknown {
    const few = fewKeys(value, RECORD_KEYS);
    return isObject(few) && isObject(few.subject) ? { ...few, subject: fewKeys(few.subject, SUBJECT_KEYS) } : few;
}

const RECORD_KEYS: readonly string[] = Object.keys(recordSchema.describe().keys);
const SUBJECT_KEYS: readonly string[] = Object.keys(recordSchema.extract('subject').describe().keys);

/** The object itself while it has no more keys than any record could need and none that is hidden, else one with the known keys and some others. */
function fewKeys(value: unknown, known: readonly string[]): unknown {
    if (!isObject(value) || (Object.keys(value).length <= MAX_KEYS && !Object.hasOwn(value, '__proto__'))) {
        return value;
    }

    const unknown = Object.keys(value).filter((key) => !known.includes(key) && key !== '__proto__');
    const kept = [...known.filter((key) => Object.hasOwn(value, key)), ...unknown.slice(0, MAX_PROBLEMS)];
    return Object.fromEntries(kept.map((key) => [key, value[key]]));
}

function problem({ path, message, type }: Joi.ValidationErrorItem): RecordProblem {
    return { field: fieldPath(path), reason: type === 'object.base' ? 'must be an object' : message.trim() };
}

/** Joi tells of an own key `__proto__` only where nothing else is wrong, and takes fields from it: it is kept from Joi, and told here. */
function hiddenKeys(value: unknown): RecordProblem[] {
    const fields = [
        { parent: value, field: '__proto__' },
        { parent: isObject(value) ? value.subject : null, field: 'subject.__proto__' },
    ];
    return fields
        .filter(({ parent }) => isObject(parent) && Object.hasOwn(parent, '__proto__'))
        .map(({ field }) => ({ field, reason: 'is not allowed' }));
}

function shortened(field: string): string {
    return field.length > MAX_FIELD_LENGTH ? `${field.slice(0, MAX_FIELD_LENGTH)}…` : field;
}

type Test = (value: unknown) => boolean;

/**
 * Whether a value is a record of the strict profile: {@link recordSchema} compiled into tests that say only yes or no, for
 * files of millions of lines. It says yes to nothing that Joi refuses, and to every record that `JSON.parse` makes and Joi accepts.
 * By hand, since Ajv on the JSON Schema would be a dependency more at run time, for this one schema.
 */
export const isRecord: (value: unknown) => value is HttpsRecord = compiled(recordSchema.describe()) as (
    value: unknown,
) => value is HttpsRecord;

/** The test of a schema, as Joi describes it. @throws Error for a rule that has no test here: a new one must not be passed over. */
export function compiled(schema: Joi.Description): Test {
    switch (schema.type) {
        case 'object':
            return objectTest(schema);
        case 'string':
            return stringTest(schema);
        case 'number':
            return numberTest(schema);
        default:
            throw unknown(schema.type);
    }
}

function objectTest({ keys }: Joi.Description): Test {
    const fields = new Map(
        Object.entries(keys as Record<string, Joi.Description>).map(([name, field]) => [
            name,
            { test: compiled(field), required: isRequired(field) ? 1 : 0 },
        ]),
    );
    const required = Array.from(fields.values()).reduce((sum, field) => sum + field.required, 0);

    return (value) => {
        if (typeof value !== 'object' || value === null || !isPlain(value)) {
            return false;
        }

        const object = value as Readonly<Record<string, unknown>>;
        let found = 0;
        for (const name in object) {
            const field = fields.get(name);
            if (field === undefined || !field.test(object[name])) {
                return false;
            }

            found += field.required;
        }

        return found === required;
    };
}

/** Nothing inherited but what every object has. */
function isPlain(value: object): boolean {
    const prototype: unknown = Object.getPrototypeOf(value);
    return prototype === Object.prototype || prototype === null;
}

function stringTest({ rules = [], allow = [] }: Joi.Description & { readonly rules?: readonly Rule[] }): Test {
    const tests = rules.map(({ name, args }) => {
        switch (name) {
            case 'pattern':
                return patternTest(args?.regex as string);
            case 'custom':
                return isBase64;
            default:
                throw unknown(name);
        }
    });
    const emptyAllowed = allow.includes('');
    const test = every(tests);

    return (value) => typeof value === 'string' && (value === '' ? emptyAllowed : test(value));
}

function numberTest({ rules = [] }: Joi.Description & { readonly rules?: readonly Rule[] }): Test {
    const tests = rules.map(({ name, args }): ((value: number) => boolean) => {
        const limit = args?.limit as number;
        switch (name) {
            case 'integer':
                return Number.isSafeInteger;
            case 'min':
                return (value) => value >= limit;
            case 'max':
                return (value) => value <= limit;
            default:
                throw unknown(name);
        }
    });

    const test = every(tests);

    return (value) => typeof value === 'number' && test(value);
}

function every<T>(tests: readonly ((value: T) => boolean)[]): (value: T) => boolean {
    return tests.reduce(
        (before, test) => (value) => before(value) && test(value),
        () => true,
    );
}

interface Rule {
    readonly name: string;
    readonly args?: Readonly<Record<string, unknown>>;
}

/** Joi describes a pattern as it is written, `/…/flags`. */
function patternTest(written: string): (text: string) => boolean {
    const end = written.lastIndexOf('/');
    const pattern = new RegExp(written.slice(1, end), written.slice(end + 1));
    return (text) => pattern.test(text);
}

function isRequired({ flags }: Joi.Description): boolean {
    return (flags as { presence?: string } | undefined)?.presence === 'required';
}

function unknown(what: string | undefined): Error {
    return new Error(`The record schema has a rule that is not compiled: ${what}`);
}
