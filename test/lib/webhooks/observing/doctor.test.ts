import { spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import { keyRing } from '../../../../lib/keys/key-ring.ts';
import { newProgress, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { type HttpSenderOptions, httpSender } from '../../../../lib/webhooks/sending/http-sender.ts';
import { type WebhookExporterOptions, webhooksOf } from '../../../../plugins/webhook-exporter/options.ts';
import { authority, type Credentials, certificate, chain, forged } from '../../../support/certificates.ts';
import { countingReceiver } from '../../../support/counting-receiver.ts';
import { freePort } from '../../../support/free-port.ts';
import { type NameServerBehaviour, nameServer } from '../../../support/name-server.ts';
import { recordingProcess } from '../../../support/recording-process.ts';

const options = (): WebhookExporterOptions => ({
    stores: memoryWebhooks(),
    queue: memoryQueue(),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    egress: { allow: ['127.0.0.0/8'] },
});

async function running(t: Test, given: WebhookExporterOptions = options(), collectors = ['default']) {
    const { webhooks } = webhooksOf(given, { onError: () => {} });
    await webhooks.start();
    await webhooks.work(collectors);
    t.teardown(() => webhooks.close({ timeout: 100 }));
    return webhooks;
}

/** The parts that were found, each with its state. */
function statesOf({ findings }: { readonly findings: readonly { readonly part: string; readonly state: string }[] }): string {
    return findings.map(({ part, state }) => `${part} ${state}`).join(', ');
}

const WELL = 'store ok, clock ok, keys ok, queue ok, workers ok, names ok, exporters ok';

t.test('finds nothing wrong where all is well, down to what the receiver answers', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { doctor, exporters } = await running(t);
    t.match(await doctor(), { healthy: true, findings: { length: 7 } });
    const { exporter } = await exporters.create({ url: receiver.url });
    const stopped = await doctor(exporter.id);
    const steps = 'resolve ok, connect ok, tls ok, certificate ok, first byte ok, answer ok';
    t.equal(statesOf(stopped), `${WELL}, exporter warning, ${steps}`);
    t.equal(stopped.healthy, true);
    await exporters.start(exporter.id);
    t.equal(statesOf(await doctor(exporter.id)), `${WELL}, exporter ok, ${steps}`);
    await t.rejects(doctor(randomUUID()), { code: 'NOT_FOUND' });
});

t.test('names the step at which a receiver cannot be reached', async (t) => {
    const { doctor, exporters } = await running(t);
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/' });
    const { healthy, findings } = await doctor(exporter.id);
    t.equal(healthy, false);
    t.match(findings.at(-1), { part: 'connect', state: 'wrong', text: /refused/, advice: /connect_refused/ });
});

t.test('names a name that nobody knows', async (t) => {
    const { doctor, exporters } = await running(t);
    const { exporter } = await exporters.create({ url: 'https://receiver.example.invalid/' });
    t.match((await doctor(exporter.id)).findings.at(-1), { part: 'resolve', state: 'wrong', advice: /dns_/ });
});

t.test('names a handshake that fails', async (t) => {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { doctor, exporters } = await running(t);
    const { exporter } = await exporters.create({ url: receiver.url.replace('http:', 'https:') });
    t.match((await doctor(exporter.id)).findings.at(-1), { part: 'tls', state: 'wrong', advice: /tls_failed|protocol/ });
});

/** A receiver over TLS that takes everything. @returns Its URL. */
async function tlsReceiver(t: Test, options: ServerOptions): Promise<string> {
    const server = createTlsServer(options, (request, response) => {
        request.resume();
        response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close().closeAllConnections());
    return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

t.test('warns of a certificate that ends soon, and says who issued it', async (t) => {
    for (const [to, state] of [
        [new Date(Date.now() + 3 * 86_400_000), 'warning'],
        [new Date(Date.now() + 90 * 86_400_000), 'ok'],
    ] as const) {
        const url = await tlsReceiver(t, await certificate({ to: to.toISOString() }));
        const { doctor, exporters } = await running(t);
        const { exporter } = await exporters.create({ url, trust: 'all' });
        const { findings, healthy } = await doctor(exporter.id);
        const text = new RegExp(`issued by CN=good.test, until ${to.toISOString().slice(0, 10)}`);
        t.match(
            findings.find(({ part }) => part === 'certificate'),
            { state, text },
        );
        t.equal(healthy, true);
    }
});

t.test('blames a certificate that is refused, and not what comes before it or would come behind it', async (t) => {
    const root = await authority('Private root');
    const ofRoot = await certificate({ authority: root });
    const past = { from: '2020-01-01', to: '2021-01-01' };
    for (const [given, code] of [
        [await certificate(past), 'tls_expired'],
        [await certificate({ from: '2099-01-01', to: '2100-01-01' }), 'tls_not_yet_valid'],
        [await certificate(), 'tls_self_signed'],
        [ofRoot, 'tls_unknown_ca'],
        [{ ...ofRoot, ca: root.cert }, 'tls_name_mismatch'],
        [chain(forged(ofRoot), root), 'tls_failed'],
    ] as const) {
        const { doctor, exporters } = await running(t);
        const url = await tlsReceiver(t, { key: given.key, cert: given.cert, minVersion: 'TLSv1.2' });
        const { exporter } = await exporters.create({ url, ...('ca' in given && { ca: given.ca }) });
        const diagnosis = await doctor(exporter.id);
        t.match(diagnosis.findings.at(-1), { part: 'certificate', state: 'wrong', advice: new RegExp(`see ${code} in`) }, code);
        t.equal(statesOf(diagnosis), `${WELL}, exporter warning, resolve ok, connect ok, tls ok, certificate wrong`, code);
    }
});

t.test('blames the handshake for a client certificate that the receiver demands', async (t) => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        const versions = { minVersion: version, maxVersion: version };
        const url = await tlsReceiver(t, { ...(await certificate()), ...versions, requestCert: true, rejectUnauthorized: true });
        const { doctor, exporters } = await running(t);
        const { exporter } = await exporters.create({ url, trust: 'all' });
        t.match((await doctor(exporter.id)).findings.at(-1), { part: 'tls', state: 'wrong' }, version);
    }
});

/** A receiver that refuses every client certificate by an alert, as OpenSSL does; Node just hangs up. @returns Its URL. */
async function refusingReceiver(t: Test, { key, cert }: Credentials, version: '-tls1_2' | '-tls1_3'): Promise<string> {
    const folder = t.testdir({ 'key.pem': key, 'cert.pem': cert });
    const port = await freePort();
    const files = ['-key', join(folder, 'key.pem'), '-cert', join(folder, 'cert.pem'), '-CAfile', join(folder, 'cert.pem')];
    const server = spawn(
        'openssl',
        ['s_server', '-accept', `127.0.0.1:${port}`, ...files, '-Verify', '1', '-verify_return_error', version],
        {
            stdio: ['pipe', 'pipe', 'ignore'],
        },
    );
    t.teardown(() => server.kill('SIGKILL'));
    for await (const line of createInterface(server.stdout)) {
        if (line === 'ACCEPT') {
            break;
        }
    }
    return `https://127.0.0.1:${port}/`;
}

t.test('blames the client certificate that a receiver refuses, and not its own', async (t) => {
    const presented = await certificate({ authority: await authority('Unknown') });
    const clientCertificate = { certificate: presented.cert, key: presented.key };
    for (const version of ['-tls1_2', '-tls1_3'] as const) {
        const url = await refusingReceiver(t, await certificate(), version);
        const { doctor, exporters } = await running(t);
        const { exporter } = await exporters.create({ url, trust: 'all', clientCertificate });
        t.match(
            (await doctor(exporter.id)).findings.at(-1),
            {
                part: 'tls',
                state: 'wrong',
                text: /refused the client certificate \(ERR_SSL_\S+_UNKNOWN_CA\)/,
                advice: /tls_client_cert_required/,
            },
            version,
        );
    }
});

t.test('blames what is no step of the way: settings that cannot be used, an access token, a process that ended', async (t) => {
    const result = { status: null, detail: 'So it was', retryAfter: null };
    const far = { ...newProgress(), connect: 2, tls: 3, fingerprint: 'AB' };
    for (const [code, progress, states] of [
        ['token_failed', newProgress(), 'access token wrong'],
        ['invalid_exporter', newProgress(), 'settings wrong'],
        ['invalid_message', newProgress(), 'settings wrong'],
        ['invalid_exporter', far, 'resolve ok, connect ok, tls ok, certificate ok, settings wrong'],
        ['interrupted', newProgress(), 'answer wrong'],
    ] as const) {
        const outcome = outcomeOf({ ...result, code }, progress, 5);
        const { doctor, exporters, start, work } = recordingProcess(t, memoryWebhooks(), {}, async () => outcome);
        await start();
        await work(['default']);
        const { exporter } = await exporters.create({ url: 'https://receiver.example/' });
        const diagnosis = await doctor(exporter.id);
        t.equal(statesOf(diagnosis), `${WELL}, exporter warning, ${states}`, code);
        t.match(diagnosis.findings.at(-1), { text: 'So it was', advice: new RegExp(code) });
    }
});

t.test('names an answer that is no 2xx', async (t) => {
    const server = createServer((request, response) => {
        request.resume();
        response.writeHead(404).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const { doctor, exporters } = await running(t);
    const { exporter } = await exporters.create({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
    const { findings } = await doctor(exporter.id);
    t.match(findings.slice(-2), [
        { part: 'first byte', state: 'ok' },
        { part: 'answer', state: 'wrong', text: /404/, advice: /client_error/ },
    ]);
});

t.test('says that nobody sends', async (t) => {
    const { webhooks } = webhooksOf(options(), { onError: () => {} });
    t.match((await webhooks.doctor()).findings, { 4: { part: 'workers', state: 'wrong', text: 'No process sends' } });
});

t.test('says who sends for each collector, and for which one nobody does', async (t) => {
    const given = options();
    const { doctor, exporters } = await running(t, given, ['default', 'urgent']);
    const workers = async () => (await doctor()).findings.find(({ part }) => part === 'workers');
    t.match(await workers(), {
        state: 'ok',
        text: /^Collectors that are sent for: default \(processes: 1, attempts at once: \d+\), urgent \(processes: 1, attempts at once: \d+\)$/,
    });
    const other = webhooksOf(given, { onError: () => {} }).webhooks;
    await other.start();
    await other.work(['urgent'], { concurrency: 3 });
    t.teardown(() => other.close({ timeout: 100 }));
    t.match((await workers())?.text, /urgent \(processes: 2, /);

    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/', collector: 'elsewhere' });
    t.equal((await workers())?.state, 'ok', 'one that is stopped needs nobody');
    await given.stores.exporters.update(exporter.id, { state: 'running' });
    t.match(await workers(), { state: 'wrong', text: /No process sends for the collector elsewhere/, advice: /--collector elsewhere/ });
});

t.test('names what keeps rows and jobs', async (t) => {
    const { findings } = await (await running(t)).doctor();
    t.match(findings, { 0: { text: 'The memory of this process answers' }, 3: { text: /^The queue in this process has taken/ } });
});

t.test('looks no further than a store that is away', async (t) => {
    const given = options();
    const now = () => Promise.reject(new ScanwireError('UNAVAILABLE', 'The database cannot be used now'));
    const stores = { ...given.stores, deliveries: { ...given.stores.deliveries, now } };
    const { webhooks } = webhooksOf({ ...given, stores }, { onError: () => {} });
    t.match(await webhooks.doctor(), {
        healthy: false,
        findings: [{ part: 'store', state: 'wrong', text: /The database cannot be used now/, advice: String }],
    });
});

t.test('says that the test was not sent where nobody sends for the collector', async (t) => {
    const { exporters, doctor } = recordingProcess(t, memoryWebhooks());
    const { exporter } = await exporters.create({ url: 'https://receiver.example/', collector: 'elsewhere' });
    t.match((await doctor(exporter.id)).findings.at(-1), {
        part: 'answer',
        state: 'wrong',
        text: 'The test was not sent in time',
        advice: /process that sends for the collector elsewhere/,
    });
});

t.test('blames no key for a store that fails while it looks', async (t) => {
    const stores = memoryWebhooks();
    let looks = 0;
    const list = async () => {
        looks += 1;
        return looks === 1 ? await stores.exporters.list() : Promise.reject(new ScanwireError('UNAVAILABLE', 'away'));
    };
    const { doctor } = recordingProcess(t, { ...stores, exporters: { ...stores.exporters, list } });
    await t.rejects(doctor(), { code: 'UNAVAILABLE', message: 'away' });
});

t.test('warns of a clock that differs', async (t) => {
    const given = options();
    const now = async () => new Date(Date.now() + 60_000);
    const stores = { ...given.stores, deliveries: { ...given.stores.deliveries, now } };
    const { webhooks } = webhooksOf({ ...given, stores }, { onError: () => {} });
    t.match((await webhooks.doctor()).findings[1], { part: 'clock', state: 'warning', text: /behind/ });
});

t.test('says that the key ring does not fit, and that the queue is away', async (t) => {
    const given = options();
    const { exporters, doctor } = webhooksOf(given, { onError: () => {} }).webhooks;
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/' });
    await given.stores.exporters.update(exporter.id, { state: 'running' });
    t.equal((await doctor()).findings[2]?.state, 'ok');
    const other = keyRing({ current: 'other', keys: { other: randomBytes(32) } });
    const { webhooks } = webhooksOf({ ...given, keyRing: other }, { onError: () => {} });
    const { findings } = await webhooks.doctor();
    t.match(findings[2], { part: 'keys', state: 'wrong', text: /Missing key k/ });
    t.match(findings[5], { part: 'names', state: 'ok' }, 'of a URL that cannot be read no name is asked for');

    const queue = { ...memoryQueue(), ready: () => Promise.reject(new ScanwireError('UNAVAILABLE', 'away')) };
    const without = webhooksOf({ ...options(), queue }, { onError: () => {} }).webhooks;
    await without.start().catch(() => {});
    t.teardown(() => without.close({ timeout: 100 }));
    t.match((await without.doctor()).findings[3], { part: 'queue', state: 'wrong' });
});

t.test('looks up the names of receivers that are sent to', async (t) => {
    const given = options();
    const { exporters, doctor } = webhooksOf(given, { onError: () => {} }).webhooks;
    const named = async (name: string): Promise<void> => {
        const { exporter } = await exporters.create({ url: `https://${name}/` });
        await given.stores.exporters.update(exporter.id, { state: 'running' });
    };
    await named('first.example.invalid');
    t.match((await doctor()).findings[5], { part: 'names', state: 'wrong', text: 'No addresses for first.example.invalid' });
    await given.stores.exporters.list().then((all) => Promise.all(all.map(({ id }) => given.stores.exporters.remove(id))));
    t.match((await doctor()).findings[5], { part: 'names', state: 'ok' });
});

t.test('asks the name servers of the sender whether they answer, where no receiver has a name', async (t) => {
    let behaviour: NameServerBehaviour = [];
    const server = await nameServer(() => behaviour);
    t.teardown(server.close);
    const stores = memoryWebhooks();
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const naming = (limits: Partial<HttpSenderOptions>) =>
        recordingProcess(t, stores, { guard, sender: httpSender({ guard, nameServers: [server.address], ...limits }) });
    const { doctor, exporters } = naming({});
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    const names = async () => (await doctor()).findings.find(({ part }) => part === 'names');
    t.match(await names(), { state: 'ok', code: 'name_servers_answer', text: /name servers answer$/, advice: null });
    behaviour = 'refuses';
    t.match(await names(), { state: 'ok', code: 'name_servers_answer' }, 'which is an answer');
    behaviour = 'silent';
    t.match(await names(), { state: 'ok', code: 'name_servers_silent', text: /no name server has answered$/, advice: /resolv\.conf/ });
    t.strictSame(new Set(server.questions), new Set(['NS .']), 'of nobody else');

    const asked = server.questions.length;
    const { findings } = await naming({ resolver: 'system' }).doctor();
    t.match(
        findings.find(({ part }) => part === 'names'),
        { state: 'ok', code: 'names_none' },
    );
    t.equal(server.questions.length, asked, 'where names come from elsewhere too');

    behaviour = ['127.0.0.1'];
    await stores.exporters.update(exporter.id, { url: 'http://receiver.test:9/' });
    t.match(await names(), { state: 'ok', code: 'names_known' });
    t.ok(server.questions.includes('A receiver.test'));
});

t.test('looks up no name that is looked up by a proxy', async (t) => {
    const given = options();
    const { exporters, doctor } = webhooksOf(given, { onError: () => {} }).webhooks;
    const through = async (name: string, resolvesNames?: boolean): Promise<string> => {
        const proxy = resolvesNames === undefined ? null : { url: 'http://127.0.0.1:9', resolvesNames };
        const { exporter } = await exporters.create({ url: `https://${name}.example.invalid/`, proxy });
        await given.stores.exporters.update(exporter.id, { state: 'running' });
        return exporter.id;
    };
    const known = await through('known-to-the-proxy', true);
    t.match((await doctor()).findings[5], { part: 'names', state: 'ok', text: 'No receiver has a name to look up' });

    await through('second', false);
    await through('third');
    const text = 'No addresses for second.example.invalid, third.example.invalid';
    t.match((await doctor()).findings[5], { part: 'names', state: 'wrong', text });

    const other = keyRing({ current: 'other', keys: { other: randomBytes(32) } });
    await given.stores.exporters.update(known, { url: 'https://unsealed.example.invalid/' });
    const { webhooks } = webhooksOf({ ...given, keyRing: other }, { onError: () => {} });
    t.match((await webhooks.doctor()).findings[5], { part: 'names', state: 'ok' }, 'of a proxy that cannot be read nothing is asked for');
});

t.test('warns of exporters that their receivers have stopped', async (t) => {
    const given = options();
    const { exporters, doctor } = webhooksOf(given, { onError: () => {} }).webhooks;
    const { exporter } = await exporters.create({ url: 'http://127.0.0.1:9/' });
    await given.stores.exporters.update(exporter.id, { state: 'stopped', stopReason: 'The receiver answered 410 Gone' });
    t.match((await doctor()).findings[6], { part: 'exporters', state: 'warning', text: /410 Gone/ });
});
