import Joi from 'joi';

/** What a service may be spoken to by. */
export const PROTOCOLS = ['tcp', 'udp'] as const;

/** What a scan finds of a port. */
export const SERVICE_STATES = ['open', 'closed', 'filtered', 'unknown'] as const;

const id: Joi.NumberSchema = Joi.number().integer().required();
const time: Joi.DateSchema = Joi.date().required();
const text: Joi.StringSchema = Joi.string().allow('').required();
const filledText: Joi.StringSchema = Joi.string().required();
const flag: Joi.BooleanSchema = Joi.boolean().required();
const port: Joi.NumberSchema = Joi.number().integer().min(1).max(65535).required();

/**
 * The kinds of fields, and how each is checked. In a row every field is there; what is not known is null or empty. One schema for all fields
 * of a kind: to make one for each of them is felt at every start.
 */
export const FIELD_SCHEMAS = {
    id: id as Joi.NumberSchema,
    nullableId: id.allow(null) as Joi.NumberSchema<number | null>,
    time: time as Joi.DateSchema,
    nullableTime: time.allow(null) as Joi.DateSchema<Date | null>,
    count: Joi.number().integer().min(0).required() as Joi.NumberSchema,
    text: text as Joi.StringSchema,
    nullableText: text.allow(null) as Joi.StringSchema<string | null>,
    filledText: filledText as Joi.StringSchema,
    nullableFilledText: filledText.allow(null) as Joi.StringSchema<string | null>,
    flag: flag as Joi.BooleanSchema,
    nullableFlag: flag.allow(null) as Joi.BooleanSchema<boolean | null>,
    port: port as Joi.NumberSchema,
    nullablePort: port.allow(null) as Joi.NumberSchema<number | null>,
    object: Joi.object().required() as Joi.ObjectSchema<Readonly<Record<string, unknown>>>,
    protocol: Joi.string<Protocol>()
        .valid(...PROTOCOLS)
        .required() as Joi.StringSchema<Protocol>,
    serviceState: Joi.string<ServiceState>()
        .valid(...SERVICE_STATES)
        .required() as Joi.StringSchema<ServiceState>,
    vulnName: filledText.max(255) as Joi.StringSchema,
};

type Protocol = (typeof PROTOCOLS)[number];
type ServiceState = (typeof SERVICE_STATES)[number];

/** What the kinds of fields hold. */
export type FieldTypes = {
    readonly [Kind in keyof typeof FIELD_SCHEMAS]: (typeof FIELD_SCHEMAS)[Kind] extends Joi.Schema<infer Value> ? Value : never;
};

/** The largest id of a row; a path with a larger one leads nowhere. */
export const MAX_ID = 2_147_483_647;

/** Whether a row can have the id. */
export function isRowId(id: unknown): id is number {
    return Number.isInteger(id) && (id as number) >= 1 && (id as number) <= MAX_ID;
}

/** What a field is when nothing is known about it: its default, else null where null is allowed, else the nothing of its type. */
export function emptyValue({ type, flags, allow = [] }: Joi.Description): unknown {
    if (flags !== undefined && 'default' in flags && typeof flags.default !== 'function') {
        return flags.default;
    }

    const unset: Readonly<Record<string, unknown>> = { string: '', number: 0, boolean: false, object: {}, array: [] };
    return allow.includes(null) ? null : (unset[type ?? ''] ?? null);
}
