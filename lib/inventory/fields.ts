import Joi from 'joi';

/** What a service may be spoken to by. */
export const PROTOCOLS = ['tcp', 'udp'] as const;

/** What a scan finds of a port. */
export const SERVICE_STATES = ['open', 'closed', 'filtered', 'unknown'] as const;

/** The kinds of fields, and how each is checked. In a row every field is there; what is not known is null or empty. */
export const FIELD_SCHEMAS = {
    id: (): Joi.NumberSchema => Joi.number().integer().required(),
    nullableId: (): Joi.NumberSchema<number | null> => FIELD_SCHEMAS.id().allow(null),
    time: (): Joi.DateSchema => Joi.date().required(),
    nullableTime: (): Joi.DateSchema<Date | null> => FIELD_SCHEMAS.time().allow(null),
    count: (): Joi.NumberSchema => Joi.number().integer().min(0).required(),
    text: (): Joi.StringSchema => Joi.string().allow('').required(),
    nullableText: (): Joi.StringSchema<string | null> => FIELD_SCHEMAS.text().allow(null),
    filledText: (): Joi.StringSchema => Joi.string().required(),
    nullableFilledText: (): Joi.StringSchema<string | null> => FIELD_SCHEMAS.filledText().allow(null),
    flag: (): Joi.BooleanSchema => Joi.boolean().required(),
    nullableFlag: (): Joi.BooleanSchema<boolean | null> => FIELD_SCHEMAS.flag().allow(null),
    port: (): Joi.NumberSchema => Joi.number().integer().min(1).max(65535).required(),
    nullablePort: (): Joi.NumberSchema<number | null> => FIELD_SCHEMAS.port().allow(null),
    object: (): Joi.ObjectSchema<Readonly<Record<string, unknown>>> => Joi.object().required(),
    protocol: (): Joi.StringSchema<Protocol> =>
        Joi.string<Protocol>()
            .valid(...PROTOCOLS)
            .required(),
    serviceState: (): Joi.StringSchema<ServiceState> =>
        Joi.string<ServiceState>()
            .valid(...SERVICE_STATES)
            .required(),
    vulnName: (): Joi.StringSchema => FIELD_SCHEMAS.filledText().max(255),
};

type Protocol = (typeof PROTOCOLS)[number];
type ServiceState = (typeof SERVICE_STATES)[number];

/** What the kinds of fields hold. */
export type FieldTypes = {
    readonly [Kind in keyof typeof FIELD_SCHEMAS]: ReturnType<(typeof FIELD_SCHEMAS)[Kind]> extends Joi.Schema<infer Value> ? Value : never;
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
