import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { connectVetted } from '../../lib/egress/connect.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { Authentication } from '../../lib/webhooks/exporters/authentication.ts';
import { tlsContext } from '../../lib/webhooks/exporters/client-certificate.ts';
import { newProgress, type Outcome } from '../../lib/webhooks/outcomes/outcome.ts';
import { accessTokens } from '../../lib/webhooks/sending/access-tokens.ts';
import { type Connection, connection } from '../../lib/webhooks/sending/connection.ts';
import type { Message } from '../../lib/webhooks/sending/http-sender.ts';
import { secure } from '../../lib/webhooks/sending/receiver-certificate.ts';
import { bearer, HOSTILE_TOKEN_SERVERS, json, SECRET, TOKEN } from '../support/hostile-token-servers.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

/*
 * Token servers and receivers that want more than is theirs: the secret of the client, the token of another exporter, the memory or the time
 * of the sender.
 */

interface Came {
    readonly path: string;
    readonly authorization: string | undefined;
    readonly body: string;
}

/** A server that keeps what comes and answers as told. */
async function server(t: Test, answer: (response: ServerResponse, request: IncomingMessage) => void) {
    const came: Came[] = [];
    const origin = await secureServer(t, async (request, response) => {
        came.push({ path: request.url ?? '', authorization: request.headers.authorization, body: await text(request) });
        answer(response, request);
    });
    return { origin, came };
}

const ok = (response: ServerResponse): void => void response.writeHead(204).end();

function authenticationAt(origin: string, more: object = {}): Authentication {
    return { ca: ROOT.cert, oauth: { tokenUrl: `${origin}/token`, clientId: 'id', clientSecret: SECRET, ca: ROOT.cert, ...more } };
}

function message(url: string, authentication: Authentication, exporterId = 'a'): Message {
    return { exporterId, url, trust: 'strict', headers: [], authentication, body: Buffer.from('{}') };
}

t.test('a token goes to the receiver that it is for, with the exporter that it is of', async (t) => {
    let number = 0;
    const tokens = await server(t, (response) => json(response, bearer(`token-${++number}`)));
    const [first, second] = [await server(t, ok), await server(t, ok)];
    const sender = loopbackSender(t);
    const authentication = authenticationAt(tokens.origin);
    for (let round = 0; round < 2; round += 1) {
        await sender.send(message(first.origin, authentication, 'a'));
        await sender.send(message(first.origin, authentication, 'b'));
    }
    await sender.send(message(second.origin, authentication, 'a'));
    await sender.send(message(second.origin, authenticationAt(tokens.origin, { scope: 'less' }), 'a'));
    t.same(
        first.came.map((one) => one.authorization),
        ['Bearer token-1', 'Bearer token-2', 'Bearer token-1', 'Bearer token-2'],
    );
    t.same(
        second.came.map((one) => one.authorization),
        ['Bearer token-3', 'Bearer token-4'],
    );
    t.notMatch(JSON.stringify([first.came, second.came]), SECRET);
});

t.test('no redirect takes the secret of the client elsewhere', async (t) => {
    const elsewhere = await server(t, (response) => json(response, bearer(TOKEN)));
    for (const status of [301, 302, 303, 307, 308]) {
        const tokens = await server(t, (response) => response.writeHead(status, { location: `${elsewhere.origin}/token` }).end());
        const to = await server(t, ok);
        const outcome = await loopbackSender(t).send(message(to.origin, authenticationAt(tokens.origin)));
        t.match(outcome, {
            code: 'token_failed',
            detail: `No access token: the token server answered ${status}; redirects are not followed`,
        });
        t.equal(to.came.length, 0);
    }
    t.equal(elsewhere.came.length, 0);
});

t.test('nothing that a token server says breaks out, or is repeated', async (t) => {
    for (const answer of HOSTILE_TOKEN_SERVERS) {
        const tokens = await server(t, answer);
        const to = await server(t, ok);
        const outcome = await loopbackSender(t).send(message(to.origin, authenticationAt(tokens.origin)));
        t.match(outcome, { code: 'token_failed', detail: /^No access token: the token server / }, outcome.detail);
        t.notMatch(JSON.stringify(outcome), /hidden|t0ken/);
        t.equal(to.came.length, 0);
    }
});

t.test('a token server has half of an attempt, however it spends it', async (t) => {
    const to = await server(t, ok);
    const drops = await server(t, (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const timer = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(timer));
    });
    const silent = await server(t, () => {});
    for (const { origin } of [drops, silent]) {
        const outcome = await loopbackSender(t, { attemptTimeout: 2_000 }).send(message(to.origin, authenticationAt(origin)));
        t.match(outcome, { code: 'token_failed', detail: 'No access token: the token server had not answered after 1000 ms' });
    }
    const outcome = await loopbackSender(t, { attemptTimeout: 2_000 }).send(message(to.origin, authenticationAt('https://good.test:1')));
    t.match(outcome, { code: 'token_failed', detail: 'No access token: The connection to 127.0.0.1:1 was refused' });
    t.equal(to.came.length, 0);
});

t.test('a token server may send interim answers first, as a receiver may', async (t) => {
    const tokens = await server(t, (response) => {
        response.writeContinue();
        response.writeEarlyHints({ link: '</a>; rel=preload' });
        json(response, bearer(TOKEN));
    });
    const to = await server(t, ok);
    t.match(await loopbackSender(t).send(message(to.origin, authenticationAt(tokens.origin))), { code: 'delivered' });
    t.match(to.came, [{ authorization: `Bearer ${TOKEN}` }]);
});

