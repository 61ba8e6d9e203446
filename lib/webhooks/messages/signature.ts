import { createHmac } from 'node:crypto';
import { ScanwireError } from '../../errors.ts';
import { SIGNATURE_FORMS, type SignatureForm } from '../setting-values.ts';
import type { HeaderPairs } from './message-headers.ts';
import { type Secrets, standardWebhooksKey } from './signing-secret.ts';

/** A message to sign, and with what. */
export interface Signing {
    /** In the order of preference: see {@link signatureHeaders}. Nothing goes out unsigned: none at all means `base64`. */
    readonly forms: readonly SignatureForm[];
    /** The current secret first, then those that are still valid after a rotation. */
    readonly secrets: Secrets;
    readonly vendor: Vendor;
    /** The exact bytes that are sent. */
    readonly body: Uint8Array;
    /** The message id, the same in every attempt. */
    readonly id: string;
    /** When this attempt is made. Receivers of Standard Webhooks refuse what is older than five minutes, so a retry is signed again. */
    readonly timestamp: Date;
}

/** The forms that sign nothing but the body. */
export type BodyForm = Exclude<SignatureForm, 'standard-webhooks'>;

/** How the signature is written in each form, and the end of its header's name where the form is not the first one. */
export const BODY_FORMS: Readonly<Record<BodyForm, { readonly suffix: string; readonly text: (digest: Buffer) => string }>> = {
    base64: { suffix: '-Base64', text: (digest) => digest.toString('base64') },
    hex: { suffix: '-Hex', text: (digest) => digest.toString('hex') },
    'sha256-hex': { suffix: '-Sha256', text: (digest) => `sha256=${digest.toString('hex')}` },
};

/**
 * The headers that prove who sent a message.
 *
 * - All but `standard-webhooks`: HMAC-SHA-256 over the body, keyed with the UTF-8 bytes of the current secret as it is shown. The first
 *   is the text of `X-<Vendor>-Signature`; each further one has a header of its own that ends in `-Base64`, `-Hex` or
 *   `-Sha256`. After a rotation they use the new secret only: one header holds one signature.
 * - `standard-webhooks`: `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature`, one `v1,` per valid secret, over
 *   `id.timestamp.body`. A receiver passes a `whsec_` secret to its library as it is, any other as
 *   `Buffer.from(secret).toString('base64')` (the `standardwebhooks` package: or as it is with `{ format: 'raw' }`, if ASCII).
 *
 * @throws ScanwireError `INVALID_INPUT` when what is stored is no list, or has an unknown form: the exporter is invalid then.
 */
export function signatureHeaders({ forms, secrets, vendor, body, id, timestamp }: Signing): HeaderPairs {
    if (!Array.isArray(forms) || !forms.every((form) => SIGNATURE_FORMS.includes(form))) {
        throw new ScanwireError('INVALID_INPUT', `Signatures must be a list of ${SIGNATURE_FORMS.join(', ')}`, { field: 'signatures' });
    }

    const chosen: readonly SignatureForm[] = forms.length === 0 ? ['base64'] : [...new Set(forms)];
    const bodyForms = chosen.filter((form): form is BodyForm => form !== 'standard-webhooks');
    const digest = bodyDigest(secrets[0], body);

    const headers = bodyForms.map((form, index): [string, string] => {
        const { suffix, text } = BODY_FORMS[form];
        return [`${vendor.headerPrefix}-Signature${index === 0 ? '' : suffix}`, text(digest)];
    });
    return chosen.includes('standard-webhooks') ? [...headers, ...standardHeaders(secrets, body, id, timestamp)] : headers;
}

function standardHeaders(secrets: readonly string[], body: Uint8Array, id: string, timestamp: Date): HeaderPairs {
    const seconds = Math.floor(timestamp.getTime() / 1000);
    const signatures = standardSignatures([...new Set(secrets)], { id, seconds: String(seconds), body });
    return [
        ['webhook-id', id],
        ['webhook-timestamp', String(seconds)],
        ['webhook-signature', signatures.join(' ')],
    ];
}

/** What the body forms write: HMAC-SHA-256 over the body, keyed with the UTF-8 bytes of the secret as it is shown. */
export function bodyDigest(secret: string, body: Uint8Array): Buffer {
    return hmac(Buffer.from(secret, 'utf8'), body);
}

/** What Standard Webhooks signs; `seconds` as it stands in `webhook-timestamp`. */
export interface StandardContent {
    readonly id: string;
    readonly seconds: string;
    readonly body: Uint8Array;
}

/** The signature of Standard Webhooks with each of the secrets, in their order. */
export function standardSignatures(secrets: readonly string[], { id, seconds, body }: StandardContent): readonly string[] {
    const signed = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body]);
    return secrets.map((secret) => `v1,${hmac(standardWebhooksKey(secret), signed).toString('base64')}`);
}

function hmac(key: Uint8Array, bytes: Uint8Array): Buffer {
    return createHmac('sha256', key).update(bytes).digest();
}

/** How messages name who sends them. */
export interface Vendor {
    /** For example `Acme`. */
    readonly name: string;
    /** Without the dash that follows, for example `X-Vendor`. */
    readonly headerPrefix: string;
    readonly userAgent: string;
}

/** What a vendor's name must be, behind its subject. */
export const VENDOR_RULE = 'must be 1 to 40 letters and digits, with single dashes between them';

/** Whether the name follows {@link VENDOR_RULE}, so that it can stand in the name of a header. */
export function isVendorName(name: string): boolean {
    return name.length <= 40 && /^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$/.test(name);
}

/**
 * Both names from the vendor's own: `Acme` gives the header prefix `X-Acme` and the user agent `Acme Webhook Data Exporter`.
 *
 * @throws ScanwireError `MISCONFIGURED` when the name cannot stand in a header name.
 */
export function vendorNamed(name: string, subject = 'webhooks options'): Vendor {
    if (!isVendorName(name)) {
        throw new ScanwireError('MISCONFIGURED', `${subject}: vendor ${VENDOR_RULE}`, { field: 'vendor' });
    }

    return { name, headerPrefix: `X-${name}`, userAgent: `${name} Webhook Data Exporter` };
}
