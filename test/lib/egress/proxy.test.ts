import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, isIP, type Socket } from 'node:net';
import type { TLSSocket, TlsOptions } from 'node:tls';
import t, { type Test } from 'tap';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { parseProxyUrl } from '../../../lib/egress/proxy.ts';
import type { Authentication } from '../../../lib/webhooks/exporters/authentication.ts';
import type { Message } from '../../../lib/webhooks/sending/http-sender.ts';
import { authority, certificate } from '../../support/certificates.ts';
import { loopbackSender, ROOT, secureServer } from '../../support/token-server.ts';

const PROXY = await certificate({ authority: ROOT, name: 'proxy.test' });

interface Proxy {
    readonly url: string;
    /** What it was asked for, in the order of time. */
    readonly asked: {
        readonly target: string | undefined;
        readonly host: string | undefined;
        readonly authorization: string | undefined;
    }[];
    /** What it has seen go through, of both sides. */
    seen(): string;
}

/** A proxy, to which every name is on loopback, that refuses a target with the status that `refuse` gives. */
async function proxy(
    t: Test,
    { secure = false, refuse = () => 0 }: { secure?: boolean | TlsOptions; refuse?: (target: string) => number } = {},
): Promise<Proxy> {
    const asked: Proxy['asked'] = [];
    const sockets = new Set<Socket>();
    let seen = '';
    const server: Server = secure === false ? createServer() : createSecureServer(secure === true ? PROXY : secure);
    server.on('connect', ({ url = '', headers }, client) => {
        asked.push({ target: url, host: headers.host, authorization: headers['proxy-authorization'] });
        const status = refuse(url);
        if (status > 0) {
            client.end(`HTTP/1.1 ${status} No\r\nContent-Length: 2\r\n\r\nno`);
            return;
        }
        const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(url) ?? [];
        const target = connect(Number(port), isIP(host) === 0 ? '127.0.0.1' : host, () => {
            client.write('HTTP/1.0 200 Connection established\r\nVia: something\r\n\r\n');
            client.pipe(target).pipe(client);
        });
        for (const socket of [client as Socket, target]) {
            sockets.add(socket);
            socket.on('error', () => client.destroy());
            socket.on('data', (chunk) => {
                seen += chunk.toString('latin1');
            });
        }
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
        for (const socket of sockets) {
            socket.destroy();
        }
        server.closeAllConnections();
        server.close();
    });
    const { port } = server.address() as AddressInfo;
    return { url: secure !== false ? `https://proxy.test:${port}` : `http://127.0.0.1:${port}/`, asked, seen: () => seen };
}

interface Came {
    readonly headers: IncomingHttpHeaders;
    readonly servername: unknown;
}

async function receiver(t: Test, secure = true): Promise<{ readonly url: string; readonly port: string; readonly came: Came[] }> {
    const came: Came[] = [];
    const listener: Parameters<typeof createServer>[1] = (request, response) => {
        came.push({ headers: request.headers, servername: (request.socket as TLSSocket).servername });
        request.resume().on('end', () => response.writeHead(204).end());
    };
    if (secure) {
        const url = await secureServer(t, listener);
        return { url, port: new URL(url).port, came };
    }
    const server = createServer(listener).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const port = String((server.address() as AddressInfo).port);
    return { url: `http://good.test:${port}`, port, came };
}

function message(url: string, authentication: Authentication): Message {
    return {
        exporterId: 'e',
        url: `${url}/hook?t0ken`,
        trust: 'strict',
        headers: [],
        authentication,
        body: Buffer.from('{"a":"plain text"}'),
    };
}

/** The URL with user and password. */
const withUser = (url: string): string => url.replace('//', '//us%40er:p%3Ass%20w@');

