import Joi from 'joi';

export interface HttpsRecordSchemaOptions {
    /** Path of the JSON Schema; records are checked at `<path>/check`. `/https-record-schema` by default. */
    readonly path?: string | undefined;
    /** Name of the authentication strategy of both routes, or false for none. The server's default by default. */
    readonly auth?: string | false | undefined;
    /** Largest batch in bytes, as it is sent. 64 MiB by default. */
    readonly maxBytes?: number | undefined;
    /** Largest batch in bytes after decompression. 512 MiB by default. */
    readonly maxDecodedBytes?: number | undefined;
    /** Longest line in bytes; a longer one is reported and skipped. 1 MiB by default. */
    readonly maxLineBytes?: number | undefined;
    /** How many bad lines are described in one answer; those beyond are counted. 1000 by default. */
    readonly maxReported?: number | undefined;
}

/** The options with their defaults. */
export interface Settings {
    readonly path: string;
    readonly auth?: string | false;
    readonly maxBytes: number;
    readonly maxDecodedBytes: number;
    readonly maxLineBytes: number;
    readonly maxReported: number;
}

const MIB = 1_048_576;
const size = (): Joi.NumberSchema => Joi.number().integer().min(1);

export const optionsSchema: Joi.ObjectSchema<Settings> = Joi.object<Settings, true>({
    path: Joi.string()
        .pattern(/^(?:\/[A-Za-z0-9._~-]+)+$/)
        .messages({ 'string.pattern.base': '{{#label}} must look like /https-record-schema' })
        .default('/https-record-schema'),
    auth: Joi.alternatives(Joi.string(), Joi.boolean().valid(false)),
    maxBytes: size().default(64 * MIB),
    maxDecodedBytes: size().default(512 * MIB),
    maxLineBytes: size().default(MIB),
    maxReported: size().default(1000),
});
