import { readFile, stat } from 'node:fs/promises';
import Joi from 'joi';
import { type Clock, systemClock } from '../clock.ts';
import { checked } from '../schema-validation.ts';
import { inspectLicense, type License, type LicenseStatus, licenseKey, licenseProblem, verifyLicense } from './verify-license.ts';

/** Knows whether the server's licence is valid now. Asked on every REST request, so it must be cheap. */
export interface LicenseSource {
    valid(): boolean | Promise<boolean>;
}

/** The source for hosts that sell no licence: always valid. */
export function alwaysLicensed(): LicenseSource {
    return { valid: () => true };
}

/** Where the licence is, and whose signature counts. */
export interface SignedLicenseOptions {
    /** Reads the text of the licence, null when there is none. Either this or `file`. */
    readonly read?: (() => Promise<string | null>) | undefined;
    /** Path of the licence; read again when its change time or size differs. A missing file is no licence. */
    readonly file?: string | undefined;
    /** SPKI PEM of the Ed25519 public key that licences are signed for. */
    readonly publicKey: string;
    readonly clock?: Clock | undefined;
    /** How long an installed or removed licence may stay unnoticed, in milliseconds. Default 1000. */
    readonly checkEveryMs?: number | undefined;
}

/** A licence source that can tell what its licence says. */
export interface SignedLicense extends LicenseSource {
    /** The licence as it is now, read again; rejects only when it cannot be read. */
    inspect(): Promise<LicenseStatus>;
}

/** Nothing larger can be a licence; it counts as a text that is none. */
const MAX_FILE_BYTES = 65_536;

const optionsSchema = Joi.object<SignedLicenseOptions & { readonly checkEveryMs: number }, true>({
    read: Joi.function(),
    file: Joi.string(),
    publicKey: Joi.string().required(),
    clock: Joi.function(),
    checkEveryMs: Joi.number().integer().min(0).max(86_400_000).default(1000),
})
    .xor('read', 'file')
    .required();

/**
 * A licence signed with Ed25519, checked offline. Its signature is verified only when the text has changed and its text is
 * looked at once in `checkEveryMs`; in between, a call costs two comparisons of dates.
 *
 * `valid()` rejects when the licence cannot be read, and tries again at the next call; text that is no licence is just not valid.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot work.
 */
export function signedLicense(options: SignedLicenseOptions): SignedLicense {
    const settings = checked(optionsSchema, options, { subject: 'signedLicense options', code: 'MISCONFIGURED' });
    const { publicKey, clock = systemClock, checkEveryMs, ...source } = settings;
    const key = licenseKey('public', publicKey);
    const read = source.read ?? fileReader(source.file ?? '');

    let text: string | null = null;
    let license: License | null = null;
    let readAt = Number.NEGATIVE_INFINITY;
    let refreshing: Promise<void> | null = null;

    async function refresh(): Promise<void> {
        const now = clock().getTime();
        const newText = await read();
        if (newText !== text) {
            license = newText === null ? null : await verifyLicense(newText, key);
            text = newText;
        }

        readAt = now;
    }

    function isValid(now: Date): boolean {
        return license !== null && licenseProblem(license, now) === null;
    }

    return {
        valid() {
            const now = clock();
            const age = now.getTime() - readAt;
            if (age >= 0 && age < checkEveryMs) {
                return isValid(now);
            }

            refreshing ??= refresh().finally(() => {
                refreshing = null;
            });
            return refreshing.then(() => isValid(now));
        },

        async inspect() {
            return inspectLicense(await read(), publicKey, clock());
        },
    };
}

/** Reads the file only when it has changed since the last time. */
function fileReader(file: string): () => Promise<string | null> {
    let seen = '';
    let text: string | null = null;

    return async () => {
        try {
            const { mtimeMs, ctimeMs, size, ino } = await stat(file);
            const version = `${mtimeMs} ${ctimeMs} ${size} ${ino}`;
            if (version !== seen) {
                text = size > MAX_FILE_BYTES ? '' : await readFile(file, 'utf8');
                seen = version;
            }
        } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
                throw error;
            }

            text = null;
            seen = '';
        }

        return text;
    };
}
