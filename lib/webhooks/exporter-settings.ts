import Joi from 'joi';
import { nameSchema } from '../name-schema.ts';
import type { ExportType, HeaderPairs, SignatureForm, Trust } from './exporter.ts';

/** What a user configures. `docs/webhook-exporter.md` lists every setting. */
export interface ExporterSettings {
    /** Receiver URL, http or https. */
    readonly url: string;
    /** Goes out as `webhook_name`; empty by default. */
    readonly name?: string;
    /** Signing secret; made when absent. */
    readonly secret?: string;
    /** Additional headers, for example an `Authorization` that the receiver needs. */
    readonly headers?: HeaderPairs;
    /** The worker pool that sends; `default` when absent. */
    readonly collector?: string;
    readonly trust?: Trust;
    /** Forms of the signature; `['base64']` when absent. */
    readonly signatures?: readonly SignatureForm[];
    /** Retry delays in milliseconds, 1 to 30 of them; the default schedule when null or absent. */
    readonly schedule?: readonly number[] | null;
}

export interface NewExporterSettings extends ExporterSettings {
    /** An exporter taken over from the older product: starts with `investigation_legacy`. */
    readonly legacy?: boolean;
}

export interface ExporterChanges extends Partial<ExporterSettings> {
    /** Only `investigation_legacy` can change, only to `investigation_legacy_and_library`, and never back. */
    readonly type?: ExportType;
}

/** Name of the collector that exporters belong to unless they say otherwise. */
export const DEFAULT_COLLECTOR = 'default';

/** Collector names become queue names. */
export const collectorSchema: Joi.StringSchema = Joi.string()
    .pattern(/^[A-Za-z0-9_-]{1,64}$/)
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 64 letters, digits, "-" and "_"' });

const DAY = 86_400_000;

const settings = {
    url: Joi.string().max(2048),
    name: nameSchema.allow(''),
    secret: Joi.string(),
    headers: Joi.array().items(Joi.array().ordered(Joi.string().required(), Joi.string().allow('').required())),
    collector: collectorSchema,
    trust: Joi.string().valid('strict', 'self-signed', 'all'),
    signatures: Joi.array()
        .items(Joi.string().valid('base64', 'hex', 'sha256-hex', 'standard-webhooks'))
        .min(1)
        .unique(),
    schedule: Joi.array()
        .items(
            Joi.number()
                .integer()
                .min(1000)
                .max(7 * DAY),
        )
        .min(1)
        .max(30)
        .allow(null),
};

export const newExporterSchema: Joi.ObjectSchema<NewExporterSettings> = Joi.object({
    ...settings,
    url: settings.url.required(),
    legacy: Joi.boolean(),
})
    .label('settings')
    .required();

export const exporterChangesSchema: Joi.ObjectSchema<ExporterChanges> = Joi.object({
    ...settings,
    type: Joi.string().valid('investigation', 'investigation_legacy', 'investigation_legacy_and_library'),
})
    .label('changes')
    .min(1)
    .required();
