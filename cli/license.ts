import { createPublicKey } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { ScanwireError } from '../lib/errors.ts';
import { issueLicense, newLicenseKeyPair } from '../lib/license/issue-license.ts';
import { signedLicense } from '../lib/license/signed-license.ts';
import { inspectLicense, type LicenseSource } from '../lib/license/verify-license.ts';
import type { InstalledLicense } from '../plugins/admin-console/handlers.ts';
import { type DataFolder, readIfPresent, readOrCreate, replaceFile } from './data-folder.ts';

/** The licence of the data folder; one that is installed takes effect within a second. */
export interface StoredLicense extends InstalledLicense {
    readonly source: LicenseSource;
}

const HOLDER = 'This server';
const YEARS = 100;

/** Opens the licence; the first start issues its own, signed with a key of its own. */
export async function storedLicense(folder: DataFolder, clock: Clock): Promise<StoredLicense> {
    if ((await readIfPresent(folder.licensePublicKey)) === null) {
        await issueOwn(folder, clock());
    }

    const publicKey = (await readIfPresent(folder.licensePublicKey)) ?? '';
    const source = signedLicense({ file: folder.license, publicKey, clock });
    return {
        source,
        inspect: () => source.inspect(),
        async install(text) {
            const status = await inspectLicense(text, publicKey, clock());
            if (!status.valid) {
                throw new ScanwireError('INVALID_INPUT', `The licence was not installed: ${status.reason}`, { field: 'license' });
            }

            await replaceFile(folder.license, `${text.trim()}\n`);
            return status;
        },
    };
}

/** The public key comes last: while it is missing, the next start does all of it again. */
async function issueOwn(folder: DataFolder, now: Date): Promise<void> {
    const privateKey = await readOrCreate(folder.licenseKey, () => newLicenseKeyPair().privateKey);
    const expires = new Date(now);
    expires.setUTCFullYear(now.getUTCFullYear() + YEARS);
    await readOrCreate(folder.license, async () => `${await issueLicense({ holder: HOLDER, notBefore: now, expires }, privateKey)}\n`);
    await readOrCreate(folder.licensePublicKey, () => createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString());
}
