import type { ValidationErrorItem } from 'joi';
import { fieldPath } from '../checked.ts';
import { type HttpsRecord, recordSchema } from './record.ts';

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

const FIELD_LENGTH = 64;
const MOST_PROBLEMS = 20;
/** Far more than a record has. */
const MOST_KEYS = 64;

/** The value against the strict profile, with all that is wrong with it (the first 20 problems). */
export function checkRecord(value: unknown): CheckedRecord {
    const { error, value: record } = recordSchema.validate(withoutExcess(value), { abortEarly: false, errors: { label: false } });
    const problems = [...(error?.details ?? []).map(problem), ...hiddenKeys(value)];
    return problems.length === 0 ? { ok: true, record } : refusedRecord(problems);
}

/** Unknown keys come from outside, in any number and of any length; enough of them is said. */
export function refusedRecord(problems: readonly RecordProblem[]): CheckedRecord & { readonly ok: false } {
    const said = problems.slice(0, MOST_PROBLEMS).map(({ field, reason }) => ({ field: shortened(field), reason }));
    return { ok: false, problems: said };
}

/** Joi takes seconds to complain of a hundred thousand unknown keys; those beyond what is said anyway are kept from it. */
function withoutExcess(value: unknown): unknown {
    const few = fewKeys(value, RECORD_KEYS);
    return isObject(few) && isObject(few.subject) ? { ...few, subject: fewKeys(few.subject, SUBJECT_KEYS) } : few;
}

const RECORD_KEYS: readonly string[] = Object.keys(recordSchema.describe().keys);
const SUBJECT_KEYS: readonly string[] = Object.keys(recordSchema.extract('subject').describe().keys);

/** The object itself while it has no more keys than any record could need, else one with the known keys and some others. */
function fewKeys(value: unknown, known: readonly string[]): unknown {
    if (!isObject(value) || Array.isArray(value) || Object.keys(value).length <= MOST_KEYS) {
        return value;
    }

    const unknown = Object.keys(value).filter((key) => !known.includes(key));
    const kept = [...known.filter((key) => Object.hasOwn(value, key)), ...unknown.slice(0, MOST_PROBLEMS)];
    return Object.fromEntries(kept.map((key) => [key, value[key]]));
}

function problem({ path, message, type }: ValidationErrorItem): RecordProblem {
    return { field: fieldPath(path), reason: type === 'object.base' ? 'must be an object' : message.trim() };
}

/** Joi does not see an own key `__proto__`, which `JSON.parse` makes. */
function hiddenKeys(value: unknown): RecordProblem[] {
    const fields = [
        { parent: value, field: '__proto__' },
        { parent: isObject(value) ? value.subject : null, field: 'subject.__proto__' },
    ];
    return fields
        .filter(({ parent }) => isObject(parent) && Object.hasOwn(parent, '__proto__'))
        .map(({ field }) => ({ field, reason: 'is not allowed' }));
}

function isObject(value: unknown): value is Record<string, unknown> {
    return typeof value === 'object' && value !== null;
}

function shortened(field: string): string {
    return field.length > FIELD_LENGTH ? `${field.slice(0, FIELD_LENGTH)}…` : field;
}
