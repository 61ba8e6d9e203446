import Joi from 'joi';
import { nameSchema } from '../../schema-validation.ts';
import type { Filter } from '../events/filter.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { MAX_DELAY } from '../outcomes/retry-schedule.ts';
import {
    AFTER_EXHAUSTED,
    type AfterExhausted,
    type ExportType,
    SIGNATURE_FORMS,
    type SignatureForm,
    TRUST_SETTINGS,
    type Trust,
} from '../setting-values.ts';
import { type AuthenticationPart, type AuthenticationSettings, authenticationSchemas, partAuthentication } from './authentication.ts';

/** Settings that a user configures and that are stored as they are, but for the URL. {@link newExporterSchema} has their rules and defaults. */
export interface StoredSettings {
    /** Absolute http or https URL of the receiver, normalised. */
    readonly url: string;
    /** May be empty; goes out as `webhook_name` of a `test`. */
    readonly name: string;
    /** Name of the collector that sends for it: a pool of workers, for example those inside a customer's network. */
    readonly collector: string;
    readonly trust: Trust;
    /** Forms of the signature, the preferred one first. */
    readonly signatures: readonly SignatureForm[];
    /** Retry delays of its own in milliseconds, null for the default schedule. */
    readonly schedule: readonly number[] | null;
    /** The kinds of events that it gets, each a name or the beginning of names before a `*`; null for all but those about exporters (`exporter_…`). */
    readonly kinds: readonly string[] | null;
    /** What the body of an event must be like for it, null for any. */
    readonly filter: Filter | null;
    /** What is sent of an event: `native` for its body as it is. */
    readonly format: string;
    /** The document of the format `template`, else null. */
    readonly template: unknown;
    /** The most attempts a second, by all workers together; null for as many as it takes. */
    readonly rate: number | null;
    /** Whether it gets events that were published with the same order key one after another. */
    readonly ordered: boolean;
    /** Where the exporter is ordered: whether deliveries behind one that failed for good go on, or wait until that one is replayed, discarded or erased. */
    readonly afterExhausted: AfterExhausted;
}

/** A configured receiver, as people see it: without secrets and header values, and with only those parts of the URL that cannot hold a token. */
export interface Exporter extends Omit<StoredSettings, 'schedule' | 'url'> {
    /** Scheme, host and port of the receiver, then `/…` for what may hold a token. */
    readonly url: string;
    /** UUID; goes out as `webhook_id` of a `test`. The `webhook-id` of Standard Webhooks is another: that of the event. */
    readonly id: string;
    readonly type: ExportType;
    /** Whose it is, in the application's words: it gets events of this owner only. Null for the deployment's, which get those of all. */
    readonly owner: string | null;
    /**
     * Whether it takes the place of an exporter from before the rule set `library` existed. Only such an exporter has one of the two legacy types
     * of {@link EXPORT_TYPES}.
     */
    readonly legacy: boolean;
    /** Names of the additional headers. */
    readonly headerNames: readonly string[];
    /** The parts of {@link Authentication} that it has beside signatures and headers, for example `basic`. */
    readonly authentication: readonly AuthenticationPart[];
    readonly state: 'running' | 'stopped';
    /** Why it stopped by itself, for example `The receiver answered 410 Gone`; null when a person stopped it. */
    readonly stopReason: string | null;
    /** Since when a person has it paused, so that what is accepted for it waits, whether it runs or not. Null unless it is paused. */
    readonly pausedAt: Date | null;
    /** Failed attempts since the last success, without those that {@link BreakerRules.after} does not count. */
    readonly consecutiveFailures: number;
    readonly createdAt: Date;
    readonly updatedAt: Date;
}

/** An exporter as a store keeps it: with its secrets, sealed (encrypted, see `lib/keys/key-ring.ts`). */
export interface StoredExporter extends Exporter, StoredSettings {
    /** The URL of its receiver, sealed for this exporter; unsealed where an earlier release has stored it. */
    readonly url: string;
    /** The signing secret, sealed for this exporter. */
    readonly sealedSecret: string;
    /** Previous signing secrets, the latest first. Some may have ended. */
    readonly previousSecrets: readonly PreviousSecret[];
    /** JSON of {@link HeaderPairs}, sealed for this exporter; null without additional headers. */
    readonly sealedHeaders: string | null;
    /** The secret that its format puts into a message when it is sent, sealed for this exporter; null without one. */
    readonly sealedFormatSecret: string | null;
    /** JSON of `Authentication`, sealed for this exporter; null where {@link Exporter.authentication} is empty. */
    readonly sealedAuthentication: string | null;
}

/** A secret that was changed, and that still signs until its end in the forms that can carry several. */
export interface PreviousSecret {
    /** Sealed as the current one is. */
    readonly sealed: string;
    readonly until: Date;
}

/** What a user configures. `docs/webhook-exporter.md` lists every setting with its default. */
export interface ExporterSettings extends Partial<Omit<StoredSettings, 'url'>>, Pick<StoredSettings, 'url'>, AuthenticationSettings {
    /** Signing secret; made when absent. */
    readonly secret?: string;
    /** Additional headers, for example an `Authorization` that the receiver needs. */
    readonly headers?: HeaderPairs;
    /** What the format needs and nobody may see, for example the routing key of `pagerduty`. */
    readonly formatSecret?: string;
}

