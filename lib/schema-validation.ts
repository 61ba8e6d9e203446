import Joi from 'joi';
import { type Clock, systemClock } from './clock.ts';
import { ScanwireError, type ScanwireErrorCode } from './errors.ts';
import { namesRealDay } from './span.ts';

/** How a refusal is worded. */
export interface CheckedOptions {
    /** Goes before the field in the message, for example `token-auth options`. */
    readonly subject?: string;
    readonly code?: Extract<ScanwireErrorCode, 'INVALID_INPUT' | 'MISCONFIGURED'>;
}

/**
 * The value after `schema`, with its defaults filled in. Unlike Joi's own `attempt`, the error names path and rule but
 * never the value: what was refused may have been a secret.
 *
 * @throws ScanwireError `INVALID_INPUT` (or the given code) with the first offending field.
 */
export function checked<T>(schema: Joi.Schema<T>, value: unknown, options?: CheckedOptions): T {
    const result = schema.validate(value, VALIDATION);
    if (result.error === undefined) {
        return result.value;
    }

    throw schemaRefusal(result.error, options);
}

/** How values are validated, for whoever hands a schema to somebody else, for example to hapi. */
export const VALIDATION: Joi.ValidationOptions = { convert: true, errors: { wrap: { label: false } } };

/** What is used of a detail of an error, of any version of Joi. */
type SchemaComplaint = { readonly message: string; readonly path: readonly (string | number)[]; readonly context?: object | undefined };

/** What {@link checked} throws, made of an error of Joi. */
export function schemaRefusal(
    { details: [detail] }: { readonly details: readonly SchemaComplaint[] },
    { subject, code = 'INVALID_INPUT' }: CheckedOptions = {},
): ScanwireError {
    const field = fieldPath(detail?.path ?? []);
    const message = field === '' ? withoutValue(detail).replace(/^value /, '') : withoutValue(detail);
    return new ScanwireError(code, subject === undefined ? message : `${subject}: ${message}`, field === '' ? {} : { field });
}

/** `['actors', 'users', 0, 'name']` as `actors.users[0].name`. */
export function fieldPath(path: readonly (string | number)[]): string {
    return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('');
}

/** A field as the subject of a sentence. */
export function subjectOf(field: string): string {
    return `${field.charAt(0).toUpperCase()}${field.slice(1)}`;
}

