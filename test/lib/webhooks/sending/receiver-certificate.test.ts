import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsOptions } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import type { Authentication } from '../../../../lib/webhooks/exporters/authentication.ts';
import type { Outcome, OutcomeCode } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { type HttpSenderOptions, httpSender } from '../../../../lib/webhooks/sending/http-sender.ts';
import type { Trust } from '../../../../lib/webhooks/setting-values.ts';
import { answers, type Receiver, receiver } from '../../../support/bad-receiver.ts';
import { authority, type Credentials, certificate, chain, forged } from '../../../support/certificates.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const TRUSTS: readonly Trust[] = ['strict', 'self-signed', 'all'];

const root = await authority('Private root');
const stranger = await authority('Unrelated root');
const selfSigned = await certificate();
const signer = await certificate({ name: 'signer.test' });
const ofRoot = await certificate({ authority: root });
const past = { from: '2020-01-01', to: '2021-01-01' };
const future = { from: '2099-01-01', to: '2100-01-01' };

async function receiverWith(t: Test, credentials: Credentials, options: TlsOptions = {}): Promise<Receiver> {
    const made = await receiver(answers(OK), { ...credentials, ...options });
    t.teardown(() => made.close());
    return made;
}

async function send(
    t: Test,
    port: number,
    trust: Trust,
    {
        url = `https://good.test:${port}/`,
        authentication = null,
        ...options
    }: { readonly url?: string; readonly authentication?: Authentication | null } & Pick<HttpSenderOptions, 'clock'> = {},
): Promise<Outcome> {
    const sender = httpSender({
        ...options,
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
    });
    t.teardown(() => sender.close());
    return sender.send({ exporterId: 'e', url, trust, headers: [['X-Vendor-Event', 'test']], authentication, body: Buffer.from('{}') });
}

const delivered = 'delivered';
const CASES: Readonly<Record<string, readonly [Credentials, ...OutcomeCode[]]>> = {
    'self-signed': [selfSigned, 'tls_self_signed', delivered, delivered],
    'self-signed, with the name in the subject only': [
        await certificate({ withoutAlternativeName: true }),
        'tls_self_signed',
        delivered,
        delivered,
    ],
    'self-signed, for another name': [await certificate({ name: 'other.test' }), 'tls_self_signed', 'tls_name_mismatch', delivered],
    'self-signed, expired': [await certificate(past), 'tls_expired', 'tls_expired', delivered],
    'self-signed, not valid yet': [await certificate(future), 'tls_not_yet_valid', 'tls_not_yet_valid', delivered],
    'self-signed, with an RSA key of 2,048 bits': [await certificate({ rsa: 2048 }), 'tls_self_signed', delivered, delivered],
    'self-signed, with an RSA key of 1,024 bits': [await certificate({ rsa: 1024 }), 'tls_self_signed', 'tls_failed', delivered],
    'self-issued, but not signed by its own key': [forged(selfSigned), 'tls_self_signed', 'tls_failed', delivered],
    'of a private root that is presented': [chain(ofRoot, root), 'tls_self_signed', delivered, delivered],
    'of a private root that is presented behind another': [chain(ofRoot, stranger, root), 'tls_self_signed', delivered, delivered],
    'of a private root that is not presented': [ofRoot, 'tls_unknown_ca', 'tls_unknown_ca', delivered],
    'of a private root, presented with another root': [chain(ofRoot, stranger), 'tls_unknown_ca', 'tls_unknown_ca', delivered],
    'of a private root, expired': [chain(await certificate({ ...past, authority: root }), root), 'tls_expired', 'tls_expired', delivered],
    'of a private root, for another name': [
        chain(await certificate({ name: 'other.test', authority: root }), root),
        'tls_self_signed',
        'tls_name_mismatch',
        delivered,
    ],
    'forged in the name of a private root': [chain(forged(ofRoot), root), 'tls_failed', 'tls_failed', delivered],
    'signed by a certificate that is no authority': [
        chain(await certificate({ authority: signer }), signer),
        'tls_failed',
        'tls_failed',
        delivered,
    ],
    'signed by a certificate of the same name': [
        chain(await certificate({ authority: selfSigned }), selfSigned),
        'tls_self_signed',
        'tls_failed',
        delivered,
    ],
};

for (const [name, [credentials, ...codes]] of Object.entries(CASES)) {
    t.test(`judges a certificate that is ${name}`, async (t) => {
        for (const [index, trust] of TRUSTS.entries()) {
            const target = await receiverWith(t, credentials);
            const outcome = await send(t, target.port, trust);
            t.equal(outcome.code, codes[index], `${trust}: ${outcome.detail}`);
            t.equal(outcome.fingerprint, new X509Certificate(credentials.cert).fingerprint256, 'tells whose certificate it was');
            t.equal(target.received() === '', codes[index] !== delivered, 'sends nothing where it refuses');
            t.match(outcome.timings, { tls: Number, dns: Number, connect: Number });
        }
    });
}

t.test('tells issuer and end of a certificate, trusted or not, over a connection that was open already too', async (t) => {
    for (const [credentials, trust, code] of [
        [ofRoot, 'all', 'delivered'],
        [await certificate({ authority: root, ...past }), 'strict', 'tls_expired'],
    ] as const) {
        const { port } = await receiverWith(t, credentials);
        const sender = httpSender({
            guard: egressGuard({ allow: ['127.0.0.0/8'] }),
            lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
        });
        t.teardown(() => sender.close());
        const message = { exporterId: 'e', url: `https://good.test:${port}/`, trust, headers: [], body: Buffer.from('{}') } as const;
        const expiresAt = new Date(new X509Certificate(credentials.cert).validTo).toISOString();
        t.match(await sender.send(message), { code, certificate: { issuer: 'CN=Private root', expiresAt } });
        if (code === 'delivered') {
            const again = await sender.send(message);
            t.match(again, { code, timings: { tls: null }, fingerprint: String, certificate: { issuer: 'CN=Private root', expiresAt } });
        }
    }
});