/** What a user configures when an exporter is made: its settings, and what can never change afterwards. */
export interface NewExporterSettings extends ExporterSettings {
    /**
     * Whether it takes the place of an exporter from before the rule set `library` existed, in this application or in another one. It then starts
     * with the type `investigation_legacy`, as its receiver expects. Default false.
     */
    readonly legacy?: boolean;
    /** Whose it is, in the application's words: it gets events of this owner only. Default null: the deployment's, which get those of all. */
    readonly owner?: string | null;
}

/** Name of the collector that exporters belong to unless they say otherwise. */
export const DEFAULT_COLLECTOR = 'default';

/** Collector names become queue names. */
export const COLLECTOR_PATTERN: RegExp = /^[A-Za-z0-9_-]{1,64}$/;

/** The rules for the name of a collector. */
export const collectorSchema: Joi.StringSchema = Joi.string()
    .pattern(COLLECTOR_PATTERN)
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 64 letters, digits, "-" and "_"' });

/** The rules of {@link StoredSettings}. */
export const settingSchemas: { readonly [Setting in keyof StoredSettings]: Joi.Schema } = {
    url: Joi.string().max(2048).description('Where to POST, http or https'),
    name: nameSchema.allow('').description('Goes out as webhook_name'),
    collector: collectorSchema.description('Pool of workers that sends for it'),
    trust: Joi.string()
        .valid(...TRUST_SETTINGS)
        .description("How far the receiver's certificate is trusted"),
    signatures: Joi.array()
        .items(Joi.string().valid(...SIGNATURE_FORMS))
        .min(1)
        .unique()
        .description('Forms of the signature'),
    schedule: Joi.array()
        .items(Joi.number().integer().min(1000).max(MAX_DELAY))
        .min(1)
        .max(30)
        .allow(null)
        .description('Retry delays in milliseconds; null for the default ones'),
    kinds: Joi.array()
        .items(Joi.string())
        .min(1)
        .max(100)
        .unique()
        .allow(null)
        .description('Kinds of events that it gets, a * at the end for all that begin so; null for all'),
    filter: Joi.object().unknown().allow(null).description('What the body of an event must be like for it; null for any'),
    format: Joi.string().max(64).description('What is sent of an event'),
    template: Joi.alternatives(Joi.object().unknown(), Joi.array()).allow(null).description('Document of the format template'),
    rate: Joi.number().integer().min(1).max(1000).allow(null).description('The most attempts a second; null for any'),
    ordered: Joi.boolean().description('Whether events with the same order key go one after another'),
    afterExhausted: Joi.string()
        .valid(...AFTER_EXHAUSTED)
        .description('What becomes of those after one of their order key that failed for good'),
};

/** The rules for the name of an owner, which the application chooses. */
export const ownerSchema: Joi.StringSchema = Joi.string().max(200);

/** The rules of {@link ExporterSettings}, without defaults. */
export const configurableSchemas: { readonly [Setting in keyof Required<ExporterSettings>]: Joi.Schema } = {
    ...settingSchemas,
    secret: Joi.string().description('Signing secret'),
    formatSecret: Joi.string().max(1024).description('What the format needs and nobody may see'),
    headers: Joi.array()
        .items(Joi.array().ordered(Joi.string().required(), Joi.string().allow('').required()))
        .description('Additional headers, pairs of name and value'),
    ...authenticationSchemas,
};

/** {@link NewExporterSettings} with their defaults; only secrets have none. */
export type CheckedExporterSettings = Required<Omit<NewExporterSettings, 'secret' | 'formatSecret' | AuthenticationPart>> &
    Pick<NewExporterSettings, 'secret' | 'formatSecret' | AuthenticationPart>;

/** The rules of {@link NewExporterSettings}, with their defaults. */
export const newExporterSchema: Joi.ObjectSchema<CheckedExporterSettings> = Joi.object({
    ...configurableSchemas,
    url: configurableSchemas.url.required(),
    name: configurableSchemas.name.default(''),
    headers: configurableSchemas.headers.default([]),
    collector: configurableSchemas.collector.default(DEFAULT_COLLECTOR),
    trust: configurableSchemas.trust.default('strict'),
    signatures: configurableSchemas.signatures.default(['base64']),
    schedule: configurableSchemas.schedule.default(null),
    kinds: configurableSchemas.kinds.default(null),
    filter: configurableSchemas.filter.default(null),
    format: configurableSchemas.format.default('native'),
    template: configurableSchemas.template.default(null),
    rate: configurableSchemas.rate.default(null),
    ordered: configurableSchemas.ordered.default(false),
    afterExhausted: configurableSchemas.afterExhausted.default('skip'),
    owner: ownerSchema.allow(null).default(null).description('Whose it is: it gets events of this owner only; null for those of all'),
    legacy: Joi.boolean().default(false).description('Dates from before the detection rules library: starts with `investigation_legacy`'),
})
    .label('settings')
    .required();

/** An exporter as it begins: stopped. Its URL, its secret, its additional headers and its authentication are not sealed yet. */
export function newExporter(id: string, checked: CheckedExporterSettings, now: Date): Omit<StoredExporter, 'sealedSecret'> {
    const [, settings] = partAuthentication(checked);
    const { secret: _, formatSecret: __, headers: ___, legacy, ...stored } = settings;
    return {
        ...stored,
        id,
        legacy,
        type: legacy ? 'investigation_legacy' : 'investigation',
        headerNames: [],
        state: 'stopped',
        stopReason: null,
        pausedAt: null,
        consecutiveFailures: 0,
        previousSecrets: [],
        sealedHeaders: null,
        sealedFormatSecret: null,
        authentication: [],
        sealedAuthentication: null,
        createdAt: now,
        updatedAt: now,
    };
}
