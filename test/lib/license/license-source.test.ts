import { rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CompactSign, SignJWT } from 'jose';
import t from 'tap';
import {
    alwaysLicensed,
    inspectLicense,
    issueLicense,
    type License,
    newLicenseKeyPair,
    type SignedLicenseOptions,
    signedLicense,
} from '../../../lib/license/index.ts';

const pair = newLicenseKeyPair();
const notBefore = new Date('2026-01-01T00:00:00Z');
const expires = new Date('2027-01-01T00:00:00Z');
const now = new Date('2026-11-21T09:30:00Z');
const license: License = { holder: 'Köln Lab 🧪', notBefore, expires };

const source = (options: Partial<SignedLicenseOptions>) => signedLicense({ publicKey: pair.publicKey, clock: () => now, ...options });

t.test('is always valid for hosts that sell no licence', async (t) => {
    t.equal(alwaysLicensed().valid(), true);
});

t.test('is valid from its first instant to its last', async (t) => {
    const text = await issueLicense(license, pair.privateKey);
    let at = now;
    const { valid, inspect } = source({ read: async () => text, clock: () => at });
    const cases: [Date, boolean, string | null][] = [
        [new Date(notBefore.getTime() - 1), false, 'not valid yet'],
        [notBefore, true, null],
        [new Date(expires.getTime() - 1), true, null],
        [expires, false, 'expired'],
    ];
    for (const [instant, expected, reason] of cases) {
        at = instant;
        t.equal(await valid(), expected);
        t.strictSame(await inspect(), { ...license, valid: expected, reason });
    }
});

t.test('is one line of text that may have line breaks around it', async (t) => {
    const text = await issueLicense(license, pair.privateKey);

    t.match(text, /^[\w-]+\.[\w-]+\.[\w-]+$/);
    t.equal(await source({ read: async () => `\n${text}\r\n` }).valid(), true);
});

t.test('is not valid when there is none, and takes hostile text for none', async (t) => {
    const text = await issueLicense(license, pair.privateKey);
    const [header = '', payload = '', signature = ''] = text.split('.');
    const other = newLicenseKeyPair();
    const forged = Buffer.from(JSON.stringify({ sub: 'me', nbf: 0, exp: 9e9 })).toString('base64url');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'scanwire-license+jws' })).toString('base64url');
    const hmac = await new SignJWT({ sub: 'me', nbf: 0, exp: 9e9 })
        .setProtectedHeader({ alg: 'HS256', typ: 'scanwire-license+jws' })
        .sign(new TextEncoder().encode(pair.publicKey));
    const texts = [
        '',
        ' ',
        'garbage',
        '..',
        'a.b.c',
        '\u0000',
        '🧪.🧪.🧪',
        'x'.repeat(1_000_000),
        `${'A'.repeat(9000)}.${payload}.${signature}`,
        `${header}.${forged}.${signature}`,
        `${none}.${payload}.`,
        `${header}.${payload}.`,
        hmac,
        await issueLicense(license, other.privateKey),
        '{"payload":"","signatures":[]}',
    ];
    for (const hostile of texts) {
        t.equal(await source({ read: async () => hostile }).valid(), false, hostile.slice(0, 30));
        t.match(await inspectLicense(hostile, pair.publicKey, now), { holder: null, valid: false, reason: /not a licence/ });
    }
    t.equal(await source({ read: async () => null }).valid(), false);
    t.match(await inspectLicense(null, pair.publicKey, now), { valid: false, reason: 'no licence is installed' });
});

t.test('takes a signed text with other claims or of another type for none', async (t) => {
    const { createPrivateKey } = await import('node:crypto');
    const sign = (payload: string, typ: string) =>
        new CompactSign(new TextEncoder().encode(payload))
            .setProtectedHeader({ alg: 'EdDSA', typ })
            .sign(createPrivateKey(pair.privateKey));
    const type = 'scanwire-license+jws';
    const good = { sub: 'me', nbf: 0, exp: 9e9 };

    t.equal(await source({ read: async () => sign(JSON.stringify(good), type) }).valid(), true);
    t.equal(await source({ read: async () => sign(JSON.stringify(good), 'JWT') }).valid(), false);
    const claims = [
        null,
        [],
        7,
        'x',
        {},
        { ...good, exp: undefined },
        { ...good, exp: 1e300 },
        { ...good, nbf: '0' },
        { ...good, nbf: -1 },
    ];
    for (const wrong of [...claims, { ...good, sub: 7 }, { ...good, sub: 'a\u001bb' }]) {
        t.equal(await source({ read: async () => sign(JSON.stringify(wrong), type) }).valid(), false, JSON.stringify(wrong));
    }
    t.equal(await source({ read: async () => sign('{', type) }).valid(), false);
});

