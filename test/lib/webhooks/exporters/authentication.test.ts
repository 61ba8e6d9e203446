import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createPlainServer, type IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { keyRing } from '../../../../lib/keys/key-ring.ts';
import type { AuthenticationSettings } from '../../../../lib/webhooks/exporters/authentication.ts';
import type { WebhookStores } from '../../../../lib/webhooks/options.ts';
import { httpSender } from '../../../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../../../lib/webhooks/webhooks.ts';
import { authority, certificate, chain, forged } from '../../../support/certificates.ts';

const ROOT = await authority('Private root');
const SERVER = await certificate({ authority: ROOT });
const CLIENT = await certificate({ name: 'sender.test', authority: ROOT });
const OTHER = await certificate({ name: 'other.test', authority: ROOT });
const IDENTITY = { certificate: CLIENT.cert, key: CLIENT.key };
const BASIC = { username: 'siem', password: 'pässword:one' };
const OAUTH = { tokenUrl: 'https://tokens.example.com/token', clientId: 'siem', clientSecret: 'hidden' };
const guard = egressGuard({ allow: ['127.0.0.0/8', 'good.test'] });

interface Setting extends Webhooks {
    readonly stores: WebhookStores;
}

/** The engine over its stores in memory; every name is on loopback. */
async function setting(t: Test, stores = memoryWebhooks(), keys = { k: randomBytes(32) }): Promise<Setting> {
    const queue = memoryQueue();
    const sender = httpSender({ guard, attemptTimeout: 5_000, lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]) });
    const made = webhooks({ ...stores, queue, keyRing: keyRing({ current: 'k', keys }), guard, sender });
    await made.start();
    await made.work(['default']);
    t.teardown(async () => {
        await made.close();
        await queue.close();
    });
    return { ...made, stores };
}

interface Came {
    readonly headers: IncomingHttpHeaders;
    /** Whose certificate was presented. */
    readonly shown: string | undefined;
}

/** A receiver that answers 204 and keeps the requests that it gets; with TLS it asks for a certificate that its root has signed. */
async function receiver(t: Test, secure = true): Promise<{ readonly url: string; readonly came: Came[] }> {
    const came: Came[] = [];
    const options = { ...SERVER, ca: ROOT.cert, requestCert: true, rejectUnauthorized: true };
    const listener: Parameters<typeof createPlainServer>[1] = (request, response) => {
        const { headers, socket } = request;
        came.push({ headers, shown: socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.subject : undefined });
        request.resume().on('end', () => response.writeHead(204).end());
    };
    const server = secure ? createServer(options, listener) : createPlainServer(listener);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const { port } = server.address() as AddressInfo;
    return { url: secure ? `https://good.test:${port}/` : `http://127.0.0.1:${port}/`, came };
}

async function codeOfTest({ exporters }: Webhooks, id: string): Promise<string | undefined> {
    return (await exporters.test(id)).attempt?.outcome?.code;
}

t.test('sends user and password, shows that there are some and never what they are', async (t) => {
    const to = await receiver(t, false);
    const all = await setting(t);
    const { exporter, warnings } = await all.exporters.create({ url: to.url, basic: BASIC });
    t.match(exporter, { authentication: ['basic'] });
    t.match(
        warnings.map(({ code }) => code),
        ['plain_http', 'credentials_over_http'],
    );
    t.equal(await codeOfTest(all, exporter.id), 'delivered');
    t.equal(to.came[0]?.headers.authorization, `Basic ${Buffer.from('siem:pässword:one').toString('base64')}`);

    const preview = await all.exporters.preview(exporter.id, 'test_of_kinds', {}).catch(({ code }) => code);
    t.equal(preview, 'INVALID_INPUT');
    const body = {
        timestamp: '2026-11-21T09:30:00Z',
        title: 'x',
        link: 'https://example.com/',
        investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    };
    const event = { ...body, investigationRrn: 'rrn:a', actors: { users: [], assets: [] } };
    const { headers } = await all.exporters.preview(exporter.id, 'idr_investigation_created', event);
    t.same(headers.at(-1), ['Authorization', '***']);

    const seen = [exporter, await all.exporters.list(), await all.exporters.show(exporter.id), headers, await all.stores.exporters.list()];
    t.notMatch(JSON.stringify(seen), /pässword|c2llbTpw/);
});

