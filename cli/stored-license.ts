import { createPublicKey } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import { ScanwireError } from '../lib/errors.ts';
import { issueLicense, newLicenseKeyPair } from '../lib/license/issue-license.ts';
import { type LicenseSource, signedLicense } from '../lib/license/license-source.ts';
import { inspectLicense, type LicenseStatus, licenseKey } from '../lib/license/verify-license.ts';
import type { InstalledLicense } from '../plugins/admin-console/system.ts';
import { type DataFolder, readIfPresent, readOrCreate, replaceFile } from './data-folder.ts';
import { isoDay } from './output/table.ts';

/** The licence of a data folder. One that is installed takes effect within a second, the key that it is checked with at once. */
export interface StoredLicense extends InstalledLicense {
    readonly source: LicenseSource;
}

const HOLDER = 'This server';
const YEARS = 100;

/** Opens the licence; the first start issues its own, signed with a key of its own. */
export async function storedLicense(folder: DataFolder): Promise<StoredLicense> {
    if ((await readIfPresent(folder.licensePublicKey)) === null) {
        await issueOwn(folder, new Date());
    }

    let publicKey = (await readIfPresent(folder.licensePublicKey)) ?? '';
    let signed = signedLicense({ file: folder.license, publicKey });
    return {
        source: { valid: () => signed.valid() },
        inspect: () => signed.inspect(),

        async install(text) {
            const status = await inspectLicense(text, publicKey, new Date());
            if (!status.valid) {
                throw new ScanwireError('INVALID_INPUT', `The licence was not installed: ${status.reason}`, { field: 'license' });
            }

            await replaceFile(folder.license, `${text.trim()}\n`);
            return status;
        },

        async trust(text) {
            const trusted = publicPart(text);
            const next = signedLicense({ file: folder.license, publicKey: trusted });
            await replaceFile(folder.licensePublicKey, trusted);
            publicKey = trusted;
            signed = next;
            return await signed.inspect();
        },
    };
}

/** The public key of a PEM text in its one form: of a private key that was given by mistake nothing else is kept. */
function publicPart(text: string): string {
    try {
        return licenseKey('public', text).export({ type: 'spki', format: 'pem' }).toString();
    } catch (cause) {
        throw new ScanwireError('INVALID_INPUT', 'The key must be an Ed25519 public key in PEM form', { field: 'text', cause });
    }
}

/** The public key comes last: while it is missing, the next start does all of it again. */
async function issueOwn(folder: DataFolder, now: Date): Promise<void> {
    const privateKey = await readOrCreate(folder.licenseKey, () => newLicenseKeyPair().privateKey);
    const expires = new Date(now);
    expires.setUTCFullYear(now.getUTCFullYear() + YEARS);
    await readOrCreate(folder.license, async () => `${await issueLicense({ holder: HOLDER, notBefore: now, expires }, privateKey)}\n`);
    await readOrCreate(folder.licensePublicKey, () => createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString());
}

const DAY = 86_400_000;
const WARNED_DAYS = 30;

/** What an operator has to know of the licence; null while there is nothing. Clients are told nothing of it. */
export function licenseNotice({ valid, reason, notBefore, expires }: LicenseStatus, now: Date): string | null {
    if (!valid) {
        const since = expires !== null && now >= expires ? ` on ${isoDay(expires)}` : '';
        const until = notBefore !== null && now < notBefore ? ` before ${isoDay(notBefore)}` : '';
        return `The licence is not valid (${reason}${since}${until}), so the REST API refuses every request: scanwire license install FILE`;
    }

    const left = expires === null ? Number.POSITIVE_INFINITY : expires.getTime() - now.getTime();
    return left > WARNED_DAYS * DAY ? null : `The licence ends on ${isoDay(expires as Date)}: scanwire license install FILE`;
}

/** Longest time in which the same is not said again, in milliseconds. */
const REMIND_AFTER = DAY;

/** Looks at the licence and tells `say` what its operator has to know: at once when that changes, else once a day. */
export function licenseWatch(license: Pick<InstalledLicense, 'inspect'>, clock: Clock, say: (notice: string) => void) {
    let said: string | null = null;
    let saidAt = 0;

    /** What is to be known now. */
    return async (): Promise<string | null> => {
        const now = clock();
        const notice = licenseNotice(await license.inspect(), now);
        if (notice !== null && (notice !== said || now.getTime() - saidAt >= REMIND_AFTER)) {
            saidAt = now.getTime();
            say(notice);
        }

        said = notice;
        return notice;
    };
}
