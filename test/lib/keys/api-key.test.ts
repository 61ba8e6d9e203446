import { createHash, randomBytes } from 'node:crypto';
import t from 'tap';
import { apiKeyDigest, apiKeyStart, looksLikeApiKey, looksLikeForeignKey, newApiKey } from '../../../lib/keys/api-key.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

t.test('makes keys of one fixed form', async (t) => {
    for (const bytes of [Buffer.alloc(32), Buffer.alloc(32, 255), randomBytes(32)]) {
        const key = newApiKey(() => bytes);
        t.match(key, /^scw_[0-9A-Za-z]{49}$/);
        t.ok(looksLikeApiKey(key));
    }
});

t.test('keeps all 256 random bits', async (t) => {
    const bytes = randomBytes(32);
    let value = 0n;
    for (const character of newApiKey(() => bytes).slice(4, 47)) {
        value = value * 62n + BigInt(ALPHABET.indexOf(character));
    }

    t.equal(value.toString(16).padStart(64, '0'), bytes.toString('hex'));
});

t.test('makes another key each time', async (t) => {
    t.not(newApiKey(), newApiKey());
});

t.test('tells a key with a wrong character from a right one', async (t) => {
    const key = newApiKey();
    for (let index = 0; index < key.length; index += 1) {
        const character = key[index] === 'x' ? 'y' : 'x';
        t.notOk(looksLikeApiKey(key.slice(0, index) + character + key.slice(index + 1)), `character ${index}`);
    }
    for (const wrong of ['', key.slice(1), `${key}0`, `${key}\n`, ` ${key}`, `${key}, ${key}`, key.toUpperCase()]) {
        t.notOk(looksLikeApiKey(wrong));
    }
});

t.test('takes visible ASCII for a foreign key and nothing else', async (t) => {
    for (const key of ['a', 'Zm9v+/=', '~'.repeat(512)]) {
        t.ok(looksLikeForeignKey(key), key);
    }
    for (const key of ['', 'a b', 'a, b', 'a\n', 'ä', '\u0000', '~'.repeat(513)]) {
        t.notOk(looksLikeForeignKey(key), JSON.stringify(key));
    }
});

t.test('digests and abbreviates a key', async (t) => {
    t.equal(apiKeyDigest('abc'), createHash('sha256').update('abc').digest('hex'));
    t.equal(apiKeyStart('scw_abcdefgh'), 'scw_abcd');
});
