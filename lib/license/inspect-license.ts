import { licenseProblem, licensePublicKey, verifyLicense } from './verify-license.ts';

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
 * What the licence comes to; hostile text is an answer, never an error.
 *
 * @param text Null when there is none.
 */
export async function inspectLicense(text: string | null, publicKey: string, now: Date): Promise<LicenseStatus> {
    const key = licensePublicKey(publicKey);
    const license = text === null ? null : await verifyLicense(text, key);
    if (license === null) {
        const reason = text === null ? 'no licence is installed' : 'not a licence signed with the expected key';
        return { holder: null, notBefore: null, expires: null, valid: false, reason };
    }

    const reason = licenseProblem(license, now);
    return { ...license, valid: reason === null, reason };
}
