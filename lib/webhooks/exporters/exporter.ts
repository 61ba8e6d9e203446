import Joi from 'joi';
import { nameSchema, storableText, subjectOf } from '../../schema-validation.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { type ExportType, MAX_DELAY } from '../setting-values.ts';
import { type AuthenticationPart, type AuthenticationSettings, authenticationSchemas, splitAuthentication } from './authentication.ts';
import { byPlainSetting, PLAIN_SETTINGS, type PlainSetting, type PlainSettings, type SettingName } from './plain-settings.ts';

/** Settings that a user configures and that are stored as they are, but for the URL, which is sealed. {@link newExporterSchema} has rules and defaults. */
export interface StoredSettings extends PlainSettings {
    /** Absolute http or https URL of the receiver, normalised. */
    readonly url: string;
    /** Retry delays of its own in milliseconds, null for the default schedule. */
    readonly schedule: readonly number[] | null;
}

/** A configured receiver, as people see it: without secrets and header values, and with only those parts of the URL that cannot hold a token. */
export interface Exporter extends Omit<StoredSettings, 'schedule' | 'url'> {
    /** Scheme, host and port of the receiver, then `/…` for what may hold a token. */
    readonly url: string;
    /** Retry delays of its own in milliseconds; absent where it has the default schedule. */
    readonly schedule?: readonly number[];
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
    /**
     * Failures in a row, as {@link BreakerRules.after} counts them: those of attempts at the same time count once, and one in a slow start, or of the
     * probe after a pause, as so many as open the breaker.
     */
    readonly consecutiveFailures: number;
    readonly createdAt: Date;
    readonly updatedAt: Date;
}

/** An exporter as a store keeps it: with its secrets, sealed (encrypted, see `lib/keys/key-ring.ts`). */
export interface StoredExporter extends Omit<Exporter, 'schedule'>, StoredSettings {
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

/** What a user configures when an exporter is made: its settings, what never changes afterwards, and whose it is. */
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
export const DEFAULT_COLLECTOR: string = PLAIN_SETTINGS.collector.byDefault;

/** Collector names become queue names. */
export const COLLECTOR_PATTERN: RegExp = /^[A-Za-z0-9_-]{1,64}$/;

/** The rules for the name of a collector. */
export const collectorSchema: Joi.StringSchema = Joi.string()
    .pattern(COLLECTOR_PATTERN)
    .messages({ 'string.pattern.base': '{{#label}} must be 1 to 64 letters, digits, "-" and "_"' });

/** The rules of those plain settings (stored and shown as they are, see `plain-settings.ts`) that are narrower than what {@link schemaFor} says. */
const OWN_RULES: Readonly<Partial<Record<SettingName, Joi.Schema>>> = {
    collector: collectorSchema,
    filter: Joi.object().unknown(),
};

/** What a plain setting may be, by what it is declared `as`. */
function schemaFor(setting: PlainSetting): Joi.Schema {
    switch (setting.as) {
        case 'text':
            return nameSchema.max(setting.max);
        case 'number':
            return Joi.number().integer().min(setting.min).max(setting.max);
        case 'flag':
            return Joi.boolean();
        case 'choice':
            return Joi.string().valid(...setting.of);
        case 'choices':
            return Joi.array()
                .items(Joi.string().valid(...setting.of))
                .min(1)
                .unique();
        case 'names':
            return Joi.array().items(Joi.string()).min(1).max(setting.max).unique();
        case 'json':
            return Joi.alternatives(Joi.object().unknown(), Joi.array());
    }
}

/** The rules of plain settings, without their defaults. */
const plainSchemas = byPlainSetting((setting, name): Joi.Schema => {
    const { byDefault, about, without } = setting;
    const rule = OWN_RULES[name] ?? schemaFor(setting);
    const described = rule.description(subjectOf(byDefault === null ? `${about}; null for ${without}` : about));
    // What is empty by default may be emptied.
    return byDefault === null || byDefault === '' ? described.allow(byDefault) : described;
});

/** The rules of a schedule of an exporter's own. */
export const scheduleSchema: Joi.ArraySchema = Joi.array().items(Joi.number().integer().min(1000).max(MAX_DELAY)).min(1).max(30);

/** The rules of {@link StoredSettings}. */
export const settingSchemas: { readonly [Setting in keyof StoredSettings]: Joi.Schema } = {
    url: Joi.string().max(2048).description('Where to POST, http or https'),
    ...plainSchemas,
    schedule: scheduleSchema.allow(null).description('Retry delays in milliseconds; null for the default ones'),
};

/** The rules for the name of an owner, which the application chooses. */
export const ownerSchema: Joi.StringSchema = storableText().max(200);

/** The rules of {@link ExporterSettings}, without defaults. */
export const configurableSchemas: { readonly [Setting in keyof Required<ExporterSettings>]: Joi.Schema } = {
    ...settingSchemas,
    secret: Joi.string().description('Signing secret'),
    formatSecret: storableText().max(1024).description('What the format needs and nobody may see'),
    headers: Joi.array()
        .items(Joi.array().ordered(Joi.string().required(), Joi.string().allow('').required()))
        .description('Additional headers, pairs of name and value'),
    ...authenticationSchemas,
};

/** {@link NewExporterSettings} with their defaults; secrets and parts of the authentication have none. */
export type CheckedExporterSettings = Required<Omit<NewExporterSettings, 'secret' | 'formatSecret' | AuthenticationPart>> &
    Pick<NewExporterSettings, 'secret' | 'formatSecret' | AuthenticationPart>;

/** The rules of {@link NewExporterSettings}, with their defaults. */
export const newExporterSchema: Joi.ObjectSchema<CheckedExporterSettings> = Joi.object({
    ...configurableSchemas,
    ...byPlainSetting(({ byDefault }, name) => plainSchemas[name].default(byDefault as Joi.BasicType)),
    url: configurableSchemas.url.required(),
    headers: configurableSchemas.headers.default([]),
    schedule: configurableSchemas.schedule.default(null),
    owner: ownerSchema.allow(null).default(null).description('Whose it is: it gets events of this owner only; null for those of all'),
    legacy: Joi.boolean().default(false).description('Dates from before the detection rules library: starts with `investigation_legacy`'),
})
    .label('settings')
    .required();

/** An exporter as it begins: stopped. Its URL, its secret, its additional headers and its authentication are not sealed yet. */
export function newExporter(id: string, checked: CheckedExporterSettings, now: Date): Omit<StoredExporter, 'sealedSecret'> {
    const [, settings] = splitAuthentication(checked);
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
