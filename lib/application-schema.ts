import Joi from 'joi';
import { ScanwireError } from './errors.ts';
import type { OnWarning } from './process-warning.ts';
import type { JsonSchema } from './records/record-schema.ts';
import { fieldPath, isObject, schemaRefusal, VALIDATION } from './schema-validation.ts';

/**
 * What is used of a Joi schema of an object, of any Joi from 17 on. A schema of the application is asked and never made part of one
 * of ours: two versions of Joi refuse to be mixed.
 */
export interface JoiSchema {
    describe(): SchemaDescription;
    required(): JoiSchema;
    validate(value: unknown, options?: Joi.ValidationOptions): JoiResult;
}

interface JoiResult {
    readonly value?: unknown;
    readonly error?: { readonly details: readonly { readonly message: string; readonly path: readonly (string | number)[] }[] } | undefined;
}

/** What is used of a [Standard Schema](https://standardschema.dev), which Zod, Valibot, ArkType and others make. */
export interface StandardSchema {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        /** Must answer at once, not by a promise. */
        validate(value: unknown): StandardResult | Promise<StandardResult>;
    };
}

interface StandardResult {
    readonly value?: unknown;
    readonly issues?: readonly StandardIssue[] | undefined;
}

interface StandardIssue {
    readonly message: string;
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A schema of the application's own: of objects, whoever's Joi or Standard Schema it is. */
export interface ApplicationSchema {
    readonly schema: JoiSchema | StandardSchema;
    /** Of a Standard Schema, which does not tell them: the names of the fields, in the order in which they go out. */
    readonly fields?: readonly string[];
    /** Of a Standard Schema, the same in JSON Schema: types and order of what is below its fields. Without it they are open. */
    readonly jsonSchema?: JsonSchema;
}

/** What a schema says of a value, in the words of Joi's `describe()`. */
export interface SchemaDescription {
    readonly type?: string;
    readonly flags?: { readonly default?: unknown; readonly unknown?: boolean };
    readonly allow?: readonly unknown[];
    readonly keys?: Readonly<Record<string, SchemaDescription>>;
    readonly items?: readonly SchemaDescription[];
    /** Keys by patterns. */
    readonly patterns?: unknown;
}

const JOI = Symbol.for('@hapi/joi/schema');

function isJoi(schema: object): schema is JoiSchema {
    return JOI in schema;
}

const joiSchema = Joi.any().custom((value: unknown, helpers) =>
    typeof value === 'object' && value !== null && isJoi(value) ? value : helpers.error('any.invalid'),
);

const schemaRule = Joi.any().custom((value: unknown, helpers) => {
    const given = (typeof value === 'object' || typeof value === 'function') && value !== null ? value : {};
    const accepted = isJoi(given)
        ? given.describe().type === 'object'
        : typeof (given as Partial<StandardSchema>)['~standard']?.validate === 'function';
    return accepted ? value : helpers.message({ custom: '{{#label}} must be a Joi schema of an object, or a Standard Schema' });
});

const fieldsRule = Joi.array()
    .items(Joi.string())
    .unique()
    .min(1)
    .custom((fields: readonly string[], helpers) => {
        const { jsonSchema } = helpers.state.ancestors[0] as ApplicationSchema;
        const strange = jsonSchema && fields.find((name) => !Object.hasOwn((jsonSchema.properties as object | undefined) ?? {}, name));
        return strange === undefined
            ? fields
            : helpers.message({ custom: `{{#label}} has ${strange}, which is no property of jsonSchema` });
    });

// biome-ignore lint/suspicious/noThenProperty: Joi calls it so
const withJoi = (otherwise: Joi.Schema): Joi.WhenOptions => ({ is: joiSchema.required(), then: Joi.forbidden(), otherwise });

/** The rules of {@link ApplicationSchema}. */
export const applicationSchemaRules: Readonly<Record<keyof ApplicationSchema, Joi.Schema>> = {
    schema: schemaRule.required(),
    fields: fieldsRule.when('schema', withJoi(Joi.required())),
    jsonSchema: Joi.object().unknown().when('schema', withJoi(Joi.optional())),
};

/** A schema that values are checked by: Joi waits for rules of `external()` by a promise, and refuses to check anything without. */
export const checkingSchemaRule: Joi.Schema = schemaRule
    .required()
    .custom((schema: object, helpers) =>
        isJoi(schema) && hasExternals(schema.describe())
            ? helpers.message({ custom: '{{#label}} must answer at once, so no rule of it may be one of external()' })
            : schema,
    );

/** Parts of a description that are values of the application's, and no descriptions. */
const VALUES = new Set(['allow', 'examples', 'flags', 'invalid', 'metas']);

function hasExternals(description: unknown): boolean {
    return Array.isArray(description)
        ? description.some(hasExternals)
        : isObject(description) &&
              (Array.isArray(description.externals) ||
                  Object.entries(description).some(
                      ([name, part]) => !(VALUES.has(name) && !('type' in Object(part))) && hasExternals(part),
                  ));
}

/**
 * What the fields of a schema are, in the order in which they go out.
 *
 * @param onWarning Told of a Standard Schema without a JSON Schema; the process warns of it by default.
 */
export function describedSchema(
    { schema, fields = [], jsonSchema }: ApplicationSchema,
    subject: string,
    onWarning: OnWarning = openSchemaWarning,
): SchemaDescription {
    if (isJoi(schema)) {
        return schema.describe();
    }

    if (jsonSchema === undefined) {
        onWarning(`${subject}: without jsonSchema the types of its fields are unknown, and the order below them is that of each value`);
    }

    const properties = jsonSchema === undefined ? {} : (described(jsonSchema).keys ?? {});
    return { type: 'object', keys: Object.fromEntries(fields.map((name) => [name, properties[name] ?? {}])) };
}

function openSchemaWarning(message: string): void {
    process.emitWarning(message, { type: 'ScanwireWarning', code: 'SCANWIRE_OPEN_SCHEMA' });
}

/**
 * The value as the schema makes it.
 *
 * @throws ScanwireError `INVALID_INPUT` with the first offending field; `MISCONFIGURED` for a schema that answers by a promise.
 */
export function checkedBy(schema: JoiSchema | StandardSchema, value: unknown, subject: string): unknown {
    if (isJoi(schema)) {
        const result = schema.required().validate(value, VALIDATION);
        if (result.error !== undefined) {
            throw schemaRefusal(result.error, { subject });
        }

        return result.value;
    }

    const result = schema['~standard'].validate(value);
    if (isThenable(result)) {
        Promise.resolve(result).catch(() => {});
        throw new ScanwireError('MISCONFIGURED', `${subject}: the schema must answer at once, not by a promise`);
    }

    const [issue] = result.issues ?? [];
    if (issue !== undefined) {
        throw issueRefusal(issue, subject);
    }

    return result.value;
}

/** Not every promise is one of Node's. */
function isThenable(result: StandardResult | PromiseLike<StandardResult>): result is PromiseLike<StandardResult> {
    return typeof (result as Partial<PromiseLike<StandardResult>>).then === 'function';
}

function issueRefusal({ message, path = [] }: StandardIssue, subject: string): ScanwireError {
    const keys = path.map((part) => (typeof part === 'object' ? part.key : part));
    const field = fieldPath(keys.map((key) => (typeof key === 'symbol' ? String(key) : key)));
    const rule = `${field === '' ? '' : `${field}: `}${message}`;
    return new ScanwireError('INVALID_INPUT', `${subject}: ${rule}`, field === '' ? {} : { field });
}

const JOI_TYPES: Readonly<Record<string, string>> = { integer: 'number', 'date-time': 'date' };

/** A JSON Schema in the words of Joi, as far as fields, their order and their types go; what it says by reference stays open. */
function described(schema: JsonSchema): SchemaDescription {
    const { type, format, properties, items, anyOf, additionalProperties = false, default: byDefault } = schema;
    const variants = Array.isArray(anyOf) ? (anyOf as JsonSchema[]) : [];
    const types = [type, ...variants.map((variant) => variant.type)].flat();
    const [only] = variants.filter((variant) => variant.type !== 'null');
    if (type === undefined && only !== undefined) {
        return { ...described(only), ...(types.includes('null') && { allow: [null] }) };
    }

    const name = types.find((each): each is string => typeof each === 'string' && each !== 'null');
    const known = name === 'string' && format === 'date-time' ? format : name;
    return {
        ...(known !== undefined && { type: JOI_TYPES[known] ?? known }),
        ...((byDefault !== undefined || additionalProperties !== false) && {
            flags: { ...(byDefault !== undefined && { default: byDefault }), ...(additionalProperties !== false && { unknown: true }) },
        }),
        ...(types.includes('null') && { allow: [null] }),
        ...(isObject(properties) && {
            keys: Object.fromEntries(Object.entries(properties).map(([key, below]) => [key, isObject(below) ? described(below) : {}])),
        }),
        ...(isObject(items) && { items: [described(items)] }),
    };
}
