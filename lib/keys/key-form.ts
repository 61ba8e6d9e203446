import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Stands before every key, so that secret scanners find one that leaked. */
export const API_KEY_PREFIX = 'scw_';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BASE = BigInt(ALPHABET.length);
const SECRET_BYTES = 32;
/** 62^43 is the first power of 62 above 2^256. */
const SECRET_CHARACTERS = 43;
const CHECKSUM_CHARACTERS = 6;
const START_CHARACTERS = API_KEY_PREFIX.length + 4;

const FORM = new RegExp(`^${API_KEY_PREFIX}[0-9A-Za-z]{${SECRET_CHARACTERS + CHECKSUM_CHARACTERS}}$`);
const FOREIGN_FORM = /^[\x21-\x7e]{1,512}$/;

/**
 * A new key: `scw_`, 256 random bits as 43 base62 characters, and the CRC32 of both as 6.
 *
 * @param random Returns this many random bytes.
 */
export function newApiKey(random: (size: number) => Uint8Array = randomBytes): string {
    const secret = BigInt(`0x${Buffer.from(random(SECRET_BYTES)).toString('hex')}`);
    const body = API_KEY_PREFIX + base62(secret, SECRET_CHARACTERS);
    return body + checksum(body);
}

/** Whether the text can be a key of ours at all; tells garbage from keys before any store is asked. */
export function looksLikeApiKey(text: string): boolean {
    return FORM.test(text) && text.endsWith(checksum(text.slice(0, -CHECKSUM_CHARACTERS)));
}

/** Whether the text can be a key that another system issued: 1 to 512 visible ASCII characters. */
export function looksLikeForeignKey(text: string): boolean {
    return FOREIGN_FORM.test(text);
}

/** SHA-256 in 64 lower-case hex digits. A key has 256 random bits, so a slow hash would add nothing. */
export function apiKeyDigest(key: string): string {
    return hash('sha256', key, 'hex');
}

/** The first characters of a key, enough to recognise it in a table and useless to guess the rest. */
export function apiKeyStart(key: string): string {
    return key.slice(0, START_CHARACTERS);
}

/** Not by {@link base62}: of a key that comes with a request this is half of what its check takes. */
function checksum(body: string): string {
    let text = '';
    for (let rest = crc32(body); text.length < CHECKSUM_CHARACTERS; rest = Math.floor(rest / ALPHABET.length)) {
        text = ALPHABET.charAt(rest % ALPHABET.length) + text;
    }

    return text;
}

function base62(value: bigint, width: number): string {
    let text = '';
    for (let rest = value; text.length < width; rest /= BASE) {
        text = ALPHABET.charAt(Number(rest % BASE)) + text;
    }

    return text;
}