t.test('shows what it sends beside as many headers as there may be, and nothing that it does not send', async (t) => {
    const to = await receiver(t, false);
    const keys = { k: randomBytes(32) };
    const all = await setting(t, memoryWebhooks(), keys);
    const headers = Array.from({ length: 20 }, (_, index) => [`X-Part-${index}`, 'a'.repeat(380)] as const);
    const { exporter } = await all.exporters.create({ url: to.url, headers, basic: BASIC });
    const { deliveryId, attempt } = await all.exporters.test(exporter.id);
    t.equal(attempt?.outcome?.code, 'delivered');
    const shown = await all.exporters.preview(exporter.id, 'test');
    for (const seen of [shown.headers, (await all.deliveries.message(deliveryId)).headers ?? []]) {
        t.same(seen.slice(-21), [...headers.map(([name]) => [name, '***']), ['Authorization', '***']]);
    }

    const { exporter: twice } = await all.exporters.create({ url: to.url, headers: [['authorization', 'x']] });
    const sealed = keyRing({ current: 'k', keys }).seal(JSON.stringify({ basic: BASIC }), `exporter:${twice.id}:authentication`);
    await all.stores.exporters.update(twice.id, { sealedAuthentication: sealed });
    t.equal(await codeOfTest(all, twice.id), 'invalid_exporter');
    await t.rejects(all.exporters.preview(twice.id, 'test'), { code: 'INVALID_INPUT', field: 'headers' });
});

t.test('presents its certificate, and trusts its own authorities and no others', async (t) => {
    const to = await receiver(t);
    const all = await setting(t);
    const { exporter } = await all.exporters.create({ url: to.url, ca: ROOT.cert, clientCertificate: IDENTITY });
    t.match(exporter, { authentication: ['ca', 'clientCertificate'] });
    t.equal(await codeOfTest(all, exporter.id), 'delivered');
    t.equal(to.came[0]?.shown, 'CN=sender.test');

    await all.exporters.update(exporter.id, { clientCertificate: null });
    t.equal(await codeOfTest(all, exporter.id), 'tls_client_cert_required', 'keeps the rest');
    await all.exporters.update(exporter.id, { ca: (await authority('Another root')).cert });
    t.equal(await codeOfTest(all, exporter.id), 'tls_self_signed', 'a root that is presented is trusted no more than any other');
    await all.exporters.update(exporter.id, { ca: null });
    t.match(await all.exporters.get(exporter.id), { authentication: [] });
    t.match(await all.stores.exporters.get(exporter.id), { sealedAuthentication: null });
    t.equal(to.came.length, 1);
});

