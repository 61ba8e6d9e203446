import { createHmac } from 'node:crypto';
import type { HeaderPairs, SignatureForm } from './exporter.ts';
import { standardWebhooksKey } from './secret.ts';
import type { Vendor } from './vendor.ts';

export interface Signing {
    /** In the order of preference: see {@link signatureHeaders}. Without any, `base64` is taken, for nothing goes out unsigned. */
    readonly forms: readonly SignatureForm[];
    /** The current secret first, then those that are still valid after a rotation. */
    readonly secrets: readonly [current: string, ...previous: string[]];
    readonly vendor: Vendor;
    /** The exact bytes that are sent. */
    readonly body: Uint8Array;
    /** The message id, the same on every try. */
    readonly id: string;
    /** When this attempt is made. Receivers of Standard Webhooks refuse what is older than five minutes, so a retry is signed anew. */
    readonly timestamp: Date;
}

type PlainForm = Exclude<SignatureForm, 'standard-webhooks'>;

const PLAIN: Readonly<Record<PlainForm, { readonly suffix: string; readonly text: (digest: Buffer) => string }>> = {
    base64: { suffix: '-Base64', text: (digest) => digest.toString('base64') },
    hex: { suffix: '-Hex', text: (digest) => digest.toString('hex') },
    'sha256-hex': { suffix: '-Sha256', text: (digest) => `sha256=${digest.toString('hex')}` },
};

/**
 * The headers that prove who sent a message.
 *
 * - Plain forms: HMAC-SHA-256 over the body, keyed with the UTF-8 bytes of the current secret as it is shown. The first plain
 *   form is the text of `X-<Vendor>-Signature`; each further one has a header of its own that ends in `-Base64`, `-Hex` or
 *   `-Sha256`. After a rotation they use the new secret only: one header holds one signature.
 * - `standard-webhooks`: `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature`, one `v1,` per valid secret, over
 *   `id.timestamp.body`. A receiver passes a `whsec_` secret to its library as it is, any other as
 *   `Buffer.from(secret).toString('base64')` (the `standardwebhooks` package: or as it is with `{ format: 'raw' }`, if ASCII).
 */
export function signatureHeaders({ forms, secrets, vendor, body, id, timestamp }: Signing): HeaderPairs {
    const chosen: readonly SignatureForm[] = forms.length === 0 ? ['base64'] : [...new Set(forms)];
    const plain = chosen.filter((form): form is PlainForm => form !== 'standard-webhooks');
    const digest = hmac(Buffer.from(secrets[0], 'utf8'), body);

    const headers = plain.map((form, index): [string, string] => {
        const { suffix, text } = PLAIN[form];
        return [`${vendor.headerPrefix}-Signature${index === 0 ? '' : suffix}`, text(digest)];
    });
    return chosen.includes('standard-webhooks') ? [...headers, ...standardHeaders(secrets, body, id, timestamp)] : headers;
}

function standardHeaders(secrets: readonly string[], body: Uint8Array, id: string, timestamp: Date): HeaderPairs {
    const seconds = Math.floor(timestamp.getTime() / 1000);
    const signed = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body]);
    const signatures = [...new Set(secrets)].map((secret) => `v1,${hmac(standardWebhooksKey(secret), signed).toString('base64')}`);
    return [
        ['webhook-id', id],
        ['webhook-timestamp', String(seconds)],
        ['webhook-signature', signatures.join(' ')],
    ];
}

function hmac(key: Uint8Array, bytes: Uint8Array): Buffer {
    return createHmac('sha256', key).update(bytes).digest();
}
