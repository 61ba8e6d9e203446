/** What a record must be like. Loaded by whoever checks records, and not by those who only keep them: it takes a tenth of a server's start. */
import Joi from 'joi';
import { HOST_PATTERN, IP_PATTERN } from '../addresses.ts';
import { isBase64 } from './base64.ts';
import type { HttpsRecord } from './record.ts';

/** Changes with every change of the fields or their rules; part of the JSON Schema's `$id`. */
export const RECORD_SCHEMA_VERSION = 1;

/**
 * What {@link isBase64} says quicker, for JSON Schema. Twice two in place of four: V8 unrolls no count beyond three, and keeps each
 * round of a loop around a count on its stack, which a few megabytes use up.
 */
const BASE64_PATTERN = '^(?:[A-Za-z0-9+/]{2}[A-Za-z0-9+/]{2})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$';

const HIDDEN_KEY = '__proto__';

/**
 * The strict profile: `data`, `host`, `ip` and `port` are required, nothing is converted, nothing else is allowed.
 * The JSON Schema is made from it, so no rule but that of `data` may be one that Joi cannot put into it; a validator of JSON Schema sees every key.
 */
export const recordSchema: Joi.ObjectSchema<HttpsRecord> = Joi.object<HttpsRecord, true>({
    data: Joi.string()
        .custom((value: string, helpers) => (isBase64(value) ? value : helpers.error('any.custom')))
        .messages({ 'any.custom': '{{#label}} must be base64: standard alphabet, padded, without line breaks' })
        .allow('')
        .required()
        .description('The HTTPS response, base64 encoded'),
    host: text(HOST_PATTERN, 'must be a name or an IP address').required().description('Name or IP of the HTTPS endpoint'),
    ip: text(IP_PATTERN, 'must be an IPv4 or IPv6 address').required().description('IP of the HTTPS endpoint'),
    port: Joi.number().integer().min(1).max(65535).required().description('HTTP port of the endpoint'),
    path: text(/^\//, 'must begin with /').description('HTTP path requested'),
    vhost: Joi.string().allow('').description('Value of the HTTP 1.1 Host header used to select a virtual host'),
    subject: Joi.object({
        OU: Joi.string().allow('').description("OrganizationalUnit taken from the endpoint's SSL certificate"),
        CN: Joi.string().allow('').description("CommonName taken from the endpoint's SSL certificate"),
    })
        .custom(withoutHiddenKey)
        .description('Certificate subject'),
})
    .custom(withoutHiddenKey)
    .required()
    .prefs({ convert: false });

/** Joi copies an own key `__proto__`, which `JSON.parse` makes, so that its value becomes what the copy inherits from, and no key. */
function withoutHiddenKey(value: object, { original, state, error }: Joi.CustomHelpers): object {
    const place = state.localize?.([...(state.path ?? []), HIDDEN_KEY]);
    return Object.hasOwn(original, HIDDEN_KEY) ? error('object.unknown', { child: HIDDEN_KEY }, place) : value;
}

/** A string with a rule of its own, whose message says the rule and not the value. */
function text(pattern: RegExp, rule: string): Joi.StringSchema {
    return Joi.string()
        .pattern(pattern)
        .messages({ 'string.pattern.base': `{{#label}} ${rule}`, 'string.empty': `{{#label}} ${rule}` });
}

/** A JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

const { properties, ...converted } = recordSchema['~standard'].jsonSchema.output({ target: 'draft-2020-12' }) as {
    readonly properties: Readonly<Record<string, object>>;
};

/** The JSON Schema of a record, made from {@link recordSchema}: both accept the same values. */
export const recordJsonSchema: JsonSchema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:scanwire:https-record:${RECORD_SCHEMA_VERSION}`,
    title: 'HTTPS scan record',
    description: 'The result of an HTTPS request made to an endpoint',
    ...converted,
    properties: { ...properties, data: { ...properties.data, pattern: BASE64_PATTERN, contentEncoding: 'base64' } },
};