t.test('sends nothing where something of it cannot be used any more', async (t) => {
    const to = await receiver(t);
    const keys = { k: randomBytes(32) };
    const all = await setting(t, memoryWebhooks(), keys);
    const ring = keyRing({ current: 'k', keys });
    const { exporter } = await all.exporters.create({ url: to.url, ca: ROOT.cert, clientCertificate: IDENTITY });
    const store = (id: string, authentication: unknown): Promise<unknown> =>
        all.stores.exporters.update(id, {
            sealedAuthentication: ring.seal(JSON.stringify(authentication), `exporter:${id}:authentication`),
        });

    for (const broken of [
        { ca: ROOT.cert, clientCertificate: { ...IDENTITY, key: OTHER.key } },
        { ca: ROOT.cert, clientCertificate: { ...IDENTITY, certificate: 'none' } },
        { ca: '', clientCertificate: IDENTITY },
    ]) {
        await store(exporter.id, broken);
        t.equal(await codeOfTest(all, exporter.id), 'invalid_exporter');
    }

    await store(exporter.id, { ca: ROOT.cert, clientCertificate: IDENTITY });
    t.equal(await codeOfTest(all, exporter.id), 'delivered');
    await all.stores.exporters.update(exporter.id, { url: to.url.replace('https', 'http') });
    t.equal(await codeOfTest(all, exporter.id), 'invalid_exporter', 'plain http asks for no certificate');
    await all.stores.exporters.update(exporter.id, { url: to.url, sealedAuthentication: ring.seal('{}', 'another exporter') });
    t.equal(await codeOfTest(all, exporter.id), 'interrupted', 'the fault of whoever has the wrong keys');

    const { exporter: plain } = await all.exporters.create({ url: to.url, headers: [['Authorization', 'x']], ca: ROOT.cert });
    await store(plain.id, { ca: ROOT.cert, basic: BASIC });
    t.equal(await codeOfTest(all, plain.id), 'invalid_exporter', 'one Authorization and no other');
    t.equal(to.came.length, 1);
});

t.test('sends nothing without what an exporter is said to have, and lets it be given again or removed', async (t) => {
    const to = await receiver(t);
    const keys = { k: randomBytes(32) };
    const all = await setting(t, memoryWebhooks(), keys);
    const ring = keyRing({ current: 'k', keys });
    const proxy = { url: 'https://good.test:1' };
    for (const [part, settings] of [
        ['basic', { basic: BASIC }],
        ['clientCertificate', { clientCertificate: IDENTITY }],
        ['proxy', { proxy }],
    ] as const) {
        const { exporter } = await all.exporters.create({ url: to.url, ca: ROOT.cert, ...settings });
        for (const sealedAuthentication of [null, ring.seal(JSON.stringify({ ca: ROOT.cert }), `exporter:${exporter.id}:authentication`)]) {
            await all.stores.exporters.update(exporter.id, { sealedAuthentication });
            t.equal(await codeOfTest(all, exporter.id), 'invalid_exporter', part);
            const missing = { code: 'INVALID_INPUT', field: sealedAuthentication === null ? 'ca' : part, message: /must be given again/ };
            await t.rejects(all.exporters.update(exporter.id, { name: 'other' }), missing);
        }

        t.strictSame(to.came, [], part);
        await all.exporters.update(exporter.id, { [part]: null });
        t.match(await all.exporters.get(exporter.id), { authentication: ['ca'] }, 'what is not missing stays');
        await all.exporters.remove(exporter.id);
        to.came.length = 0;
    }
});

t.test('refuses to start with a key ring that cannot open it', async (t) => {
    const stores = memoryWebhooks();
    const { exporters } = await setting(t, stores);
    const { exporter } = await exporters.create({ url: 'https://example.com/', basic: BASIC });
    const foreign = keyRing({ current: 'other', keys: { other: randomBytes(32) } });
    await stores.exporters.update(exporter.id, { sealedAuthentication: foreign.seal('{}', `exporter:${exporter.id}:authentication`) });
    await t.rejects(setting(t, stores), { code: 'MISCONFIGURED', field: 'keyRing' });
});