t.test("refuses a short key under the authority of the exporter's own, which Node has verified", async (t) => {
    const ofRsa = await authority('RSA root', { rsa: 2048 });
    for (const [rsa, trust, code] of [
        [2048, 'strict', 'delivered'],
        [1024, 'strict', 'tls_failed'],
        [1024, 'self-signed', 'tls_failed'],
    ] as const) {
        const target = await receiverWith(t, await certificate({ authority: ofRsa, rsa }), { ciphers: 'DEFAULT@SECLEVEL=0' });
        const outcome = await send(t, target.port, trust, { authentication: { ca: ofRsa.cert } });
        t.equal(outcome.code, code, `${rsa} bits, ${trust}: ${outcome.detail}`);
        t.equal(target.received() === '', code !== 'delivered');
    }
});

t.test("judges the dates of what Node has not verified by the sender's own clock", async (t) => {
    for (const [year, code] of [
        [2000, 'tls_not_yet_valid'],
        [2200, 'tls_expired'],
    ] as const) {
        const target = await receiverWith(t, selfSigned);
        t.match(await send(t, target.port, 'self-signed', { clock: () => new Date(Date.UTC(year)) }), { code });
        t.equal(target.received(), '');
    }
});

t.test('accepts a certificate of a root that Node trusts, and still checks its name and dates', async (t) => {
    const folder = t.testdir();
    writeFileSync(join(folder, 'root.pem'), root.cert);
    const cases: readonly [Credentials, OutcomeCode][] = [
        [ofRoot, 'delivered'],
        [await certificate({ name: 'other.test', authority: root }), 'tls_name_mismatch'],
        [await certificate({ ...past, authority: root }), 'tls_expired'],
        [selfSigned, 'tls_self_signed'],
    ];
    for (const [credentials, code] of cases) {
        const { port } = await receiverWith(t, credentials);
        const env = {
            ...process.env,
            NODE_EXTRA_CA_CERTS: join(folder, 'root.pem'),
            NODE_TLS_REJECT_UNAUTHORIZED: '0',
            NODE_NO_WARNINGS: '1',
        };
        const script = fileURLToPath(new URL('../../../support/send-once.js', import.meta.url));
        const { stdout } = await promisify(execFile)(process.execPath, [script, `https://good.test:${port}/`, 'strict'], { env });
        t.match(JSON.parse(stdout), { code });
    }
});

t.test('stays strict when the environment says otherwise', async (t) => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    t.teardown(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    const target = await receiverWith(t, selfSigned);
    t.match(await send(t, target.port, 'strict'), { code: 'tls_self_signed' });
    t.equal(target.received(), '');
});

t.test('carries nothing from a trusting exporter to a strict one', async (t) => {
    const target = await receiverWith(t, selfSigned);
    const sender = httpSender({
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
    });
    t.teardown(() => sender.close());
    const message = { exporterId: 'e', url: `https://good.test:${target.port}/`, headers: [], body: Buffer.from('{}') };
    t.match(await sender.send({ ...message, trust: 'all' }), { code: 'delivered' });
    t.match(await sender.send({ ...message, trust: 'strict' }), { code: 'tls_self_signed' });
    t.match(await sender.send({ ...message, trust: 'all' }), { code: 'delivered', timings: { tls: null }, fingerprint: String });
});

t.test('checks an address against the addresses of the certificate', async (t) => {
    const { port } = await receiverWith(t, selfSigned);
    t.match(await send(t, port, 'self-signed', { url: `https://127.0.0.1:${port}/` }), { code: 'tls_name_mismatch' });
});

t.test('keeps TLS 1.2 as the floor in every mode', async (t) => {
    const { port } = await receiverWith(t, selfSigned, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    for (const trust of TRUSTS) {
        t.match(await send(t, port, trust), { code: 'tls_failed', status: null });
    }
});

t.test('names a demand for a client certificate', async (t) => {
    const { port } = await receiverWith(t, selfSigned, { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' });
    t.match(await send(t, port, 'all'), { code: 'tls_client_cert_required', status: null });
});

t.test('names the wrong protocol on either side', async (t) => {
    const plain = await receiver((socket) => void socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    t.teardown(() => plain.close());
    t.match(await send(t, plain.port, 'all'), { code: 'protocol_error' });

    const encrypted = await receiverWith(t, selfSigned);
    const { code } = await send(t, encrypted.port, 'all', { url: `http://good.test:${encrypted.port}/` });
    t.match(code, /^(protocol_error|connection_reset)$/);
});

t.test('ends a handshake that takes too long', async (t) => {
    const silent = await receiver(() => undefined);
    t.teardown(() => silent.close());
    const sender = httpSender({ guard: egressGuard({ allow: ['127.0.0.0/8'] }), connectTimeout: 1_000 });
    t.teardown(() => sender.close());
    const message = {
        exporterId: 'e',
        url: `https://127.0.0.1:${silent.port}/`,
        trust: 'all',
        headers: [],
        body: Buffer.from('{}'),
    } as const;
    t.match(await sender.send(message), { code: 'tls_failed', detail: /timed out/, address: '127.0.0.1' });
});
