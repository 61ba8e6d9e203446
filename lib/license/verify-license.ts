import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import Joi from 'joi';
import { ScanwireError } from '../errors.ts';

/** What a genuine licence says. Times are UTC instants. */
export interface License {
    readonly holder: string;
    /** First instant of validity. */
    readonly notBefore: Date;
    /** First instant after validity. */
    readonly expires: Date;
}

/** The `typ` of the JWS header: a text signed with the same key for something else is no licence. */
export const LICENSE_TYPE = 'scanwire-license+jws';

/** Longer texts are refused unread. */
const MAX_LENGTH = 8192;
/** Last second that a Date can hold. */
const MAX_SECONDS = 8.64e12;

const seconds = (): Joi.NumberSchema => Joi.number().integer().min(0).max(MAX_SECONDS).required();

const claimsSchema = Joi.object<{ readonly sub: string; readonly nbf: number; readonly exp: number }, true>({
    sub: Joi.string()
        .max(255)
        .pattern(/^[^\p{Cc}\p{Cs}]*$/u)
        .required(),
    nbf: seconds(),
    exp: seconds(),
})
    .required()
    .unknown();

/**
 * The Ed25519 key in a PEM text, SPKI or PKCS #8; what is wrong with the text does not belong in an error.
 *
 * @throws ScanwireError `MISCONFIGURED` for a public key that is anything else, `INVALID_INPUT` for a private key.
 */
export function licenseKey(kind: 'public' | 'private', pem: string): KeyObject {
    let key: KeyObject | null = null;
    try {
        key = kind === 'private' ? createPrivateKey(pem) : isPrivate(pem) ? null : createPublicKey(pem);
    } catch {
        // Refused below.
    }

    if (key?.asymmetricKeyType !== 'ed25519') {
        const code = kind === 'public' ? 'MISCONFIGURED' : 'INVALID_INPUT';
        const field = `${kind}Key`;
        throw new ScanwireError(code, `Invalid ${field}: it must be an Ed25519 ${kind} key in PEM form`, { field });
    }

    return key;
}

/** Node makes the public key of a private one, which would lie where everybody may read. */
function isPrivate(pem: string): boolean {
    return pem.includes('PRIVATE KEY-----');
}

/** The licence in the text, or null when it was not signed with that key or does not have the form of a licence. */
export async function verifyLicense(text: string, publicKey: KeyObject): Promise<License | null> {
    const claims = await signedClaims(text.trim(), publicKey);
    const { value, error } = claimsSchema.validate(claims, { convert: false });
    if (error !== undefined) {
        return null;
    }

    return { holder: value.sub, notBefore: new Date(value.nbf * 1000), expires: new Date(value.exp * 1000) };
}

/** Why the licence does not hold at that instant; null when it does. */
export function licenseProblem(license: License, now: Date): string | null {
    if (now < license.notBefore) {
        return 'not valid yet';
    }

    return now < license.expires ? null : 'expired';
}

async function signedClaims(text: string, publicKey: KeyObject): Promise<unknown> {
    if (text.length > MAX_LENGTH) {
        return null;
    }

    // A host without a signed licence never needs it.
    const { compactVerify } = await import('jose');
    try {
        const { payload, protectedHeader } = await compactVerify(text, publicKey, { algorithms: ['EdDSA', 'Ed25519'] });
        return protectedHeader.typ === LICENSE_TYPE ? JSON.parse(new TextDecoder().decode(payload)) : null;
    } catch {
        return null;
    }
}

/** What a licence comes to at some instant, for showing. */
export interface LicenseStatus {
    /** Null, like the times, unless the signature is right: nothing in a forged licence is worth repeating. */
    readonly holder: string | null;
    readonly notBefore: Date | null;
    readonly expires: Date | null;
    readonly valid: boolean;
    /** Why it is not valid; null when it is. */
    readonly reason: string | null;
}

/**
 * What the licence comes to; hostile text is a licence that is not valid, never an error.
 *
 * @param text Null when there is none.
 */
export async function inspectLicense(text: string | null, publicKey: string, now: Date): Promise<LicenseStatus> {
    const key = licenseKey('public', publicKey);
    const license = text === null ? null : await verifyLicense(text, key);
    if (license === null) {
        const reason = text === null ? 'no licence is installed' : 'not a licence signed with the expected key';
        return { holder: null, notBefore: null, expires: null, valid: false, reason };
    }

    const reason = licenseProblem(license, now);
    return { ...license, valid: reason === null, reason };
}
