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

export type CheckedRecord =
    | { readonly ok: true; readonly record: HttpsRecord }
    | { readonly ok: false; readonly problems: readonly RecordProblem[] };

const FIELD_LENGTH = 64;
const MOST_PROBLEMS = 20;

/** The value against the strict profile, with all that is wrong with it (the first 20 problems). */
export function checkRecord(value: unknown): CheckedRecord {
    const { error, value: record } = recordSchema.validate(value, { abortEarly: false, errors: { label: false } });
    const problems = [...(error?.details ?? []).map(problem), ...hiddenKeys(value)];
    return problems.length === 0 ? { ok: true, record } : refusedRecord(problems);
}

/** Unknown keys come from outside, in any number and of any length; enough of them is said. */
export function refusedRecord(problems: readonly RecordProblem[]): CheckedRecord & { readonly ok: false } {
    const said = problems.slice(0, MOST_PROBLEMS).map(({ field, reason }) => ({ field: shortened(field), reason }));
    return { ok: false, problems: said };
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