t.test('a token server is vetted and trusted as a receiver is', async (t) => {
    const tokens = await server(t, (response) => json(response, bearer(TOKEN)));
    const to = await server(t, ok);
    const closed = egressGuard({ allow: [`127.0.0.1:${new URL(to.origin).port}`] });
    const outcomes: readonly [Promise<Outcome>, RegExp][] = [
        [
            loopbackSender(t, { guard: closed }).send(message(to.origin, authenticationAt(tokens.origin))),
            /a loopback address, which may not/,
        ],
        [loopbackSender(t).send(message(to.origin, authenticationAt(tokens.origin, { ca: undefined }))), /unknown authority/],
        [
            loopbackSender(t).send({ ...message(to.origin, authenticationAt(tokens.origin, { ca: undefined })), trust: 'all' }),
            /unknown authority/,
        ],
    ];
    for (const [outcome, detail] of outcomes) {
        t.match(await outcome, { code: 'token_failed', detail });
    }
    t.equal(tokens.came.length + to.came.length, 0);
});

/** Opens connections to servers on loopback addresses, and keeps to what. */
function opener() {
    const opened: URL[] = [];
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const connect = connectVetted({
        guard,
        dnsTimeout: 1000,
        connectTimeout: 1000,
        lookup: (_n, _o, done) => done(null, [{ address: '127.0.0.1' }]),
    });
    const open = async (url: URL, way: Pick<Authentication, 'ca'>, signal: AbortSignal): Promise<Connection> => {
        opened.push(url);
        const progress = newProgress();
        const socket = await connect({ host: url.hostname, port: Number(url.port), signal, progress });
        const handshake = { socket, host: url.hostname, trust: 'strict', timeout: 1000, signal, now: new Date(), progress } as const;
        const secured = await secure({ ...handshake, context: tlsContext(way) });
        return connection({ socket: secured, origin: url.origin, address: null, fingerprint: null, certificate: null });
    };
    return { opened, open };
}

t.test('exporters without number fill no memory with their tokens', async (t) => {
    let number = 0;
    const { origin } = await server(t, (response) => json(response, bearer(`token-${++number}`)));
    const tokens = accessTokens({ connect: opener().open, timeout: 5_000, maxCached: 2 });
    const { oauth } = authenticationAt(origin);
    const authentication = { oauth: oauth as NonNullable<typeof oauth> };
    const tokenOf = async (exporterId: string): Promise<string> =>
        (await tokens.of({ exporterId, origin: 'https://receiver.test', authentication }, new AbortController().signal)).token;
    const asked: string[] = [];
    for (const exporterId of ['a', 'b', 'a', 'c', 'b', 'c', 'a']) {
        asked.push(await tokenOf(exporterId));
    }
    t.same(asked, ['token-1', 'token-2', 'token-1', 'token-3', 'token-2', 'token-3', 'token-4'], 'the oldest is asked for again');
});

t.test('no attempt waits for a token server while its token holds', async (t) => {
    let now = 0;
    let silent = false;
    const held: ServerResponse[] = [];
    const { origin } = await server(t, (response) => (silent ? held.push(response) : json(response, bearer('token-1'))));
    const { opened, open } = opener();
    const tokens = accessTokens({ connect: open, timeout: 1_000, monotonic: () => now });
    const { oauth } = authenticationAt(origin);
    const use = { exporterId: 'e', origin: 'https://receiver.test', authentication: { oauth: oauth as NonNullable<typeof oauth> } };
    const one = async () => (await tokens.of(use, new AbortController().signal)).token;

    t.equal(await one(), 'token-1');
    now = 3_541_000;
    silent = true;
    t.same(await Promise.all([one(), one(), one()]), ['token-1', 'token-1', 'token-1']);
    await until(() => held.length === 1);
    t.equal(await one(), 'token-1', 'while the server has not answered');
    for (const response of held) {
        json(response, bearer('token-2'));
    }
    await until(async () => (await one()) === 'token-2', 5_000);
    t.equal(opened.length, 2, 'once for all of them');
});

t.test('tokens are renewed before they end, and a receiver that refuses them all causes no storm', async (t) => {
    let now = 0;
    let number = 0;
    let away = false;
    const { origin, came } = await server(t, (response) =>
        away ? response.writeHead(503).end() : json(response, bearer(`token-${++number}`)),
    );
    const { opened, open } = opener();
    const tokens = accessTokens({ connect: open, timeout: 5_000, monotonic: () => now });
    const { oauth } = authenticationAt(origin);
    const use = { exporterId: 'e', origin: 'https://receiver.test', authentication: { oauth: oauth as NonNullable<typeof oauth> } };
    const one = () => tokens.of(use, new AbortController().signal);

    t.equal((await one()).token, 'token-1');
    now = 3_539_000;
    t.equal((await one()).token, 'token-1');
    now = 3_541_000;
    away = true;
    t.equal((await one()).token, 'token-1', 'which still holds');
    await until(() => came.length === 2);
    let messages = 0;
    await until(async () => (await one()).token === 'token-1' && ++messages === 20);
    t.equal(opened.length, 2, 'and is not renewed for each message');
    now = 3_552_000;
    away = false;
    await until(async () => {
        now += 100;
        return (await one()).token === 'token-2';
    });
    t.equal(opened.length, 3);

    (await one()).answered(200);
    (await one()).answered(401);
    t.equal((await one()).token, 'token-3', 'one that was taken before is replaced');
    (await one()).answered(401);
    (await one()).answered(401);
    t.equal((await one()).token, 'token-3', 'its successor is not, at once');
    now += 61_000;
    (await one()).answered(401);
    t.equal((await one()).token, 'token-4');
    (await one()).answered(null);

    away = true;
    now += 3_601_000;
    await t.rejects(one(), { code: 'token_failed', message: 'No access token: the token server answered 503' });
    const given = new AbortController();
    given.abort(new Error('given up'));
    await t.rejects(tokens.of(use, given.signal), { message: 'given up' });
});
