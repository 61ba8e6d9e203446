import Joi from 'joi';
import { nameSchema } from '../checked.ts';

/**
 * Which investigations an exporter receives. `investigation` and `investigation_legacy_and_library` take every one,
 * `investigation_legacy` all but those that a rule of the detection rules library raised.
 */
export type ExportType = 'investigation' | 'investigation_legacy' | 'investigation_legacy_and_library';

/** How far a receiver's certificate is trusted. Says nothing about which addresses may be called. */
export type Trust = 'strict' | 'self-signed' | 'all';

/** Forms in which the signature is sent. `base64` is the default; several may be combined. */
export type SignatureForm = 'base64' | 'hex' | 'sha256-hex' | 'standard-webhooks';

/** Additional headers, in the order in which the user gave them. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** A configured receiver, as people see it: no secret, no header values. */
export interface Exporter {
    /** UUID; goes out as `webhook_id`. */
    readonly id: string;
    /** May be empty; goes out as `webhook_name`. */
    readonly name: string;
    /** Normalised absolute http or https URL. */
    readonly url: string;
    /** The worker pool that sends for it. */
    readonly collector: string;
    readonly type: ExportType;
    /** Came from the older product and may therefore hold the legacy types. */
    readonly legacy: boolean;
    readonly trust: Trust;
    readonly signatures: readonly SignatureForm[];
    /** Names of the additional headers. */
    readonly headerNames: readonly string[];
    readonly state: 'running' | 'stopped';
    /** Why it stopped by itself, for example `receiver answered 410 Gone`; null when a person stopped it. */
    readonly stopReason: string | null;
    /** Failed attempts since the last one that was delivered. */
    readonly consecutiveFailures: number;
    readonly createdAt: Date;
    readonly updatedAt: Date;
}

/** An exporter at rest. */
export interface StoredExporter extends Exporter {
    /** The signing secret, sealed in the context `exporter:<id>`. */
    readonly sealedSecret: string;
    /** The secret before the last rotation, sealed alike, still valid until `previousSecretUntil`. */
    readonly sealedPreviousSecret: string | null;
    readonly previousSecretUntil: Date | null;
    /** JSON of {@link HeaderPairs}, sealed in the context `exporter:<id>:headers`; null without additional headers. */
    readonly sealedHeaders: string | null;
    /** Retry delays of its own in milliseconds, null for the default schedule. */
    readonly schedule: readonly number[] | null;
}

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
