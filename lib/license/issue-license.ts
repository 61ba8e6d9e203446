import { generateKeyPairSync } from 'node:crypto';
import Joi from 'joi';
import { checked, nameSchema } from '../schema-validation.ts';
import { LICENSE_TYPE, type License, licenseKey } from './verify-license.ts';

/** Both in PEM form: the private key as PKCS #8, the public key as SPKI. */
export interface LicenseKeyPair {
    readonly privateKey: string;
    readonly publicKey: string;
}

const licenseSchema = Joi.object<License, true>({
    holder: nameSchema.trim().required(),
    notBefore: Joi.date().min(new Date(0)).required(),
    expires: Joi.date().greater(Joi.ref('notBefore')).required(),
}).required();

/** A new Ed25519 key pair to sign licences with. Keep the private key where no server of a customer sees it. */
export function newLicenseKeyPair(): LicenseKeyPair {
    return generateKeyPairSync('ed25519', {
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
        publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
}

/**
 * A signed licence: a compact JWS (EdDSA with Ed25519) with the claims `sub`, `nbf` and `exp`, one line of ASCII text.
 *
 * @param license Times are cut to whole seconds.
 * @param privateKey PKCS #8 PEM of an Ed25519 private key.
 * @throws ScanwireError `INVALID_INPUT` naming the field of the licence, or `privateKey`.
 */
export async function issueLicense(license: License, privateKey: string): Promise<string> {
    const { holder, notBefore, expires } = checked(licenseSchema, license, { subject: 'Licence' });
    const { CompactSign } = await import('jose');
    const claims = { sub: holder, nbf: toSeconds(notBefore), exp: toSeconds(expires) };
    return new CompactSign(new TextEncoder().encode(JSON.stringify(claims)))
        .setProtectedHeader({ alg: 'EdDSA', typ: LICENSE_TYPE })
        .sign(licenseKey('private', privateKey));
}

function toSeconds(date: Date): number {
    return Math.floor(date.getTime() / 1000);
}
