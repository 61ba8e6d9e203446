/*
 * Settings that are a choice from a list. Types, schemas and flags of the command line derive from these lists; they stand apart
 * from the schemas because the command line does not load Joi.
 */

/**
 * Which investigations (cases that a security product has opened) an exporter receives:
 *
 * - `investigation`: every one. The only type of an exporter that is not legacy.
 * - `investigation_legacy`: every one that the rule set `library` has not raised. A legacy exporter starts with this type.
 * - `investigation_legacy_and_library`: every one. Only a legacy exporter can be switched to it, and it cannot be switched back.
 */
export const EXPORT_TYPES = ['investigation', 'investigation_legacy', 'investigation_legacy_and_library'] as const;

/** One of {@link EXPORT_TYPES}. */
export type ExportType = (typeof EXPORT_TYPES)[number];

/** The sets of detection rules that raise investigations: `library` is the present set, and `legacy` are the rules from before there was that set. */
export const RULE_SETS = ['legacy', 'library'] as const;

/** One of {@link RULE_SETS}. */
export type RuleSet = (typeof RULE_SETS)[number];

/** How far a receiver's certificate is trusted. Says nothing about which addresses may be called. */
export const TRUST_SETTINGS = ['strict', 'self-signed', 'all'] as const;

/** One of {@link TRUST_SETTINGS}. */
export type Trust = (typeof TRUST_SETTINGS)[number];

/** Forms in which the signature is sent; an exporter may have several. */
export const SIGNATURE_FORMS = ['base64', 'hex', 'sha256-hex', 'standard-webhooks'] as const;

/** One of {@link SIGNATURE_FORMS}. */
export type SignatureForm = (typeof SIGNATURE_FORMS)[number];

/**
 * What becomes of messages of an order key after one that is `exhausted` or `poisoned`: they go on (`skip`), or wait until somebody has
 * replayed or discarded that one, or erased its event (`hold`).
 */
export const AFTER_EXHAUSTED = ['skip', 'hold'] as const;

/** One of {@link AFTER_EXHAUSTED}. */
export type AfterExhausted = (typeof AFTER_EXHAUSTED)[number];

/** Forms in which a body is sent: `native`, as its event kind describes it, and those that other products read. An application may add its own. */
export const FORMATS = [
    'native',
    'cloudevents',
    'cloudevents-binary',
    'ocsf',
    'slack',
    'teams',
    'pagerduty',
    'splunk-hec',
    'sentinel',
    'template',
] as const;

/** One of {@link FORMATS}. */
export type FormatName = (typeof FORMATS)[number];

/** Settings of a deployment that say what owners may have. They decide nothing of what is sent. */
export const OWNER_SETTINGS = ['maxExportersPerOwner', 'owners'] as const;

/** All other settings. */
export function ofSending<Settings extends object>(settings: Settings): Omit<Settings, (typeof OWNER_SETTINGS)[number]> {
    const ofOwners: readonly string[] = OWNER_SETTINGS;
    const others = Object.entries(settings).filter(([name]) => !ofOwners.includes(name));
    return Object.fromEntries(others) as Omit<Settings, (typeof OWNER_SETTINGS)[number]>;
}

/** The longest delay that an exporter's own schedule may have, in milliseconds. */
export const MAX_DELAY: number = 7 * 86_400_000;
