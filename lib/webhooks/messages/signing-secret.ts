import { randomBytes } from 'node:crypto';
import { ScanwireError } from '../../errors.ts';
import type { KeyRing, SealedText } from '../../keys/key-ring.ts';
import type { StoredExporter } from '../exporters/exporter.ts';

/** The secrets that sign a message, the current one first. */
export type Secrets = readonly [current: string, ...previous: string[]];

const PREFIX = 'whsec_';
const MAX_LENGTH = 512;
const MIN_STANDARD_BYTES = 24;

/**
 * A new exporter secret: `whsec_` and 32 random bytes in base64. The forms that sign the body alone use this text as it stands, Standard
 * Webhooks the bytes behind the prefix.
 *
 * @param random Returns this many random bytes.
 */
export function generateSecret(random: (size: number) => Uint8Array = randomBytes): string {
    return `${PREFIX}${Buffer.from(random(32)).toString('base64')}`;
}

/**
 * The user's own secret, as it is: receivers that exist already may hold it, so its strength is not judged. It has 1 to 512
 * visible characters, with spaces inside at most; one that starts with `whsec_` goes on with padded base64 of at least 24 bytes,
 * since otherwise two receivers could read it in two ways.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `secret`, never with the secret.
 */
export function checkSecret(secret: string): string {
    const wrong = wrongSecret(secret);
    if (wrong !== null) {
        throw new ScanwireError('INVALID_INPUT', `Secret ${wrong}`, { field: 'secret' });
    }

    return secret;
}

/**
 * The key of a Standard Webhooks signature: the bytes behind `whsec_`, or the UTF-8 bytes of any other secret. For such a secret
 * a receiver passes the base64 of those bytes to its library.
 */
export function standardWebhooksKey(secret: string): Buffer {
    return standardBytes(secret) ?? Buffer.from(secret, 'utf8');
}

/** What is wrong with a secret, to be said behind its name; null when nothing is. See {@link checkSecret}. */
export function wrongSecret(secret: unknown): string | null {
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
        ? `must go on with base64 of at least ${MIN_STANDARD_BYTES} bytes when it starts with ${PREFIX}`
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

/** The secret as it is stored for an exporter. */
export function sealSecret(keyRing: KeyRing, exporterId: string, secret: string): string {
    return keyRing.seal(secret, secretContext(exporterId));
}

/** What is stored of the secrets of an exporter. */
type StoredSecrets = Pick<StoredExporter, 'id' | 'sealedSecret' | 'previousSecrets'>;

/** The sealed secrets that sign now: the current one first, then those before it that have not ended. */
export function sealedSecrets(exporter: StoredSecrets, now: Date): readonly [current: SealedText, ...previous: SealedText[]] {
    const context = secretContext(exporter.id);
    const previous = exporter.previousSecrets.filter(({ until }) => until > now);
    return [{ sealed: exporter.sealedSecret, context }, ...previous.map(({ sealed }) => ({ sealed, context }))];
}

/** The secrets that sign now, the current one first. @throws ScanwireError `UNSEALABLE`. */
export function unsealSecrets(exporter: StoredSecrets, keyRing: KeyRing, now: Date): Secrets {
    const [current, ...previous] = sealedSecrets(exporter, now);
    const open = ({ sealed, context }: SealedText): string => keyRing.open(sealed, context);
    return [open(current), ...previous.map(open)];
}

/** What an exporter's secrets become when the current one changes. */
export type SecretChange = Pick<StoredExporter, 'sealedSecret' | 'previousSecrets'>;

/** How long a secret goes on signing after it was changed unless something else is said, in milliseconds. */
const OVERLAP = 86_400_000;

/** Maximum number of previous secrets: each adds a signature to every message, and receivers limit the length of a header. */
const MAX_PREVIOUS = 20;

/** Maximum number of secrets that sign a message, and so of its signatures: the current one and the previous ones. Receivers must take as many. */
export const MAX_SECRETS: number = 1 + MAX_PREVIOUS;

/**
 * Makes `secret` the current one and the one before it a previous one. Every previous secret keeps its own end, unless it is the one that
 * is current again. Null when `secret` is the current one already.
 *
 * @param overlap How long the one before it goes on signing, in milliseconds; 0 for not at all.
 * @throws ScanwireError `CONFLICT` when too many previous ones are still valid, `UNSEALABLE`.
 */
export function changeSecret(
    exporter: StoredSecrets,
    secret: string,
    keyRing: KeyRing,
    now: Date,
    overlap: number = OVERLAP,
): SecretChange | null {
    const { id, sealedSecret } = exporter;
    const isSecret = (sealed: string): boolean => keyRing.open(sealed, secretContext(id)) === secret;
    if (isSecret(sealedSecret)) {
        return null;
    }

    const valid = exporter.previousSecrets.filter(({ sealed, until }) => until > now && !isSecret(sealed));
    const previous = overlap === 0 ? [] : [{ sealed: sealedSecret, until: new Date(now.getTime() + overlap) }];
    if (previous.length + valid.length > MAX_PREVIOUS) {
        throw new ScanwireError('CONFLICT', `Cannot change a secret while ${MAX_PREVIOUS} before it are still valid`, { field: 'secret' });
    }

    return { sealedSecret: sealSecret(keyRing, id, secret), previousSecrets: [...previous, ...valid] };
}

function secretContext(exporterId: string): string {
    return `exporter:${exporterId}`;
}