for (const secure of [false, true]) {
    t.test(`goes through a proxy that is asked in ${secure ? 'https' : 'http'}, end to end to the receiver`, async (t) => {
        const [through, to] = [await proxy(t, { secure }), await receiver(t)];
        const sender = loopbackSender(t);
        const way = { ca: ROOT.cert, proxy: { url: withUser(through.url), ...(secure && { ca: ROOT.cert }) } };
        const outcome = await sender.send(message(to.url, way));
        t.match(
            outcome,
            { code: 'delivered', address: '127.0.0.1', timings: { dns: Number, connect: Number, tls: Number } },
            outcome.detail,
        );
        t.match(await sender.send(message(to.url, way)), { code: 'delivered' });
        const target = `127.0.0.1:${to.port}`;
        const authorization = `Basic ${Buffer.from('us@er:p:ss w').toString('base64')}`;
        t.same(through.asked, [{ target, host: target, authorization }], 'one tunnel, to the vetted address');
        t.match(to.came[0], { servername: 'good.test', headers: { host: `good.test:${to.port}`, 'proxy-authorization': undefined } });
        t.notMatch(through.seen(), /plain text|t0ken/);
    });
}

t.test('goes through it to a receiver in plain http, and to a token server', async (t) => {
    const [through, to] = [await proxy(t), await receiver(t, false)];
    const tokens = await secureServer(t, (request, response) => {
        request.resume();
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"access_token":"abc","token_type":"bearer"}');
    });
    const oauth = { tokenUrl: `${tokens}/`, clientId: 'id', clientSecret: 'secret', ca: ROOT.cert };
    t.match(await loopbackSender(t).send(message(to.url, { oauth, proxy: { url: through.url } })), { code: 'delivered' });
    t.match(to.came, [{ headers: { authorization: 'Bearer abc', host: `good.test:${to.port}` } }]);
    t.same(
        through.asked.map(({ target }) => target),
        [`127.0.0.1:${new URL(tokens).port}`, `127.0.0.1:${to.port}`],
    );
});

t.test('gives a name only to a proxy that is to resolve it, and vets what it can', async (t) => {
    const [through, to] = [await proxy(t), await receiver(t)];
    const allow = [`127.0.0.1:${new URL(through.url).port}`];
    const lookup: Parameters<typeof loopbackSender>[1] = { guard: egressGuard({ allow }) };
    const way = (resolvesNames: boolean): Authentication => ({ ca: ROOT.cert, proxy: { url: through.url, resolvesNames } });
    t.match(await loopbackSender(t, lookup).send(message(to.url, way(false))), { code: 'address_blocked' });
    t.match(await loopbackSender(t, lookup).send(message(`https://127.0.0.1:${to.port}`, way(true))), { code: 'address_blocked' });
    t.match(await loopbackSender(t, lookup).send(message('https://metadata.google.internal', way(true))), { code: 'address_blocked' });
    t.same(through.asked, []);

    const outcome = await loopbackSender(t, lookup).send(message(to.url, way(true)));
    t.match(outcome, { code: 'delivered', address: null, timings: { dns: null } }, outcome.detail);
    t.match(through.asked, [{ target: `good.test:${to.port}` }]);
});

t.test('says what is wrong with the proxy, and takes it for no fault of the receiver or of its own', async (t) => {
    const to = await receiver(t);
    const refusing = async (status: number) => (await proxy(t, { refuse: () => status })).url;
    const closed = egressGuard({ allow: [`127.0.0.1:${to.port}`] });
    for (const [url, code, detail, options] of [
        [await refusing(407), 'proxy_refused', 'The proxy answered 407: it wants other credentials'],
        [await refusing(502), 'proxy_refused', 'The proxy answered 502'],
        [await refusing(302), 'proxy_refused', 'The proxy answered 302'],
        ['http://127.0.0.1:1', 'proxy_failed', 'No connection to the proxy: The connection to 127.0.0.1:1 was refused'],
        [(await proxy(t, { secure: true })).url, 'proxy_failed', 'The proxy presented a certificate that is not trusted'],
        [to.url.replace('https', 'http'), 'proxy_failed', 'The proxy closed the connection without an answer'],
        [(await proxy(t)).url.replace('http:', 'https:'), 'proxy_failed', /^No connection to the proxy: .* does not speak TLS/],
        [(await proxy(t)).url, 'proxy_failed', /^No connection to the proxy: .*which may not be called/, { guard: closed }],
        ['http://127.0.0.1:80/path', 'invalid_exporter', 'Proxy.url must end with its host or port'],
    ] as const) {
        const outcome = await loopbackSender(t, { connectTimeout: 1_000, ...options }).send(
            message(to.url, { ca: ROOT.cert, proxy: { url: withUser(url) } }),
        );
        t.match(outcome, { code, detail });
        t.notMatch(JSON.stringify(outcome), /us@er|us%40er|p:ss/);
    }
    t.same(to.came, []);
});

