import { randomBytes } from 'node:crypto';
import { ScanwireError } from '../scanwire-error.ts';

const PREFIX = 'whsec_';
const MAX_LENGTH = 512;
const MIN_STANDARD_BYTES = 24;

/**
 * A new exporter secret: `whsec_` and 32 random bytes in base64. The plain signature forms use this text as it stands, Standard
 * Webhooks the bytes behind the prefix.
 *
 * @param random Gives so many random bytes.
 */
export function generateSecret(random: (size: number) => Uint8Array = randomBytes): string {
    return `${PREFIX}${Buffer.from(random(32)).toString('base64')}`;
}

/**
 * The secret a user gave, as it is: receivers that exist already may hold it, so its strength is not judged. It has 1 to 512
 * visible characters, with spaces inside at most; one that starts with `whsec_` goes on with padded base64 of at least 24 bytes,
 * for else two receivers could read it in two ways.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `secret`, never with the secret.
 */
export function checkSecret(secret: string): string {
    const wrong = wrongSecret(secret);
    if (wrong !== null) {
        throw new ScanwireError('INVALID_INPUT', `secret ${wrong}`, { field: 'secret' });
    }

    return secret;
}

/**
 * The key of a Standard Webhooks signature: the bytes behind `whsec_`, or the UTF-8 bytes of any other secret. For such a secret
 * a receiver's library is given the base64 of those bytes.
 */
export function standardWebhooksKey(secret: string): Buffer {
    return standardBytes(secret) ?? Buffer.from(secret, 'utf8');
}

function wrongSecret(secret: unknown): string | null {
    if (typeof secret !== 'string' || secret === '') {
        return 'must not be empty';
    }

    if ([...secret].length > MAX_LENGTH) {
        return `must be at most ${MAX_LENGTH} characters`;
    }

    // controls, format characters, lone surrogates, private use, line and paragraph separators, blanks other than the space
    if (/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(secret) || secret !== secret.trim()) {
        return 'must be visible characters, with no blank at its ends';
    }

    return secret.startsWith(PREFIX) && (standardBytes(secret)?.length ?? 0) < MIN_STANDARD_BYTES
        ? `starts with ${PREFIX} and must go on with base64 of at least ${MIN_STANDARD_BYTES} bytes`
        : null;
}

function standardBytes(secret: string): Buffer | null {
    if (!secret.startsWith(PREFIX)) {
        return null;
    }

    const text = secret.slice(PREFIX.length);
    const bytes = Buffer.from(text, 'base64');
    return bytes.toString('base64') === text ? bytes : null;
}
