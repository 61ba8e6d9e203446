import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import type { NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import { builtServer } from '../support/built-server.ts';
import { authority, certificate } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { HOSTILE_PROXIES } from '../support/hostile-proxies.ts';
import { bearer, SECRET as CLIENT_SECRET, HOSTILE_TOKEN_SERVERS, json } from '../support/hostile-token-servers.ts';
import { traces, WRITINGS } from '../support/text-writings.ts';

/*
 * Hostile receivers, token servers and proxies, and exporters that lead where they may not, of the server that `serve` starts. What one attempt comes to is looked
 * at more closely by the files beside this one.
 */

/** What the deployment has opened, and what it has not: both of this machine. */
const [OPEN, CLOSED] = ['127.0.0.2', '127.0.0.1'];
const ROOT = await authority('Private root');
const SERVER = await certificate({ name: OPEN, authority: ROOT });

const metrics = await freePort();
const server = await builtServer(t, { args: ['--metrics', String(metrics)], env: { SCANWIRE_EGRESS_ALLOW: OPEN } });

async function listening(t: Test, made: Server & { closeAllConnections?(): void }, address = OPEN): Promise<string> {
    await once(made.listen(0, address), 'listening');
    t.teardown(() => {
        made.closeAllConnections?.();
        made.close();
    });
    return `${address}:${(made.address() as AddressInfo).port}`;
}

const plain = async (t: Test, serve: RequestListener, address = OPEN) => `http://${await listening(t, createServer(serve), address)}`;
const secure = async (t: Test, serve: RequestListener) => `https://${await listening(t, createSecureServer(SERVER, serve))}`;

/** What a test of a new exporter came to, as its operator is shown it. */
async function tested(settings: NewExporterSettings) {
    const { id } = await server.admin('createExporter', settings);
    const { deliveryId, attempt } = await server.admin('testExporter', { id });
    return { id, deliveryId, attempt };
}

/** All that the server shows of a delivery: to its operator, to who has a key, and in its log. */
async function shown(deliveryId: string): Promise<string> {
    const headers = { token: await key };
    const answers = await Promise.all([
        server.askedOfSocket(`/deliveries/${deliveryId}`),
        server.askedOfSocket(`/attempts?deliveryId=${deliveryId}`),
        server.askedOfSocket('/exporters'),
        server.asked(`/webhook-exporter/deliveries/${deliveryId}`, { headers }),
        server.asked('/webhook-exporter/deliveries', { headers }),
    ]);
    return answers.map(({ text }) => text).join('\n') + server.output();
}

const key = server.keyWith('deliveries:read');

t.test('shows no secret that a receiver repeats, however it writes it', async (t) => {
    const secrets = {
        secret: `S3cret"of<the>'exporter'&co/ö+1%`,
        token: 'he4der-T0ken/with+signs=',
        path: 'p4th-T0ken',
        query: 'qu3ry&T0ken',
        username: 'our-u5er',
        password: `pa55"w<ö>rd`,
    };
    let dump = '';
    let write = (text: string): string => text;
    const origin = await plain(t, async (request, response) => {
        const body = await text(request);
        const names = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
        dump = `${request.method} ${request.url}\n${names.join('\n')}\n\n${body}`;
        response.writeHead(401).end(write(dump));
    });
    const { id } = await server.admin('createExporter', {
        url: `${origin}/hooks/${secrets.path}?key=${encodeURIComponent(secrets.query)}`,
        secret: secrets.secret,
        headers: [['X-Token', `Bearer ${secrets.token}`]],
        basic: { username: secrets.username, password: secrets.password },
        signatures: ['base64', 'hex', 'sha256-hex', 'standard-webhooks'],
    });
    for (const [name, writing] of Object.entries(WRITINGS)) {
        write = writing;
        const { deliveryId, attempt } = await server.admin('testExporter', { id });
        t.match(attempt?.responseBody?.text, '***', `${name}: it was repeated and masked`);
        const sent = [...dump.matchAll(/^(?:x-vendor-signature.*|webhook-signature|authorization): (.+)$/gm)].map(
            ([, value = '']) => value,
        );
        t.ok(sent.length > 4, 'signatures and credentials were sent');
        const everywhere = await shown(deliveryId);
        for (const secret of [...Object.values(secrets), ...sent]) {
            const found = traces(secret).filter((trace) => trace.length > 3 && everywhere.includes(trace));
            t.same(found, [], `${name}: ${secret}`);
        }
    }
});

t.test('takes from a token server nothing that breaks out, and repeats nothing that it says', async (t) => {
    const came: string[] = [];
    const receiver = await secure(t, (request, response) => {
        came.push(String(request.url));
        response.writeHead(204).end();
    });
    const elsewhere = await secure(t, (request, response) => {
        came.push(String(request.url));
        json(response, bearer('stolen'));
    });
    const oauth = (origin: string) => ({ tokenUrl: `${origin}/token`, clientId: 'id', clientSecret: CLIENT_SECRET, ca: ROOT.cert });
    const redirects = [301, 302, 303, 307, 308].map(
        (status): RequestListener =>
            (_, response) =>
                response.writeHead(status, { location: `${elsewhere}/token` }).end(),
    );
    const hostile = [
        ...HOSTILE_TOKEN_SERVERS.map(
            (answer): RequestListener =>
                (_, response) =>
                    answer(response),
        ),
        ...redirects,
    ];
    await Promise.all(
        hostile.map(async (answer) => {
            const origin = await secure(t, (request, response) => request.resume().on('end', () => answer(request, response)));
            const { deliveryId, attempt } = await tested({ url: `${receiver}/in`, ca: ROOT.cert, oauth: oauth(origin) });
            t.match(attempt, { code: 'token_failed', detail: /^No access token: the token server / }, `${attempt?.detail}`);
            t.notMatch(await shown(deliveryId), /hidden-client|t0ken-of/);
        }),
    );
    t.same(came, [], 'nothing went to the receiver, or elsewhere');

    const good = await secure(t, (_, response) => json(response, bearer('good')));
    t.match(await tested({ url: `${receiver}/in`, ca: ROOT.cert, oauth: oauth(good) }), { attempt: { code: 'delivered' } });
    t.same(came, ['/in']);
});

t.test('loses to a hostile proxy one attempt and nothing more', { timeout: 60_000 }, async (t) => {
    const came: string[] = [];
    const receiver = await secure(t, (request, response) => {
        came.push(String(request.url));
        response.writeHead(204).end();
    });
    await Promise.all(
        Object.entries(HOSTILE_PROXIES).map(async ([name, [serve, detail]]) => {
            let received = '';
            const open = new Set<Socket>();
            const proxy = createTcpServer((socket) => {
                open.add(socket);
                socket.on('close', () => open.delete(socket)).on('error', () => {});
                socket.on('data', (bytes) => {
                    received += bytes.toString('latin1');
                });
                socket.once('data', () => serve(socket));
            });
            const url = `http://user:hidden@${await listening(t, proxy)}`;
            const headers = [['X-Secret', 'hidden']] as const;
            const { attempt, deliveryId } = await tested({ url: receiver, ca: ROOT.cert, proxy: { url }, headers });
            t.match(attempt, { code: 'proxy_failed', status: null }, name);
            t.equal(attempt?.detail, detail.replace('MS', '5000'), name);
            t.notMatch(await shown(deliveryId), /hidden|mail\.test/, name);
            t.match(received, /^CONNECT /);
            t.notMatch(received, 'hidden', 'the message waits for the tunnel');
            await until(() => open.size === 0);
        }),
    );
    t.same(came, []);
});

t.test('shows no receiver the certificate of another exporter, or its connection', async (t) => {
    const seen: (readonly [exporter: unknown, shown: string, port: number | undefined])[] = [];
    const made = createSecureServer({ ...SERVER, ca: ROOT.cert, requestCert: true, rejectUnauthorized: false }, (request, response) => {
        const socket = request.socket as TLSSocket;
        seen.push([request.headers['x-exporter'], socket.getPeerX509Certificate()?.subject ?? 'none', socket.remotePort]);
        request.resume().on('end', () => response.writeHead(204).end());
    });
    const url = `https://${await listening(t, made)}/`;
    const identity = async (name: string) => {
        const { cert, key } = await certificate({ name, authority: ROOT });
        return { ca: ROOT.cert, clientCertificate: { certificate: cert, key }, headers: [['X-Exporter', `CN=${name}`]] as const };
    };
    const none = { ca: ROOT.cert, headers: [['X-Exporter', 'none']] as const };
    const exporters = await Promise.all(
        [await identity('one'), await identity('two'), none].map((settings) => server.admin('createExporter', { url, ...settings })),
    );
    const everybody = async (): Promise<void> => {
        for (const { id } of exporters) {
            t.match(await server.admin('testExporter', { id }), { attempt: { code: 'delivered' } });
        }
    };
    await everybody();
    await everybody();
    const [first] = exporters;
    await server.admin('updateExporter', { id: String(first?.id), ...(await identity('renewed')) });
    await everybody();
    await server.admin('updateExporter', { id: String(first?.id), ...none, clientCertificate: null });
    await everybody();
    t.same(
        seen.filter(([exporter, shown]) => exporter !== shown),
        [],
    );
    t.same([...new Set(seen.map(([exporter]) => exporter))].sort(), ['CN=one', 'CN=renewed', 'CN=two', 'none']);
    const byPort = new Map(seen.map(([exporter, , port]) => [port, exporter]));
    t.same(
        seen.filter(([exporter, , port]) => byPort.get(port) !== exporter),
        [],
        'no connection is of two',
    );
});

t.test('keeps and shows what a certificate says of itself, and no sign that a terminal acts on', async (t) => {
    // However the text is cut, no half of a sign is left, which no database keeps.
    for (const name of ['a\u202etxt.exe\u2066\u009d0owned\u2028', '\u{1f600}'.repeat(120), `a${'\u{1f600}'.repeat(120)}`]) {
        const own = await certificate({ name, withoutAlternativeName: true });
        const made = createSecureServer(own, (request, response) => request.resume().on('end', () => response.writeHead(204).end()));
        const { deliveryId, attempt } = await tested({ url: `https://${await listening(t, made)}/`, trust: 'all' });
        t.match(attempt, { code: 'delivered', certificate: { issuer: String } }, encodeURI(name));
        const seen = attempt?.certificate?.issuer ?? '';
        t.equal(seen, Buffer.from(seen).toString(), 'well-formed');
        const scraped = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
        t.ok(scraped.includes(seen), 'in the metrics');
        for (const text of [scraped, await shown(deliveryId), seen]) {
            t.notMatch(text, /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/, encodeURI(name));
        }
    }
});

t.test('opens no connection to what the deployment has not opened, whoever owns the exporter', async (t) => {
    let connections = 0;
    const trap = createTcpServer((socket) => {
        connections += 1;
        socket.on('error', () => {}).destroy();
    });
    const closed = await listening(t, trap, CLOSED);
    const port = closed.split(':')[1];
    const receiver = await plain(t, (request, response) => request.resume().on('end', () => response.writeHead(204).end()));
    const names = [
        '127.0.0.1',
        '2130706433',
        '0x7f.1',
        '0177.0.0.1',
        '127.1',
        '0.0.0.0',
        '[::1]',
        '[::]',
        '[::ffff:127.0.0.1]',
        '[::ffff:7f00:1]',
    ];
    const hosts = [
        ...names,
        '[64:ff9b::7f00:1]',
        '[2002:7f00:1::]',
        'localhost',
        'LOCALHOST.',
        'x.localhost',
        'user@127.0.0.1',
        '127。0。0。1',
    ];
    const redirecting = await Promise.all(
        [301, 302, 307, 308].map((status) =>
            plain(t, (_, response) => response.writeHead(status, { location: `http://${closed}/` }).end()),
        ),
    );
    const oauth = { tokenUrl: `https://${closed}/token`, clientId: 'id', clientSecret: 'secret', ca: ROOT.cert };
    const attacks: readonly NewExporterSettings[] = [
        ...hosts.flatMap((host) => [{ url: `http://${host}:${port}/` }, { url: receiver, proxy: { url: `http://${host}:${port}` } }]),
        ...redirecting.map((url) => ({ url })),
        { url: receiver, oauth },
        { url: server.origin, trust: 'all' },
        { url: 'http://169.254.169.254/latest/meta-data' },
        { url: 'http://192.0.0.192/opc/v2' },
    ];
    let saved = 0;
    for (const owner of ['ann', 'bob', null]) {
        for (const settings of attacks) {
            const about = `${owner}: ${JSON.stringify(settings)}`;
            try {
                const { attempt, id } = await tested({ ...settings, owner });
                saved += 1;
                t.ok(attempt !== null && attempt.code !== 'delivered' && (attempt.status ?? 300) >= 300, `${about}: ${attempt?.code}`);
                await server.admin('diagnoseExporter', { id }).catch(() => {});
            } catch (error) {
                t.match(error, { code: 'INVALID_INPUT' }, about);
            }
        }
    }
    t.ok(saved > 10, `${saved} were saved, and called`);

    const { id } = await server.admin('createExporter', { url: receiver, start: true });
    const moved = server.admin('updateExporter', { id, url: `http://${closed}/` });
    t.notMatch(await moved.then(({ test }) => test.attempt?.code).catch(({ code }) => code), 'delivered');
    t.equal(connections, 0);
});
