/*
 * Settings that are a choice from a list. Types, schemas and flags of the command line derive from these lists; they stand apart
 * from the schemas because the command line does not load Joi.
 */

/**
 * Which investigations an exporter receives. `investigation` and `investigation_legacy_and_library` take every one,
 * `investigation_legacy` all but those that a rule of the detection rules library raised.
 */
export const EXPORT_TYPES = ['investigation', 'investigation_legacy', 'investigation_legacy_and_library'] as const;

/** One of {@link EXPORT_TYPES}. */
export type ExportType = (typeof EXPORT_TYPES)[number];

/** The rule sets whose rules raise investigations. */
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
