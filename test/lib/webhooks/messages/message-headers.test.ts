import { validateHeaderName, validateHeaderValue } from 'node:http';
import fc from 'fast-check';
import t from 'tap';
import type { HeaderPairs } from '../../../../lib/webhooks/messages/message-headers.ts';
import { checkAdditionalHeaders } from '../../../../lib/webhooks/messages/message-headers.ts';
import { vendorNamed } from '../../../../lib/webhooks/messages/signature.ts';

const REFUSED = `
Host Content-Type content-length Content-Encoding Content-Language Content-Disposition Content-Foo User-Agent Date Accept-Encoding Digest Content-Digest
Connection Keep-Alive TE Trailer Transfer-Encoding Upgrade HTTP2-Settings Proxy-Connection Proxy-Authorization Proxy-Authenticate Proxy-Foo Proxy Expect
webhook-id Webhook-Timestamp WEBHOOK-SIGNATURE webhook-anything X-Vendor-Event X-Vendor-Signature x-vendor-anything X-Hub-Signature X-Hub-Signature-256 Signature
Signature-Input X-Signature Svix-Signature Stripe-Signature X-Shopify-Hmac-Sha256 Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Foo X-Real-IP Via
True-Client-IP CF-Connecting-IP Fastly-Client-IP X-Cluster-Client-IP X-Original-URL X-Rewrite-URL X-HTTP-Method-Override Metadata Metadata-Flavor Metadata-Token
X-Google-Metadata-Request X-aws-ec2-metadata-token X-aws-ec2-metadata-token-ttl-seconds X-Identity-Header
X_Forwarded_For Content_Length x_vendor_signature Transfer_Encoding`
    .trim()
    .split(/\s+/);

const VENDOR = vendorNamed('Vendor');

const message = (error: unknown): string => (error instanceof Error ? error.message : '');

function refusal(pairs: unknown): { code?: string; field?: string; message: string } | null {
    try {
        checkAdditionalHeaders(pairs as HeaderPairs, VENDOR);
        return null;
    } catch (error) {
        return { ...(error as object), message: message(error) };
    }
}

t.test('takes the headers that receivers need, as they are but for blanks around the value', async (t) => {
    const pairs: HeaderPairs = [
        ['Authorization', 'Bearer abc'],
        ['X-Api-Key', '  k  '],
        ['Cookie', 'a=b; c=d\t'],
        ['CF-Access-Client-Id', 'id'],
        ['Accept', 'application/json'],
        ['traceparent', '00-1-2-01'],
    ];
    t.same(
        checkAdditionalHeaders(pairs, VENDOR),
        pairs.map(([name, value]) => [name, value.trim()]),
    );
    t.same(checkAdditionalHeaders([], VENDOR), []);
});

t.test('refuses the headers that are not for users to set, and says which', async (t) => {
    for (const name of REFUSED) {
        const refused = refusal([
            ['X-Fine', 'a'],
            [name, 's3cr3t'],
        ]);
        t.match(refused, { code: 'INVALID_INPUT', field: 'headers', message: `Header ${name} ` }, name);
        t.notMatch(refused?.message, 's3cr3t');
    }
});

t.test('refuses the prefix of the vendor it is for', async (t) => {
    t.throws(() => checkAdditionalHeaders([['x-acme-Foo', 'a']], vendorNamed('Acme')), /Header x-acme-Foo is set by the sender/);
    t.same(checkAdditionalHeaders([['X-Vendor-Foo', 'a']], vendorNamed('Acme')), [['X-Vendor-Foo', 'a']]);
});

t.test('refuses names that are no tokens', async (t) => {
    for (const name of [
        '',
        ' ',
        'a b',
        'a:b',
        ':authority',
        'a\r\nb',
        'a\n',
        'a\u0000',
        'a\u007f',
        'ä',
        '日本',
        'a(b)',
        '"a"',
        'x'.repeat(65),
    ]) {
        const refused = refusal([[name, 'value']]);
        t.match(refused, { code: 'INVALID_INPUT', message: /^Header 1 has a name that is not/ }, encodeURIComponent(name));
    }
});

t.test('refuses values that cannot go as they are', async (t) => {
    for (const value of [
        '',
        ' ',
        '\t',
        'a\rb',
        'a\nb',
        'a\r\nX-B: c',
        'a\u0000b',
        'a\u007fb',
        'a\tb',
        'café',
        '日本',
        '😀',
        'x'.repeat(4097),
    ]) {
        t.match(
            refusal([['X-A', value]]),
            { code: 'INVALID_INPUT', message: /^Header X-A must have a value/ },
            encodeURIComponent(value.slice(0, 20)),
        );
    }

    t.equal(refusal([['X-A', 'x'.repeat(4096)]]), null);
});

t.test('refuses too many, too much and the same twice', async (t) => {
    const many = (count: number, size: number): HeaderPairs =>
        Array.from({ length: count }, (_, index) => [`X-${String(index).padStart(2, '0')}`, 'v'.repeat(size)]);
    t.equal(refusal(many(20, 10)), null);
    t.match(refusal(many(21, 10)), { message: 'Headers must be at most 20' });
    t.equal(refusal(many(2, 4088)), null);
    t.match(refusal(many(2, 4089)), { message: 'Headers must be at most 8192 bytes in all' });
    t.match(
        refusal([
            ['X-A', '1'],
            ['x-a', '2'],
        ]),
        { message: 'Header x-a is given twice' },
    );
});

t.test('refuses what is no list of pairs', async (t) => {
    for (const pairs of [
        null,
        'X-A: b',
        { 'X-A': 'b' },
        [['X-A']],
        [['X-A', 'b', 'c']],
        [['X-A', 7]],
        [[7, 'b']],
        ['X-A'],
        [null],
        [{ name: 'X-A', value: 'b' }],
    ]) {
        t.match(refusal(pairs), { code: 'INVALID_INPUT', field: 'headers' }, JSON.stringify(pairs));
    }
});

t.test('lets nothing through that Node would not send', async () => {
    fc.assert(
        fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), { maxLength: 3 }), (pairs) => {
            if (refusal(pairs) !== null) {
                return true;
            }

            for (const [name, value] of checkAdditionalHeaders(pairs, VENDOR)) {
                validateHeaderName(name);
                validateHeaderValue(name, value);
            }

            return true;
        }),
        { numRuns: 500 },
    );
});