t.test('gives no credentials to a proxy whose certificate is right but for its short key', async (t) => {
    const to = await receiver(t);
    const root = await authority('RSA root', { rsa: 2048 });
    for (const [rsa, code] of [
        [2048, 'delivered'],
        [1024, 'proxy_failed'],
    ] as const) {
        const secure = { ...(await certificate({ authority: root, name: 'proxy.test', rsa })), ciphers: 'DEFAULT@SECLEVEL=0' };
        const weak = await proxy(t, { secure });
        const way = { ca: ROOT.cert, proxy: { url: withUser(weak.url), ca: root.cert } };
        const outcome = await loopbackSender(t).send(message(to.url, way));
        t.match(outcome, {
            code,
            ...(rsa < 2048 && { detail: /^(?:The proxy presented a certificate with an RSA key of 1024 bits|No conn)/ }),
        });
        t.equal(weak.asked.length, rsa < 2048 ? 0 : 1);
    }
});

t.test('tries a further address of the receiver where the proxy does not get through to one', async (t) => {
    const to = await receiver(t);
    const addresses = [{ address: '127.0.0.9' }, { address: '127.0.0.1' }];
    const lookup = {
        lookup: (_name: string, _options: object, done: (error: null, all: typeof addresses) => void) => done(null, addresses),
    };
    const picky = await proxy(t, { refuse: (target) => (target.startsWith('127.0.0.9:') ? 503 : 0) });
    const way = (url: string): Authentication => ({ ca: ROOT.cert, proxy: { url } });
    t.match(await loopbackSender(t, lookup).send(message(to.url, way(picky.url))), { code: 'delivered', address: '127.0.0.1' });
    t.equal(picky.asked.length, 2);

    const wants = await proxy(t, { refuse: () => 407 });
    t.match(await loopbackSender(t, lookup).send(message(to.url, way(wants.url))), { code: 'proxy_refused' });
    t.equal(wants.asked.length, 1);
});

t.test('shares no tunnel between proxies, and none with what goes straight', async (t) => {
    const [one, two, to] = [await proxy(t), await proxy(t), await receiver(t)];
    const sender = loopbackSender(t);
    const ways: Authentication[] = [
        { ca: ROOT.cert, proxy: { url: one.url } },
        { ca: ROOT.cert, proxy: { url: two.url } },
        { ca: ROOT.cert },
    ];
    for (const way of [...ways, ...ways]) {
        t.match(await sender.send(message(to.url, way)), { code: 'delivered' });
    }
    t.same([one.asked.length, two.asked.length, to.came.length], [1, 1, 6]);
});

t.test('reads URLs of proxies, and refuses what says something else', async (t) => {
    t.match(parseProxyUrl('http://proxy.example.com:3128'), { host: 'proxy.example.com', port: 3128, credentials: null });
    t.match(parseProxyUrl('https://only-user@[2001:db8::1]/'), {
        host: '2001:db8::1',
        port: 443,
        credentials: { username: 'only-user', password: '' },
    });
    t.match(parseProxyUrl('http://u:p%40:q@proxy.example.com'), { port: 80, credentials: { username: 'u', password: 'p@:q' } });
    for (const [text, fault] of [
        ['socks5://proxy.example.com', 'not_absolute'],
        ['proxy.example.com:3128', 'not_absolute'],
        ['http://proxy.example.com/path', 'path'],
        ['http://proxy.example.com/?a', 'path'],
        ['http://a%zz:b@proxy.example.com', 'credentials'],
        ['http://a%0a:b@proxy.example.com', 'credentials'],
        ['http://a%3ab:c@proxy.example.com', 'credentials'],
        ['http://a@b@proxy.example.com', 'credentials'],
        ['http://proxy.example.com:0', 'port_zero'],
    ] as const) {
        t.equal(parseProxyUrl(text), fault, text);
    }
});