/** Joi writes the value into the message of a few rules; for those only the rule is said. */
function withoutValue(detail: SchemaComplaint | undefined): string {
    if (detail === undefined) {
        return 'is invalid';
    }

    const context: { readonly regex?: unknown; readonly name?: unknown } = detail.context ?? {};
    // What is given to a pattern as its name is the rule.
    if (context.regex !== undefined && typeof context.name === 'string') {
        return `${fieldPath(detail.path) || 'value'} must be ${context.name}`;
    }

    const quotesValue = /with value/.test(detail.message) || 'invalids' in context;
    // Joi calls another field, which a limit is taken from, a `ref:`.
    return quotesValue ? `${fieldPath(detail.path) || 'value'} is invalid` : detail.message.replace(' ref:', ' ');
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Whether a text is a UUID in its usual form, with four hyphens. A store that keeps ids as UUIDs has nothing under any other text. */
export function isUuid(text: string): boolean {
    return UUID.test(text);
}

/** Whether a value is an object with keys: not null and no array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
    return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Joi schema of an object that somebody else implements: it has these functions, whatever else it is. The object passes
 * through as it is, never cloned, so that instances of classes keep working.
 */
export function objectWith<T extends object>(...methods: readonly (keyof T & string)[]): Joi.ObjectSchema<T> {
    return Joi.object<T>()
        .unknown()
        .custom((value: T, helpers) => {
            const missing = methods.find((method) => typeof value[method] !== 'function');
            return missing === undefined ? value : helpers.message({ custom: `{{#label}} must have the function ${missing}` });
        });
}

/** The same, of which these functions are there as well, or not at all, also as null: what may be missing is looked for, and called where there is something. */
export function withAbilities<T extends object>(
    schema: Joi.ObjectSchema<T>,
    ...abilities: readonly (keyof T & string)[]
): Joi.ObjectSchema<T> {
    return schema.custom((value: T, helpers) => {
        const wrong = abilities.find((ability) => (value[ability] ?? null) !== null && typeof value[ability] !== 'function');
        return wrong === undefined ? value : helpers.message({ custom: `{{#label}} must have a function ${wrong}, or none` });
    });
}

/**
 * An option in milliseconds, an hour at most.
 *
 * @param min What no application means to go below: less was meant in seconds, or in a longer unit.
 */
export const milliseconds = (byDefault: number, min = 1): Joi.NumberSchema => inMilliseconds(min).max(3_600_000).default(byDefault);

/** A hundred years, in milliseconds. What lasts for longer was meant as for ever, and some sums with it are no time that dates or databases have. */
const CENTURY = 100 * 365 * 86_400_000;

/** The same, but a hundred years at most, and without a default. */
export const inMilliseconds = (min: number): Joi.NumberSchema =>
    Joi.number()
        .integer()
        .min(min)
        .max(CENTURY)
        .messages({ 'number.min': '{{#label}} must be greater than or equal to {{#limit}}: it is in milliseconds' });

/** An option in bytes. @param min What no application means to go below: less was meant in a larger unit. */
export const inBytes = (min: number): Joi.NumberSchema =>
    count(min).messages({ 'number.min': '{{#label}} must be greater than or equal to {{#limit}}: it is in bytes' });

/** A whole number of things, of at least `min`. */
export const count = (min = 1): Joi.NumberSchema => Joi.number().integer().min(min);

/** An option that gives the time; by default the clock of the machine. */
export const clockSchema: Joi.FunctionSchema = Joi.function().default((): Clock => systemClock);

/** A name that somebody gives: at most 255 characters, neither control characters nor half a surrogate pair, which no database keeps. */
export const nameSchema: Joi.StringSchema = Joi.string()
    .max(255)
    .pattern(/^[^\p{Cc}\p{Cs}]*$/u)
    .message('{{#label}} must not contain control characters');

/** The pattern of {@link storableText}: PostgreSQL stores no NUL, and a lone surrogate has no UTF-8. */
export const STORABLE: RegExp = /^[^\0\p{Cs}]*$/u;

/** What is wrong with a text that is not {@link STORABLE}, as the end of a sentence. */
export const UNSTORABLE = 'must not contain NUL or half a surrogate pair';

/** A text that every database keeps as it is. */
export const storableText = (): Joi.StringSchema => Joi.string().pattern(STORABLE).message(`{{#label}} ${UNSTORABLE}`);

/** An escape of a JSON text, and as its group what PostgreSQL does not store in one: NUL, and half a surrogate pair. */
const ESCAPE = /\\(?:u(0000|d[89a-f][0-9a-f]{2})|.)/g;

/** Whether every database keeps a JSON text that `JSON.stringify` has written. Escape after escape, so that a long row of backslashes is looked at once. */
export function isStorable(json: string): boolean {
    for (const [, unstorable] of json.matchAll(ESCAPE)) {
        if (unstorable !== undefined) {
            return false;
        }
    }

    return true;
}

/** A path of a route, of plain segments: `/health`, without a slash at its end. */
export const ROUTE_PATH: RegExp = /^(?:\/[A-Za-z0-9._~-]+)+$/;

/** PostgreSQL has no time before 4713 BC, and a year with a sign is a slip of whoever wrote it. */
const [FIRST, LAST] = [new Date('0001-01-01T00:00:00Z'), new Date('9999-12-31T23:59:59.999Z')];

/** Whether every database keeps the instant: it is of the years 1 to 9999 in UTC. */
export function isStorableTime(date: Date): boolean {
    return date >= FIRST && date <= LAST;
}

/** Joi type of a time that a store is given: a `Date`, or an ISO 8601 text, of which {@link isStorableTime} holds. It comes out as a `Date`. */
export function storableTime(): Joi.DateSchema {
    return Joi.date()
        .iso()
        .min(FIRST)
        .max(LAST)
        .custom((date: Date, { original, message }) =>
            typeof original !== 'string' || namesRealDay(original)
                ? date
                : message({ custom: '{{#label}} must be on a day that its month has' }),
        );
}