t.test('takes credentials nowhere else unasked', async (t) => {
    const { exporters } = await setting(t);
    const { exporter } = await exporters.create({
        url: 'https://good.test/a',
        basic: BASIC,
        ca: ROOT.cert,
        clientCertificate: IDENTITY,
        headers: [['X-Key', 'k']],
    });
    const url = 'https://example.com/';
    const { id } = exporter;
    await exporters.update(id, { url: 'https://good.test/b' });
    await t.rejects(exporters.update(id, { url }), { code: 'INVALID_INPUT', field: 'headers' });
    await t.rejects(exporters.update(id, { url, headers: [] }), { code: 'INVALID_INPUT', field: 'basic' });
    const settled = { url, headers: [], basic: { username: 'u', password: 'new' } };
    await t.rejects(exporters.update(id, settled), { field: 'clientCertificate', message: /ClientCertificate must be given again/ });
    const { exporter: moved } = await exporters.update(id, { ...settled, clientCertificate: null });
    t.match(moved, { url: 'https://example.com/', authentication: ['basic', 'ca'], headerNames: [] });
    const other = await exporters.create({ url: 'https://good.test/', oauth: OAUTH });
    await t.rejects(exporters.update(other.exporter.id, { url }), { code: 'INVALID_INPUT', field: 'oauth' });
    const kept = await exporters.update(id, { url: 'https://good.test/', keepHeaders: true });
    t.match(kept.exporter, { url: 'https://good.test/', authentication: ['basic', 'ca'] });
});

t.test('takes the secret of a format nowhere else unasked', async (t) => {
    const stores = memoryWebhooks();
    const { exporters } = await setting(t, stores);
    const formatSecret = 'a'.repeat(32);
    const { exporter } = await exporters.create({ url: 'https://good.test/a', format: 'pagerduty', formatSecret });
    const { id } = exporter;
    const url = 'https://example.com/';
    const sealed = async (): Promise<string | null | undefined> => (await stores.exporters.get(id))?.sealedFormatSecret;
    const before = await sealed();
    await exporters.update(id, { url: 'https://good.test/b' });
    await t.rejects(exporters.update(id, { url }), { code: 'INVALID_INPUT', field: 'formatSecret', message: /must be given again/ });
    await t.rejects(exporters.update(id, { url, format: 'pagerduty' }), { code: 'INVALID_INPUT', field: 'formatSecret' });
    t.match(await exporters.show(id, { showUrl: true }), { url: 'https://good.test/b' });
    await exporters.update(id, { url, keepHeaders: true });
    t.equal(await sealed(), before);
    await exporters.update(id, { url: 'https://good.test/', formatSecret: 'b'.repeat(32) });
    t.not(await sealed(), before);
    await exporters.update(id, { url, format: 'native' });
    t.equal(await sealed(), null, 'the secret of a format ends with it');
});

t.test('loses none of several changes at once', async (t) => {
    const { exporters } = await setting(t);
    const { exporter } = await exporters.create({ url: 'https://example.com/' });
    const changes = [{ basic: BASIC }, { ca: ROOT.cert }, { clientCertificate: IDENTITY }];
    await Promise.all(changes.map((one) => exporters.update(exporter.id, one)));
    t.same([...(await exporters.get(exporter.id)).authentication].sort(), ['basic', 'ca', 'clientCertificate']);
});

