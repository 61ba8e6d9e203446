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
