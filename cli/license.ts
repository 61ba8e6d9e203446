import { createPublicKey } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { ScanwireError } from '../lib/errors.ts';
import { issueLicense, newLicenseKeyPair } from '../lib/license/issue-license.ts';
import { signedLicense } from '../lib/license/signed-license.ts';
import { inspectLicense, type LicenseSource, type LicenseStatus } from '../lib/license/verify-license.ts';
import { type DataFolder, keptOrMade, readKept, replaceKept } from './data-folder.ts';

/** The licence of the data folder. */
export interface StoredLicense {
    readonly source: LicenseSource;
    inspect(): Promise<LicenseStatus>;
    /** Takes effect within a second. @throws ScanwireError `INVALID_INPUT` when it is not valid now; the old one stays. */
    install(text: string): Promise<LicenseStatus>;
}

const HOLDER = 'This server';
const YEARS = 100;

/** Opens the licence; the first start issues its own, signed with a key of its own. */
export async function storedLicense(folder: DataFolder, clock: Clock): Promise<StoredLicense> {
    if ((await readKept(folder.licensePublicKey)) === null) {
        await issueOwn(folder, clock());
    }

    const publicKey = (await readKept(folder.licensePublicKey)) ?? '';
    const source = signedLicense({ file: folder.license, publicKey, clock });
    return {
        source,
        inspect: () => source.inspect(),
        async install(text) {
            if (typeof text !== 'string') {
                throw new ScanwireError('INVALID_INPUT', 'text must be a string', { field: 'text' });
            }

            const status = await inspectLicense(text, publicKey, clock());
            if (!status.valid) {
                throw new ScanwireError('INVALID_INPUT', `The licence was not installed: ${status.reason}`, { field: 'license' });
            }

            await replaceKept(folder.license, `${text.trim()}\n`);
            return status;
        },
    };
}

/** The public key comes last: while it is missing, the next start does all of it again. */
async function issueOwn(folder: DataFolder, now: Date): Promise<void> {
    const privateKey = await keptOrMade(folder.licenseKey, () => newLicenseKeyPair().privateKey);
    const expires = new Date(now);
    expires.setUTCFullYear(now.getUTCFullYear() + YEARS);
    await keptOrMade(folder.license, async () => `${await issueLicense({ holder: HOLDER, notBefore: now, expires }, privateKey)}\n`);
    await keptOrMade(folder.licensePublicKey, () => createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString());
}
