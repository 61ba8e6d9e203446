import type Joi from 'joi';
import { isBase64 } from './base64.ts';
import { type HttpsRecord, recordSchema } from './record.ts';

type Test = (value: unknown) => boolean;

/**
 * Whether a value is a record of the strict profile: {@link recordSchema} compiled into tests that say only yes or no, for
 * files of millions of lines. It says yes to nothing that Joi refuses, and to every record that `JSON.parse` makes and Joi accepts.
 */
export const keepsSchema: (value: unknown) => value is HttpsRecord = compiled(recordSchema.describe()) as (
    value: unknown,
) => value is HttpsRecord;

/** @throws Error for a rule that has no test here: a new rule of the schema must not be passed over. */
function compiled(schema: Joi.Description): Test {
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
