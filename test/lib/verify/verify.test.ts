import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import { replayCache, type SignatureForm, type VerifyOptions, verify } from '../../../lib/verify/index.ts';
import { signatureHeaders, vendorNamed } from '../../../lib/webhooks/messages/signature.ts';
import {
    changeSecret,
    generateSecret,
    type SecretChange,
    type Secrets,
    sealSecret,
    unsealSecrets,
} from '../../../lib/webhooks/messages/signing-secret.ts';
import { SIGNATURE_FORMS } from '../../../lib/webhooks/setting-values.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwJ2x5zJ0wHcM=';
const OWN = 'with a blank and ü€😀';
const BODY = Buffer.from('{"title":"Größe – \u2028 😀"}');
const NOW = new Date('2026-11-23T09:30:00Z');
const options = (more: Partial<VerifyOptions> = {}): VerifyOptions => ({ secrets: [SECRET], clock: () => NOW, ...more });

/** As somebody else would compute them: the body forms by openssl, Standard Webhooks by its own package. */
function signed(secret = SECRET, body = BODY) {
    const hexKey = Buffer.from(secret).toString('hex');
    const hmac = (...output: string[]): Buffer =>
        execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${hexKey}`, ...output], { input: body });
    const hex = hmac('-r').toString().split(' ')[0] as string;
    return { base64: hmac('-binary').toString('base64'), hex, 'sha256-hex': `sha256=${hex}` };
}

function standard({ secret = SECRET, id = 'msg_1', at = NOW, body = BODY } = {}): Record<string, string> {
    const key = secret.startsWith('whsec_') ? secret : Buffer.from(secret).toString('base64');
    const signature = new Webhook(key).sign(id, at, body.toString());
    return { 'webhook-id': id, 'webhook-timestamp': String(Math.floor(at.getTime() / 1000)), 'webhook-signature': signature };
}

const { base64, hex, 'sha256-hex': sha256 } = signed();

t.test('verifies every form, alone and beside others', async (t) => {
    const nothingElse = { id: null, time: null, kind: null };
    t.strictSame(verify(BODY, { 'x-vendor-signature': base64 }, options()), { forms: ['base64'], ...nothingElse });
    t.strictSame(verify(BODY, { 'X-Vendor-Signature': hex }, options()), { forms: ['hex'], ...nothingElse });
    t.strictSame(verify(BODY, { 'x-acme-signature': sha256 }, options()), { forms: ['sha256-hex'], ...nothingElse });
    const found = { forms: ['standard-webhooks'], id: 'msg_1', time: NOW, kind: null };
    t.strictSame(verify(BODY, standard(), options()), found);
    const all = {
        'x-vendor-event': 'test',
        'x-vendor-signature': sha256,
        'x-vendor-signature-base64': base64,
        'x-vendor-signature-hex': hex,
        ...standard(),
    };
    const forms = ['sha256-hex', 'base64', 'hex', 'standard-webhooks'];
    t.strictSame(verify(BODY, all, options()), { ...found, forms, kind: 'test' });
});

t.test('takes headers as whoever has them', async (t) => {
    const pairs: [string, string][] = [
        ['X-Acme-Event', 'test'],
        ['X-Acme-Signature', base64],
    ];
    for (const headers of [pairs, new Headers(pairs), Object.fromEntries(pairs), { ...Object.fromEntries(pairs), cookie: undefined }]) {
        t.match(verify(BODY, headers, options()), { forms: ['base64'], kind: 'test' });
    }

    t.match(verify(new Uint8Array(BODY), { 'x-acme-signature': [base64] }, options()), { forms: ['base64'] });
});

t.test('tries every secret, those that are no Standard Webhooks secret too', async (t) => {
    const secrets = [generateSecret(), OWN, SECRET];
    for (const secret of [OWN, SECRET]) {
        t.match(verify(BODY, { 'x-vendor-signature': signed(secret).hex }, options({ secrets })), { forms: ['hex'] });
        t.match(verify(BODY, standard({ secret }), options({ secrets })), { forms: ['standard-webhooks'] });
    }
});

const refused = (t: Test, headers: object, more: Partial<VerifyOptions> = {}, field?: string, body = BODY): void => {
    const expected = { name: 'ScanwireError', code: 'UNVERIFIED', field, message: /^[A-Z](?!.*(?:MfKQ9r8|Größe))/ };
    t.throws(() => verify(body, headers as Record<string, string>, options(more)), expected);
};

t.test('refuses what was altered, is unsigned or has one wrong signature, and names the header', async (t) => {
    const header = 'x-vendor-signature';
    refused(t, {});
    refused(t, { [header]: base64 }, {}, header, Buffer.concat([BODY, Buffer.from(' ')]));
    refused(t, { [header]: base64 }, {}, header, Buffer.alloc(0));
    refused(t, { [header]: base64 }, { secrets: ['another', generateSecret()] }, header);
    for (const wrong of [
        '',
        'x',
        hex.toUpperCase(),
        `sha256=${base64}`,
        `SHA256=${hex}`,
        ` ${hex}`,
        `${base64}\n`,
        base64.replace('=', ''),
    ]) {
        refused(t, { [header]: wrong }, {}, header);
    }

    refused(t, { [header]: [base64, base64] }, {}, header);
    refused(t, { [header]: base64, 'X-Vendor-Signature': base64 }, {}, header);
    refused(t, { [header]: base64, [`${header}-hex`]: 'ff' }, {}, `${header}-hex`);
    refused(t, { [header]: base64, [`${header}-hex`]: base64 }, {}, `${header}-hex`);
    refused(t, { [header]: base64, 'x-other-signature': hex.replace(/^./, 'g') }, {}, 'x-other-signature');
    refused(t, { [header]: base64, ...standard({ body: Buffer.from('{}') }) }, {}, 'webhook-signature');
});

t.test('refuses by Standard Webhooks what any of its three headers does not fit', async (t) => {
    refused(t, { ...standard(), 'webhook-id': 'msg_2' }, {}, 'webhook-signature');
    refused(t, { ...standard(), 'webhook-id': '' }, {}, 'webhook-id');
    refused(t, { ...standard(), 'webhook-id': undefined }, {}, 'webhook-id');
    refused(t, { ...standard(), 'webhook-timestamp': String(NOW.getTime() / 1000 - 1) }, {}, 'webhook-signature');
    for (const timestamp of ['soon', '', '-1', '1e3', `0x1`, ' 1', '1'.repeat(13)]) {
        refused(t, { ...standard(), 'webhook-timestamp': timestamp }, {}, 'webhook-timestamp');
    }

    const { 'webhook-signature': signature = '' } = standard();
    for (const wrong of ['', 'v1,', signature.replace('v1', 'v2'), signature.slice(3), signature.slice(0, -1)]) {
        refused(t, { ...standard(), 'webhook-signature': wrong }, {}, 'webhook-signature');
    }

    t.match(verify(BODY, { ...standard(), 'webhook-signature': `v1,AAAA ${signature} v1a,x` }, options()), { id: 'msg_1' });
});

t.test('takes as many signatures as a sender has secrets at most, and no more', (t) => {
    const ring = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
    let exporter = { id: 'e', sealedSecret: sealSecret(ring, 'e', SECRET), previousSecrets: [] as SecretChange['previousSecrets'] };
    const rotate = (): void => {
        exporter = { ...exporter, ...changeSecret(exporter, generateSecret(), ring, NOW) };
    };
    for (let times = 0; times < 20; times += 1) {
        rotate();
    }
    t.throws(rotate, { code: 'CONFLICT', field: 'secret' });
    const secrets = unsealSecrets(exporter, ring, NOW);
    const vendor = vendorNamed('Acme');
    const sent = (all: Secrets) =>
        signatureHeaders({ forms: ['standard-webhooks'], secrets: all, vendor, body: BODY, id: 'msg_1', timestamp: NOW });
    t.match(verify(BODY, sent(secrets), options()), { id: 'msg_1' }, 'the first of its secrets is the last of the signatures');
    t.throws(() => verify(BODY, sent([generateSecret(), ...secrets]), options()), {
        code: 'UNVERIFIED',
        field: 'webhook-signature',
        message: `Header webhook-signature has more than ${secrets.length} signatures`,
    });
    refused(t, { ...standard(), 'webhook-signature': ' '.repeat(16_000) }, {}, 'webhook-signature');
    t.end();
});

t.test('takes a time within the tolerance on either side, and none beyond it', async (t) => {
    const at = (seconds: number) => standard({ at: new Date(NOW.getTime() + seconds * 1000) });
    for (const seconds of [-300, 300]) {
        t.match(verify(BODY, at(seconds), options()), { id: 'msg_1' });
        refused(t, at(seconds + Math.sign(seconds)), {}, 'webhook-timestamp');
        refused(t, at(seconds), { tolerance: 299_999 }, 'webhook-timestamp');
        t.match(verify(BODY, at(seconds * 2), options({ tolerance: 600_000 })), { id: 'msg_1' });
    }
});

t.test('looks at nothing but the forms and the vendor that it is told', async (t) => {
    const mixed = { 'x-acme-signature': 'wrong', ...standard() };
    refused(t, mixed, {}, 'x-acme-signature');
    t.match(verify(BODY, mixed, options({ forms: ['standard-webhooks'] })), { forms: ['standard-webhooks'] });
    refused(t, { 'x-acme-signature': base64 }, { forms: ['standard-webhooks'] });
    refused(t, { 'x-acme-signature': base64 }, { forms: ['hex', 'sha256-hex'] });
    t.match(verify(BODY, { 'x-acme-signature': base64, ...standard({ secret: OWN }) }, options({ forms: ['base64', 'hex'] })), {
        forms: ['base64'],
        id: null,
        time: null,
    });

    const two = { 'x-hub-signature': 'theirs', 'x-hub-event': 'push', 'x-acme-event': 'test', 'x-acme-signature': base64 };
    refused(t, two, {}, 'x-hub-signature');
    t.strictSame(verify(BODY, two, options({ vendor: 'ACME' })), { forms: ['base64'], id: null, time: null, kind: 'test' });
    refused(t, two, { vendor: 'Acm' });
});

t.test('refuses a replay, and lets in what is tried again', async (t) => {
    const forms: SignatureForm[] = ['standard-webhooks'];
    const replays = replayCache();
    const secrets = [SECRET, OWN];
    const strict = options({ forms, replays, secrets });
    const both = {
        ...standard(),
        'webhook-signature': `${standard()['webhook-signature']} ${standard({ secret: OWN })['webhook-signature']}`,
    };
    t.match(verify(BODY, both, strict), { id: 'msg_1' });
    refused(t, both, strict, 'webhook-id');
    refused(t, standard({ secret: OWN }), strict, 'webhook-id');
    t.match(verify(BODY, standard({ at: new Date(NOW.getTime() + 1000) }), strict), { id: 'msg_1' });
    t.match(verify(BODY, standard({ id: 'msg_2' }), strict), { id: 'msg_2' });

    refused(t, { ...standard({ id: 'msg_3' }), 'webhook-signature': 'v1,x' }, strict, 'webhook-signature');
    t.match(verify(BODY, standard({ id: 'msg_3' }), strict), { id: 'msg_3' }, 'what was not verified is not remembered');
});

t.test('refuses options that can never work, with no secret in the message', async (t) => {
    const headers = { 'x-vendor-signature': base64 };
    const wrong = (more: object, field: string): void => {
        const expected = { code: 'MISCONFIGURED', field, message: /^(?!.*MfKQ9r8)/ };
        t.throws(() => verify(BODY, headers, options(more as Partial<VerifyOptions>)), expected, field);
    };
    wrong({ secrets: [] }, 'secrets');
    wrong({ secrets: SECRET }, 'secrets');
    wrong({ secrets: undefined }, 'secrets');
    wrong({ secrets: [SECRET, ''] }, 'secrets[1]');
    wrong({ secrets: [undefined] }, 'secrets[0]');
    wrong({ secrets: [SECRET.slice(0, -1)] }, 'secrets[0]');
    wrong({ secrets: [`${SECRET}\n`] }, 'secrets[0]');
    wrong({ forms: [] }, 'forms');
    wrong({ forms: ['md5'] }, 'forms');
    wrong({ forms: 'hex' }, 'forms');
    for (const tolerance of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 86_400_001]) {
        wrong({ tolerance }, 'tolerance');
    }

    wrong({ replays: replayCache() }, 'replays');
    wrong({ replays: replayCache(), forms: ['standard-webhooks', 'hex'] }, 'replays');
    wrong({ vendor: 'X Y' }, 'vendor');
    for (const raw of [BODY.toString(), {}, undefined]) {
        t.throws(() => verify(raw as unknown as Uint8Array, headers, options()), { code: 'MISCONFIGURED', field: 'raw' });
    }
});

t.test('verifies whatever the exporter signs, and nothing with a byte of it changed', async (t) => {
    const secret = fc.oneof(
        fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => generateSecret(() => bytes)),
        fc.constant(OWN),
    );
    const message = fc.record({
        body: fc.uint8Array({ minLength: 1, maxLength: 200 }),
        secrets: fc.uniqueArray(secret, { minLength: 1, maxLength: 3 }),
        forms: fc.uniqueArray(fc.constantFrom(...SIGNATURE_FORMS), { minLength: 1 }),
        known: fc.nat(2),
        changed: fc.nat(),
    });
    fc.assert(
        fc.property(message, ({ body, secrets: [current = OWN, ...previous], forms, known, changed }) => {
            const vendor = vendorNamed('Acme');
            const headers = signatureHeaders({ forms, secrets: [current, ...previous], vendor, body, id: 'm', timestamp: NOW });
            const secrets = [current, generateSecret(), ...previous];
            const found = verify(body, headers, options({ secrets }));
            t.strictSame(found.forms.toSorted(), forms.toSorted());
            t.equal(found.id, forms.includes('standard-webhooks') ? 'm' : null);

            if (forms.length === 1 && forms[0] === 'standard-webhooks') {
                const one = [current, ...previous][known % (previous.length + 1)] as string;
                t.ok(verify(body, headers, options({ secrets: [one] })), 'whoever still has one of the secrets');
            }

            const other = body.slice();
            other[changed % other.length] = (other[changed % other.length] ?? 0) ^ 1;
            t.throws(() => verify(other, headers, options({ secrets })), { code: 'UNVERIFIED' });
        }),
        { numRuns: 100 },
    );
});