t.test('refuses what cannot be, with the field and never with a value', async (t) => {
    const { exporters } = await setting(t);
    const encrypted = generateKeyPairSync('ec', {
        namedCurve: 'P-256',
        privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'hidden' },
        publicKeyEncoding: { type: 'spki', format: 'pem' },
    }).privateKey;
    const small = await certificate({ rsa: 512 });
    const certificates = (cert: string, key: string = CLIENT.key): AuthenticationSettings => ({
        clientCertificate: { certificate: cert, key },
    });
    const cases: readonly [AuthenticationSettings & { readonly headers?: [string, string][]; readonly url?: string }, string, RegExp][] = [
        [{ basic: { username: 'hid:den', password: '' } }, 'basic.username', /neither a colon nor control characters/],
        [{ basic: { username: 'a', password: 'hidden\n' } }, 'basic.password', /must not contain control characters/],
        [{ basic: BASIC, headers: [['authorization', 'hidden']] }, 'basic', /exclude each other/],
        [{ ca: 'hidden' }, 'ca', /^Ca must be certificates in PEM/],
        [{ ca: ROOT.cert + ROOT.key }, 'ca', /nothing else that is in PEM/],
        [{ ca: `${ROOT.cert}-----BEGIN CERTIFICATE-----\nhid` }, 'ca', /must be certificates/],
        [{ ca: `${ROOT.cert}-----BEGIN CERTIFICATE-----\nhid\n-----END CERTIFICATE-----` }, 'ca', /cannot be read, number 2/],
        [{ ca: '-----BEGIN CERTIFICATE-----\nhid\n-----END CERTIFICATE-----\n'.repeat(201) }, 'ca', /^Ca must be at most 200 certificates/],
        [{ ca: ROOT.cert, url: 'http://example.com/' }, 'ca', /needs a URL with https/],
        [certificates('hidden'), 'clientCertificate.certificate', /must be certificates/],
        [certificates(CLIENT.cert, 'hidden'), 'clientCertificate.key', /is not a private key in PEM/],
        [certificates(CLIENT.cert, encrypted), 'clientCertificate.key', /must not be encrypted/],
        [certificates(CLIENT.cert, OTHER.key), 'clientCertificate.key', /not that of the first certificate/],
        [certificates(chain(ROOT, CLIENT).cert), 'clientCertificate.key', /not that of the first certificate/],
        [certificates(small.cert, small.key), 'clientCertificate', /cannot be used/],
        [{ oauth: OAUTH, basic: BASIC }, 'oauth', /exclude each other/],
        [{ oauth: OAUTH, headers: [['authorization', 'hidden']] }, 'oauth', /exclude each other/],
        [{ oauth: { ...OAUTH, tokenUrl: 'http://tokens.example.com/hidden' } }, 'oauth.tokenUrl', /^Oauth.tokenUrl must be https/],
        [{ oauth: { ...OAUTH, tokenUrl: 'https://10.1.2.3/hidden' } }, 'oauth.tokenUrl', /^Oauth.tokenUrl points to a private address/],
        [{ oauth: { ...OAUTH, ca: 'hidden' } }, 'oauth.ca', /^Oauth.ca must be certificates/],
        [{ oauth: { ...OAUTH, clientSecret: 'hiddén' } }, 'oauth.clientSecret', /visible ASCII/],
        [{ proxy: { url: 'socks5://hidden@proxy.example.com' } }, 'proxy.url', /^Proxy.url must be an absolute http or https URL/],
        [{ proxy: { url: 'http://siem:hid%zz@proxy.example.com' } }, 'proxy.url', /percent-encoded/],
        [{ proxy: { url: 'http://siem:hidden@proxy.example.com/path' } }, 'proxy.url', /must end with its host or port/],
        [{ proxy: { url: 'http://siem:hidden@10.1.2.3:3128' } }, 'proxy.url', /^Proxy.url points to a private address/],
        [{ proxy: { url: 'https://proxy.example.com', ca: 'hidden' } }, 'proxy.ca', /^Proxy.ca must be certificates/],
        [{ ...certificates(CLIENT.cert), url: 'http://example.com/' }, 'clientCertificate', /needs a URL with https/],
    ];
    for (const [settings, field, message] of cases) {
        const error = await exporters.create({ url: 'https://example.com/', ...settings }).catch((thrown) => thrown);
        t.match(error, { code: 'INVALID_INPUT', field, message }, message.source);
        t.notMatch(String(error.message), /hid|siem/);
    }

    const { exporter } = await exporters.create({ url: 'https://example.com/', ca: ROOT.cert, clientCertificate: IDENTITY });
    const moved = exporters.update(exporter.id, { url: 'http://example.com/', keepHeaders: true });
    await t.rejects(moved, { code: 'INVALID_INPUT', field: 'clientCertificate' });
    t.ok(await exporters.create({ url: 'https://example.com/', ca: `Of the company:\n${ROOT.cert}${forged(OTHER).cert}` }));
    t.same(await exporters.list().then((all) => all.length), 2);
});
