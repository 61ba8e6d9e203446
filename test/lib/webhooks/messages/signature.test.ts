import { execFileSync } from 'node:child_process';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import type { HeaderPairs } from '../../../../lib/webhooks/messages/message-headers.ts';
import { messageHeaders } from '../../../../lib/webhooks/messages/message-headers.ts';
import { type Signing, signatureHeaders, vendorNamed } from '../../../../lib/webhooks/messages/signature.ts';
import { checkSecret, generateSecret } from '../../../../lib/webhooks/messages/signing-secret.ts';
import type { SignatureForm } from '../../../../lib/webhooks/setting-values.ts';

const body = Buffer.from('{"timestamp":"2026-11-21T09:30:00.000Z","title":"Größe – \u2028 😀"}');
const id = '8e0f6d3c-9a1e-4a0e-b1f0-1f2d3c4b5a69';

function signing(forms: readonly SignatureForm[], ...secrets: readonly [string, ...string[]]): Signing {
    return { forms, secrets, vendor: vendorNamed('Vendor'), body, id, timestamp: new Date() };
}

function openssl(secret: string, ...output: readonly string[]): Buffer {
    const hexKey = Buffer.from(secret, 'utf8').toString('hex');
    return execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${hexKey}`, ...output], { input: body });
}

function opensslHex(secret: string): string {
    return openssl(secret, '-r').toString().split(' ')[0] ?? '';
}

const SECRETS = ['topsecret', 'with a blank and ü€😀', generateSecret()];

t.test('signs so that openssl comes to the same text', async (t) => {
    for (const secret of SECRETS) {
        t.same(signatureHeaders(signing(['base64'], secret)), [['X-Vendor-Signature', openssl(secret, '-binary').toString('base64')]]);
        t.same(signatureHeaders(signing(['hex'], secret)), [['X-Vendor-Signature', opensslHex(secret)]]);
        t.same(signatureHeaders(signing(['sha256-hex'], secret)), [['X-Vendor-Signature', `sha256=${opensslHex(secret)}`]]);
    }

    const [, plain] = signatureHeaders(signing(['base64'], 'topsecret'))[0] ?? [];
    t.equal(
        plain,
        execFileSync('sh', ['-c', 'openssl dgst -sha256 -hmac topsecret -binary | openssl base64 -A'], { input: body }).toString(),
    );
});

t.test('gives each further plain form a header of its own', async (t) => {
    t.same(signatureHeaders(signing(['hex', 'base64', 'sha256-hex', 'hex'], 'topsecret')), [
        ['X-Vendor-Signature', opensslHex('topsecret')],
        ['X-Vendor-Signature-Base64', openssl('topsecret', '-binary').toString('base64')],
        ['X-Vendor-Signature-Sha256', `sha256=${opensslHex('topsecret')}`],
    ]);
});

t.test('never leaves a message unsigned', async (t) => {
    t.match(signatureHeaders(signing([], 'topsecret')), [['X-Vendor-Signature', openssl('topsecret', '-binary').toString('base64')]]);
});

const record = (headers: HeaderPairs): Record<string, string> => Object.fromEntries(headers);

t.test('signs so that the standardwebhooks package verifies', async (t) => {
    for (const secret of SECRETS) {
        const headers = record(signatureHeaders(signing(['standard-webhooks'], secret)));
        t.same(Object.keys(headers), ['webhook-id', 'webhook-timestamp', 'webhook-signature']);
        const key = secret.startsWith('whsec_') ? secret : Buffer.from(secret).toString('base64');
        t.same(new Webhook(key).verify(body, headers), JSON.parse(body.toString()));
        t.throws(() => new Webhook(key).verify(Buffer.concat([body, Buffer.from(' ')]), headers));
        t.throws(() => new Webhook(generateSecret()).verify(body, headers));
    }

    t.ok(new Webhook('topsecret', { format: 'raw' }).verify(body, record(signatureHeaders(signing(['standard-webhooks'], 'topsecret')))));
});

t.test('signs with every valid secret while one is rotated out', async (t) => {
    const [current, previous] = [generateSecret(), generateSecret()];
    const headers = signatureHeaders(signing(['base64', 'standard-webhooks'], current, previous));
    t.same(headers[0], ['X-Vendor-Signature', openssl(current, '-binary').toString('base64')]);
    for (const secret of [current, previous]) {
        t.ok(new Webhook(secret).verify(body, record(headers)));
    }
});

const NATIVE = { contentType: 'application/json; charset=UTF-8', headers: [] };

t.test('writes all headers of a message in order', async (t) => {
    const vendor = vendorNamed('Acme');
    const message = { ...signing(['base64', 'standard-webhooks'], 'topsecret'), vendor };
    const headers = messageHeaders('test', message, NATIVE, [['Authorization', 'Bearer x ']]);
    t.same(
        headers.map(([name]) => name),
        [
            'X-Acme-Event',
            'X-Acme-Signature',
            'webhook-id',
            'webhook-timestamp',
            'webhook-signature',
            'Content-Type',
            'User-Agent',
            'Authorization',
        ],
    );
    t.match(record(headers), {
        'X-Acme-Event': 'test',
        'Content-Type': 'application/json; charset=UTF-8',
        'User-Agent': 'Acme Webhook Data Exporter',
        Authorization: 'Bearer x',
    });
    t.throws(() => messageHeaders('test', signing(['base64'], 'topsecret'), NATIVE, [['content-type', 'text/plain']]), {
        code: 'INVALID_INPUT',
    });
});

t.test('refuses headers of a format as additional ones, and both together', (t) => {
    const sent = (headers: unknown, additional: HeaderPairs = []) =>
        messageHeaders('test', signing(['base64'], 'topsecret'), { ...NATIVE, headers: headers as HeaderPairs }, additional).slice(4);
    const some = (count: number, name: string, value = 'v'): HeaderPairs =>
        Array.from({ length: count }, (_, at) => [`${name}-${at}`, value]);
    t.same(sent(some(1, 'ce'), some(1, 'x')), [...some(1, 'ce'), ...some(1, 'x')]);
    t.equal(sent(some(12, 'ce'), some(8, 'x')).length, 20);
    const long = 'v'.repeat(4000);
    for (const [message, headers, additional] of [
        ['Header X-Team is given twice', [['x-team', 'a']], [['X-Team', 'b']]],
        ['Headers must be at most 20', some(12, 'ce'), some(9, 'x')],
        ['Headers must be at most 8192 bytes in all', some(1, 'ce', long), some(2, 'x', long)],
        ['Header X-Vendor-Signature is set by the sender', [['X-Vendor-Signature', 'a']], []],
        ['Header Content-Type is set by the sender', [['Content-Type', 'a']], some(1, 'x')],
        ['Header x-line must have a value of visible ASCII characters and spaces', [['x-line', 'a\r\nb']], []],
        ['Header 1 must be a name and a value', null, []],
        ['Header 1 must be a name and a value', { 'x-line': 'a' }, []],
    ] as const) {
        t.throws(() => sent(headers, additional), { code: 'INVALID_INPUT', field: 'headers', message }, message);
    }
    t.end();
});

t.test('refuses a vendor that cannot stand in a header', async (t) => {
    t.same(vendorNamed('Vendor'), { name: 'Vendor', headerPrefix: 'X-Vendor', userAgent: 'Vendor Webhook Data Exporter' });
    for (const name of ['', 'a b', 'a:b', 'ä', '-a', 'a-', 'a\r\nb', 'x'.repeat(41)]) {
        t.throws(() => vendorNamed(name), { code: 'MISCONFIGURED', field: 'vendor' });
    }
});

t.test('generates secrets that pass its own check', async (t) => {
    const secret = generateSecret(() => Buffer.alloc(32, 0xff));
    t.equal(secret, `whsec_${Buffer.alloc(32, 0xff).toString('base64')}`);
    t.equal(checkSecret(secret), secret);
    t.not(generateSecret(), generateSecret());
});

t.test('takes the secrets that receivers have, and refuses what could be read in two ways', async (t) => {
    for (const secret of [
        'x',
        'with a blank',
        'ü€😀',
        'x'.repeat(512),
        '😀'.repeat(512),
        'whsek_short',
        `whsec_${Buffer.alloc(24).toString('base64')}`,
    ]) {
        t.equal(checkSecret(secret), secret);
    }

    const wrong = [
        '',
        ' ',
        ' s3cr3t',
        's3cr3t ',
        's3cr3t\n',
        's3\u0000cr3t',
        's3\tcr3t',
        's3\u007fcr3t',
        's3\u200bcr3t',
        's3\u2028cr3t',
        's3\u00a0cr3t',
        's3\ud800cr3t',
        's3cr3t'.repeat(100),
    ];
    for (const secret of [
        ...wrong,
        'whsec_',
        'whsec_s3cr3t',
        'whsec_$$$',
        `whsec_${Buffer.alloc(23).toString('base64')}`,
        `whsec_${Buffer.alloc(25).toString('base64url')}`,
    ]) {
        t.throws(
            () => checkSecret(secret),
            { code: 'INVALID_INPUT', field: 'secret', message: /^(?!.*s3cr3t)/ },
            encodeURIComponent(secret.replace(/\p{Cs}/u, '')),
        );
    }
});
