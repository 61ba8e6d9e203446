import type { Request } from '@hapi/hapi';
import Joi from 'joi';
import { inMilliseconds, objectWith } from '../../lib/schema-validation.ts';
import type { ReplayCache } from '../../lib/verify/replay-cache.ts';
import { MAX_TOLERANCE, MIN_TOLERANCE, TOLERANCE, type VerifyOptions } from '../../lib/verify/verify.ts';
import { SIGNATURE_FORMS } from '../../lib/webhooks/setting-values.ts';
import { type InstanceOptions, instanceSchema, strategySchema } from '../instance.ts';

/** The secrets that may have signed a request. */
export type SecretsOf = (request: Request) => readonly string[] | Promise<readonly string[]>;

/** Options of the plugin. */
export interface WebhookAuthOptions extends Omit<VerifyOptions, 'secrets' | 'replays'>, InstanceOptions {
    /** As those of `verify`, or a function that finds them for a request; no secret at all refuses the request. */
    readonly secrets: readonly string[] | SecretsOf;
    /** As that of `verify`, or a store that several processes share, whose promise is waited for. While it fails a message is answered 503, and sent again. */
    readonly replays?: { isNew(...message: Parameters<ReplayCache['isNew']>): boolean | Promise<boolean> } | undefined;
    /** Name of the strategy that is registered: by default `webhook`, that of a named instance the name of the instance. */
    readonly strategy?: string | undefined;
    /** Name of the scheme, which no other scheme of the server may have. Default as for `strategy`. */
    readonly scheme?: string | undefined;
}

/** Checks the options, but for what `verify` itself asks of its own, and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<WebhookAuthOptions> = Joi.object({
    secrets: Joi.alternatives(Joi.array().sparse(), Joi.function())
        .required()
        .messages({ 'alternatives.types': '{{#label}} must be a list of secrets or a function' }),
    forms: Joi.array().items(Joi.string().valid(...SIGNATURE_FORMS)),
    tolerance: inMilliseconds(MIN_TOLERANCE).max(MAX_TOLERANCE).default(TOLERANCE),
    replays: objectWith<NonNullable<WebhookAuthOptions['replays']>>('isNew'),
    vendor: Joi.string(),
    clock: Joi.function(),
    strategy: strategySchema,
    scheme: strategySchema,
    instance: instanceSchema,
}).required();
