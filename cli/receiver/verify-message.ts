import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** What a message turned out to be. */
export interface Verification {
    readonly ok: boolean;
    /** The signature forms that were found right. */
    readonly forms: readonly string[];
    /** Why it is not verified, null when it is. */
    readonly reason: string | null;
}

/** How far the clocks of sender and receiver may differ, in seconds; Standard Webhooks asks for five minutes. */
const TOLERANCE = 300;

/**
 * Verifies a message as any receiver would, from its bytes, its headers and the secret alone; on purpose nothing here is shared
 * with the code that signs. Every signature that the message carries must be right, and there must be one.
 */
export function verifyMessage(headers: IncomingHttpHeaders, body: Uint8Array, secret: string, now: Date): Verification {
    const signatures = Object.entries(headers).filter(([name]) => /^x-[a-z0-9-]+-signature(-base64|-hex|-sha256)?$/.test(name));
    const forms: string[] = [];
    for (const [name, value] of signatures) {
        const form = plainForm(String(value), body, secret);
        if (form === null) {
            return wrong(`${name} does not fit the body and the secret`);
        }

        forms.push(form);
    }

    if (headers['webhook-signature'] !== undefined) {
        const reason = standardProblem(headers, body, secret, now);
        if (reason !== null) {
            return wrong(reason);
        }

        forms.push('standard-webhooks');
    }

    return forms.length === 0 ? wrong('there is no signature') : { ok: true, forms, reason: null };
}

function wrong(reason: string): Verification {
    return { ok: false, forms: [], reason };
}

/** The form in which the HMAC of the body is written, null when it is not its HMAC. */
function plainForm(text: string, body: Uint8Array, secret: string): string | null {
    const digest = createHmac('sha256', Buffer.from(secret, 'utf8')).update(body).digest();
    const expected = {
        base64: digest.toString('base64'),
        hex: digest.toString('hex'),
        'sha256-hex': `sha256=${digest.toString('hex')}`,
    };
    return Object.entries(expected).find(([, signature]) => equal(signature, text))?.[0] ?? null;
}

function standardProblem(headers: IncomingHttpHeaders, body: Uint8Array, secret: string, now: Date): string | null {
    const id = String(headers['webhook-id'] ?? '');
    const timestamp = String(headers['webhook-timestamp'] ?? '');
    if (!/^\d+$/.test(timestamp) || Math.abs(now.getTime() / 1000 - Number(timestamp)) > TOLERANCE) {
        return 'webhook-timestamp is missing or more than five minutes off';
    }

    const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : Buffer.from(secret, 'utf8');
    const expected = `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
    const given = String(headers['webhook-signature']).split(' ');
    return given.some((signature) => equal(signature, expected)) ? null : 'webhook-signature does not fit the body and the secret';
}

function equal(one: string, other: string): boolean {
    const [a, b] = [Buffer.from(one), Buffer.from(other)];
    return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