t.test('reads a licence at most once in the interval and notices another one', async (t) => {
    const first = await issueLicense(license, pair.privateKey);
    let text: string | null = null;
    let reads = 0;
    let at = now.getTime();
    const { valid } = source({
        clock: () => new Date(at),
        checkEveryMs: 1000,
        async read() {
            reads += 1;
            return text;
        },
    });

    t.strictSame(await Promise.all([valid(), valid(), valid()]), [false, false, false]);
    text = first;
    at += 999;
    t.equal(await valid(), false);
    t.equal(reads, 1);
    at += 1;
    t.equal(await valid(), true);
    t.equal(reads, 2);
    text = null;
    at -= 100_000;
    t.equal(await valid(), false, 'a clock that was set back hides nothing');
    t.equal(reads, 3);
});

t.test('rejects while the licence cannot be read and recovers', async (t) => {
    const text = await issueLicense(license, pair.privateKey);
    let broken = true;
    const { valid } = source({ read: () => (broken ? Promise.reject(new Error('no disk')) : Promise.resolve(text)) });

    await t.rejects(Promise.resolve(valid()), { message: 'no disk' });
    broken = false;
    t.equal(await valid(), true);
});

t.test('follows a file that is installed, replaced and removed', async (t) => {
    const file = join(t.testdir(), 'licence');
    const { valid } = source({ file, checkEveryMs: 0 });
    t.equal(await valid(), false);

    await writeFile(file, await issueLicense(license, pair.privateKey));
    t.equal(await valid(), true);
    await writeFile(file, await issueLicense({ ...license, expires: now }, pair.privateKey));
    await utimes(file, 1, 1);
    t.equal(await valid(), false);
    await writeFile(file, 'x'.repeat(100_000));
    t.equal(await valid(), false);
    await rm(file);
    t.equal(await valid(), false);
    await writeFile(file, await issueLicense(license, pair.privateKey));
    t.equal(await valid(), true);
});

t.test('rejects when the file is a folder', async (t) => {
    await t.rejects(Promise.resolve(source({ file: t.testdir() }).valid()), { code: 'EISDIR' });
});

t.test('refuses options that cannot work, without repeating a key', async (t) => {
    const read = async () => null;
    const cases: [object, string][] = [
        [{ publicKey: pair.publicKey }, 'read'],
        [{ publicKey: pair.publicKey, read, file: 'x' }, 'read'],
        [{ read }, 'publicKey'],
        [{ read, publicKey: 'SECRET' }, 'publicKey'],
        [{ read, publicKey: pair.publicKey, checkEveryMs: -1 }, 'checkEveryMs'],
    ];
    for (const [options, name] of cases) {
        t.throws(() => signedLicense(options as SignedLicenseOptions), { code: 'MISCONFIGURED', message: new RegExp(name) });
    }
    try {
        signedLicense({ read, publicKey: 'SECRET' });
    } catch (error) {
        t.notMatch(String(error), 'SECRET');
    }
});

t.test('refuses to issue a licence that says nothing sensible', async (t) => {
    const wrong: [Partial<License>, string][] = [
        [{ holder: '' }, 'holder'],
        [{ holder: 'a\nb' }, 'holder'],
        [{ expires: notBefore }, 'expires'],
        [{ notBefore: new Date(Number.NaN) }, 'notBefore'],
    ];
    for (const [fields, field] of wrong) {
        await t.rejects(issueLicense({ ...license, ...fields }, pair.privateKey), { code: 'INVALID_INPUT', field });
    }
    await t.rejects(issueLicense(license, 'SECRET'), { code: 'INVALID_INPUT', field: 'privateKey', message: /^((?!SECRET).)*$/ });
    await t.rejects(issueLicense(license, pair.publicKey), { code: 'INVALID_INPUT', field: 'privateKey' });
});
