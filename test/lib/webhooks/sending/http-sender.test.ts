import { spawn } from 'node:child_process';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import net from 'node:net';
import t, { type Test } from 'tap';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { SENDER_HEADERS } from '../../../../lib/webhooks/messages/message-headers.ts';
import { newProgress } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { type Connection, connection } from '../../../../lib/webhooks/sending/connection.ts';
import { connectionPool } from '../../../../lib/webhooks/sending/connection-pool.ts';
import { exchange } from '../../../../lib/webhooks/sending/http-exchange.ts';
import { type HttpSenderOptions, httpSender, type Message, type Sender } from '../../../../lib/webhooks/sending/http-sender.ts';
import { answers, BAD_RECEIVERS, type Behaviour, type Receiver, receiver } from '../../../support/bad-receiver.ts';
import { nameServer } from '../../../support/name-server.ts';

const guard = egressGuard({ allow: ['127.0.0.0/8'] });
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const SECRET = 'Bearer 5ecr3t';

// whatever a receiver does, nothing may escape
const escaped: unknown[] = [];
process.on('unhandledRejection', (error) => escaped.push(error));
process.on('uncaughtExceptionMonitor', (error) => escaped.push(error));

function senderFor(t: Test, options: Partial<HttpSenderOptions> = {}): Sender {
    const sender = httpSender({ guard, attemptTimeout: 20_000, ...options });
    t.teardown(() => sender.close());
    return sender;
}

async function receiverFor(t: Test, behaviour: Behaviour): Promise<Receiver> {
    const made = await receiver(behaviour);
    t.teardown(() => made.close());
    return made;
}

function message(port: number, more: Partial<Message> = {}): Message {
    return {
        exporterId: 'exporter-1',
        url: `http://127.0.0.1:${port}/hook?token=qu3ry`,
        trust: 'strict',
        headers: [
            ['X-Vendor-Event', 'test'],
            ['Authorization', SECRET],
        ],
        body: Buffer.from('{"a":1}'),
        ...more,
    };
}

/** Answers after a moment, so that the connection is no longer new then. */
const answersLate: Behaviour = async (socket, request) => {
    for (;;) {
        await request();
        setTimeout(() => socket.write(OK), 20);
    }
};

/** A connection to a receiver, as the sender makes them. */
async function connected(port: number): Promise<Connection> {
    const socket = net.connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return connection({ socket, origin: `http://127.0.0.1:${port}`, address: '127.0.0.1', fingerprint: null, certificate: null });
}

/** The sockets that are made on this side meanwhile. */
async function clientSockets(work: () => Promise<unknown>): Promise<net.Socket[]> {
    const sockets: net.Socket[] = [];
    const note = (made: unknown): void => {
        sockets.push((made as { readonly socket: net.Socket }).socket);
    };
    diagnostics.subscribe('net.client.socket', note);
    await work();
    diagnostics.unsubscribe('net.client.socket', note);
    return sockets;
}

t.test('comes to the right outcome with a receiver that', async (t) => {
    t.jobs = 8;
    for (const [name, { behaviour, code, status, untilDeadline, bodySize = 7, retryAfter = null }] of Object.entries(BAD_RECEIVERS)) {
        t.test(name, async (t) => {
            const { port } = await receiverFor(t, behaviour);
            const sender = senderFor(t, untilDeadline && { attemptTimeout: 1500 });
            const outcome = await sender.send(message(port, { body: Buffer.alloc(bodySize, 'x') }));
            t.match(outcome, { code, status, retryAfter, address: '127.0.0.1' });
            t.notMatch(outcome.detail, /5ecr3t|qu3ry|hook/, 'says nothing secret');
            t.ok(outcome.timings.total >= (untilDeadline ? 1400 : 0));
        });
    }
});

t.test('writes the message as it is, and says nothing else', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const outcome = await senderFor(t).send(message(target.port, { body: Buffer.from('{"text":"ü"}') }));
    t.match(outcome, { code: 'delivered', status: 200, detail: 'Answered 200', retryAfter: null, fingerprint: null });
    t.match(outcome.timings, { dns: null, tls: null, connect: Number, firstByte: Number, total: Number });
    t.same(Buffer.from(target.received(), 'latin1').toString().split('\r\n'), [
        'POST /hook?token=qu3ry HTTP/1.1',
        `host: 127.0.0.1:${target.port}`,
        'connection: keep-alive',
        'X-Vendor-Event: test',
        `Authorization: ${SECRET}`,
        'Accept-Encoding: identity',
        'content-length: 13',
        '',
        '{"text":"ü"}',
    ]);
    const names = [...target.received().matchAll(/^([\w-]+): /gm)].map(([, name = '']) => name.toLowerCase());
    const own = new Set(['x-vendor-event', 'authorization']);
    t.strictSame(
        names.filter((name) => !own.has(name)),
        SENDER_HEADERS.map((name) => name.toLowerCase()),
        'as it is said that the sender adds',
    );
});

t.test('sends an empty body with its length', async (t) => {
    const target = await receiverFor(t, answers(OK));
    t.match(await senderFor(t).send(message(target.port, { body: new Uint8Array(0) })), { code: 'delivered' });
    t.match(target.received(), /content-length: 0\r\n/);
});

t.test('does not follow redirects', async (t) => {
    const canary = await receiverFor(t, answers(OK));
    for (const status of [300, 301, 302, 303, 307, 308]) {
        const target = await receiverFor(
            t,
            answers(`HTTP/1.1 ${status} There\r\nLocation: http://127.0.0.1:${canary.port}/a?leak=${SECRET}\r\nContent-Length: 0\r\n\r\n`),
        );
        const outcome = await senderFor(t).send(message(target.port));
        t.match(outcome, { code: 'redirect_refused', status, detail: new RegExp(`a redirect to http://127.0.0.1:${canary.port};`) });
        t.notMatch(outcome.detail, /leak/);
    }

    const elsewhere = await receiverFor(t, answers('HTTP/1.1 302 There\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n'));
    t.match(await senderFor(t).send(message(elsewhere.port)), { detail: 'Answered 302; redirects are not followed' });
    t.equal(canary.connections(), 0);
});

t.test('keeps a connection for the same exporter, origin and trust only', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const sender = senderFor(t);
    await sender.send(message(target.port));
    t.match(await sender.send(message(target.port, { url: `http://127.0.0.1:${target.port}/other` })), { timings: { connect: null } });
    t.equal(target.connections(), 1);
    await sender.send(message(target.port, { exporterId: 'exporter-2' }));
    t.equal(target.connections(), 2);
    await sender.send(message(target.port, { trust: 'all' }));
    t.equal(target.connections(), 3);
});

t.test('makes a connection of its own for a message that asks for it, with all its times, and keeps the others', async (t) => {
    const target = await receiverFor(t, answersLate);
    const sender = senderFor(t);
    await sender.send(message(target.port));
    const { code, timings } = await sender.send(message(target.port, { newConnection: true }));
    t.equal(code, 'delivered');
    t.match(timings, { connect: Number, firstByte: Number });
    t.equal(target.connections(), 2);

    const { timings: kept } = await sender.send(message(target.port));
    t.equal(kept.connect, null);
    t.equal(target.connections(), 2);
});

t.test('sends over a new connection, once, when the receiver has closed the kept one', async (t) => {
    const sockets: net.Socket[] = [];
    const target = await receiverFor(t, async (socket, request) => {
        sockets.push(socket);
        await request();
        socket.write(OK);
    });
    const sender = senderFor(t);
    for (let sent = 1; sent <= 3; sent += 1) {
        t.match(await sender.send(message(target.port)), { code: 'delivered' });
        // Closed on this side means that the sender has closed its side too.
        await once(sockets.at(-1)?.end() as net.Socket, 'close');
        t.equal(sockets.length, sent);
        t.equal(target.received().split('POST').length - 1, sent);
    }
});

t.test('sends over a new connection, once, when the kept one is lost before anything was written', async (t) => {
    const target = await receiverFor(t, answersLate);
    const sender = senderFor(t);
    const [socket] = await clientSockets(() => sender.send(message(target.port)));
    const lose = (): void => {
        diagnostics.unsubscribe('undici:request:create', lose);
        socket?.destroy();
    };
    diagnostics.subscribe('undici:request:create', lose);
    t.match(await sender.send(message(target.port)), { code: 'delivered' });
    t.equal(target.connections(), 2);
    t.equal(target.received().split('POST').length - 1, 2);
});

t.test('takes no kept connection whose socket is gone, though nobody was told yet', async (t) => {
    const { port } = await receiverFor(t, answers(OK));
    const pool = connectionPool({ maxIdle: 8, maxAge: 60_000 });
    t.teardown(pool.close);
    const open = () => connected(port);
    const first = await pool.lease('key', open);
    first.release();
    t.equal((await pool.lease('key', open)).connection, first.connection);
    first.release();
    first.connection.socket.destroy();
    const second = await pool.lease('key', open);
    t.not(second.connection, first.connection);
    t.ok(first.connection.client.destroyed);
    second.release();
});

t.test('writes nothing when it is too late already', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const used = await connected(target.port);
    const late = new Error('too late');
    const request = { path: '/', headers: [], body: Buffer.alloc(1), maxResponseBytes: 1, keepsBody: false, progress: newProgress() };
    t.match(await exchange(used, { ...request, signal: AbortSignal.abort(late) }), { error: late, status: null, written: false });
    t.ok(used.socket.destroyed);
    t.equal(used.requests, 0);
});

t.test('never sends twice when a kept connection breaks after the message was written', async (t) => {
    const target = await receiverFor(t, async (socket, request) => {
        await request();
        socket.write(OK);
        await request();
        socket.resetAndDestroy();
    });
    const sender = senderFor(t);
    await sender.send(message(target.port));
    t.match(await sender.send(message(target.port)), { code: 'connection_reset', status: null });
    t.equal(target.received().split('POST').length - 1, 2);
});

t.test('does not use a connection beyond its age', async (t) => {
    const target = await receiverFor(t, answersLate);
    const sender = senderFor(t, { socketMaxAge: 1 });
    await sender.send(message(target.port));
    await sender.send(message(target.port));
    t.equal(target.connections(), 2);
});

t.test('does not use a connection again on which part of a message still waits', async (t) => {
    const target = await receiverFor(t, (socket) => {
        socket.once('data', () => {
            socket.pause();
            socket.write(OK);
        });
    });
    const sender = senderFor(t);
    t.match(await sender.send(message(target.port, { body: Buffer.alloc(30_000_000) })), { code: 'delivered' });
    t.match(await sender.send(message(target.port)), { timings: { connect: Number } });
});

t.test("lets no message wait for another: the time of an attempt is the receiver's alone", async (t) => {
    let waiting: (() => void)[] = [];
    const target = await receiverFor(t, async (socket, request) => {
        await request();
        waiting.push(() => socket.end(OK));
        if (waiting.length === 100) {
            for (const answer of waiting) {
                answer();
            }
            waiting = [];
        }
    });
    const sender = senderFor(t);
    const outcomes = await Promise.all(Array.from({ length: 100 }, () => sender.send(message(target.port))));
    t.ok(outcomes.every(({ code }) => code === 'delivered'));
});

t.test('keeps no more idle connections than allowed', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const sender = senderFor(t, { maxIdleConnections: 1 });
    await sender.send(message(target.port, { exporterId: 'a' }));
    await sender.send(message(target.port, { exporterId: 'b' }));
    t.match(await sender.send(message(target.port, { exporterId: 'b' })), { timings: { connect: null } });
    t.match(await sender.send(message(target.port, { exporterId: 'a' })), { timings: { connect: Number } });
});

t.test('refuses what only a changed row can hold, without a connection', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const sender = senderFor(t);
    for (const url of [
        'nonsense',
        '',
        `ftp://127.0.0.1:${target.port}/`,
        `http://user:pass@127.0.0.1:${target.port}/`,
        `http://127.0.0.1:${target.port}/\r\nX: y`,
    ]) {
        t.match(await sender.send(message(target.port, { url })), { code: 'invalid_exporter', status: null, address: null });
    }

    for (const name of ['Host', 'content-length', 'Transfer-Encoding', 'CONNECTION', 'a b', '', 'x\r\ny']) {
        t.match(await sender.send(message(target.port, { headers: [[name, '5']] })), { code: 'invalid_exporter' }, name);
    }

    t.match(await sender.send(message(target.port, { headers: [['X-A', `b\r\nX-C: ${SECRET}`]] })), {
        code: 'invalid_exporter',
        detail: /cannot be sent/,
    });
    t.equal(target.received(), '');
});

t.test('calls no address that is not open', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const sender = httpSender({ guard: egressGuard({ allow: [] }) });
    for (const host of ['127.0.0.1', '0x7f.1', '2130706433', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', 'localhost', 'LOCALHOST.']) {
        t.match(
            await sender.send(message(target.port, { url: `http://${host}:${target.port}/` })),
            { code: 'address_blocked', status: null },
            host,
        );
    }

    t.equal(target.connections(), 0);
});

t.test('calls nobody but the addresses it has vetted', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const guard = egressGuard({ allow: ['127.0.0.1'] });
    const lists: readonly (readonly [string[], string])[] = [
        [['127.0.0.1'], 'delivered'],
        [['127.0.0.2'], 'address_blocked'],
        [['127.0.0.1', '10.0.0.1'], 'address_blocked'],
        [['127.0.0.1', '::1'], 'address_blocked'],
        [['169.254.169.254'], 'address_blocked'],
        [[...Array.from({ length: 999 }, () => '127.0.0.1'), 'fd00:ec2::254'], 'address_blocked'],
        [Array.from({ length: 1000 }, (_, index) => (index === 0 ? '127.0.0.1' : `8.8.${index >> 8}.${index & 255}`)), 'delivered'],
        [['fe80::1%eth0'], 'address_blocked'],
        [[], 'dns_not_found'],
    ];
    for (const [addresses, code] of lists) {
        const sender = senderFor(t, {
            guard,
            lookup: (_name, _options, done) =>
                done(
                    null,
                    addresses.map((address) => ({ address })),
                ),
        });
        t.match(
            await sender.send(message(target.port, { url: `http://good.test:${target.port}/` })),
            { code },
            addresses.slice(0, 3).join(),
        );
    }

    t.match(target.received(), new RegExp(`host: good.test:${target.port}`));
});

t.test('sends nothing where the system connects to another address than the vetted one', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const sender = senderFor(t, {
        guard: egressGuard({ allow: ['0.0.0.0'] }),
        // Linux and macOS take it for the loopback address.
        lookup: (_name, _options, done) => done(null, [{ address: '0.0.0.0' }]),
    });
    const url = `http://good.test:${target.port}/`;
    t.match(await sender.send(message(target.port, { url })), { code: 'address_blocked', detail: /another address/ });
    t.equal(target.received(), '');
});

t.test('asks the name servers that it is told', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const names = await nameServer((name) => (name === 'good.test' ? ['127.0.0.1'] : 'unknown'));
    t.teardown(() => names.close());
    const sender = senderFor(t, { nameServers: [names.address] });
    t.match(await sender.send(message(target.port, { url: `http://good.test:${target.port}/` })), { code: 'delivered' });
    t.match(await sender.send(message(target.port, { url: `http://bad.test:${target.port}/` })), { code: 'dns_not_found' });
});

t.test('vets again at each connection, so that a rebound name leads nowhere', async (t) => {
    const target = await receiverFor(t, answersLate);
    const guard = egressGuard({ allow: ['127.0.0.1'] });
    let lookups = 0;
    const lookup: HttpSenderOptions['lookup'] = (_name, _options, done) => {
        lookups += 1;
        done(null, [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2' }]);
    };
    const sender = senderFor(t, { guard, lookup, socketMaxAge: 1 });
    const url = `http://rebound.test:${target.port}/`;
    t.match(await sender.send(message(target.port, { url })), { code: 'delivered', address: '127.0.0.1', timings: { dns: Number } });
    t.match(await sender.send(message(target.port, { url })), { code: 'address_blocked', address: null });
    t.equal(lookups, 2);
});

t.test('settles when the resolver does not', async (t) => {
    let lookups = 0;
    const count = (): void => {
        lookups += 1;
    };
    const sender = senderFor(t, { dnsTimeout: 100, lookup: count });
    const outcomes = await Promise.all([1, 2, 3].map(() => sender.send(message(80, { url: 'http://hangs.test/' }))));
    t.match(outcomes, [{ code: 'dns_timeout' }, { code: 'dns_timeout' }, { code: 'dns_timeout' }]);
    t.match(await sender.send(message(80, { url: 'http://hangs.test/' })), { code: 'dns_timeout', status: null });
    t.equal(lookups, 1, 'a name that hangs is looked up once');
});

t.test('tells the failures of a resolver apart', async (t) => {
    const codes = { ENOTFOUND: 'dns_not_found', EAI_AGAIN: 'dns_failed', ESTRANGE: 'dns_failed', EMFILE: 'interrupted' };
    for (const [code, expected] of Object.entries(codes)) {
        const sender = senderFor(t, { lookup: (_name, _options, done) => done(Object.assign(new Error(SECRET), { code }), []) });
        const outcome = await sender.send(message(80, { url: 'http://fails.test/' }));
        t.match(outcome, { code: expected, status: null });
        t.notMatch(outcome.detail, SECRET);
    }

    const throwing = senderFor(t, {
        lookup: () => {
            throw new Error('broken');
        },
    });
    t.match(await throwing.send(message(80, { url: 'http://fails.test/' })), { code: 'dns_failed' });
});

t.test('tries the next address when one does not answer', async (t) => {
    const target = await receiverFor(t, answers(OK));
    const lookup: HttpSenderOptions['lookup'] = (_name, _options, done) => done(null, [{ address: '127.0.0.2' }, { address: '127.0.0.1' }]);
    t.match(await senderFor(t, { lookup }).send(message(target.port, { url: `http://two.test:${target.port}/` })), {
        code: 'delivered',
        address: '127.0.0.1',
    });
});

t.test('names a refused connection', async (t) => {
    const { port, close } = await receiver(() => undefined);
    await close();
    t.match(await senderFor(t).send(message(port)), { code: 'connect_refused', detail: `The connection to 127.0.0.1:${port} was refused` });
});

t.test('ends a connect that takes too long', async (t) => {
    // a listener that never accepts: once its queue is full, the system leaves further connects without an answer
    const script = `require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
        require('node:fs').writeSync(1, String(this.address().port));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.teardown(() => child.kill('SIGKILL'));
    const port = Number(await new Promise<Buffer>((resolve) => child.stdout.once('data', resolve)));
    for (let filler = 0; filler < 6; filler += 1) {
        const socket = net.connect(port, '127.0.0.1').on('error', () => undefined);
        t.teardown(() => socket.destroy());
    }

    const sender = senderFor(t, { connectTimeout: 300 });
    t.match(await sender.send(message(port)), {
        code: 'connect_timeout',
        detail: `The connection to 127.0.0.1:${port} timed out`,
        status: null,
    });
});

t.test('finishes what is under way when it is closed, and takes nothing more', async (t) => {
    const target = await receiverFor(t, answersLate);
    const sender = httpSender({ guard });
    const outcome = sender.send(message(target.port));
    await sender.close();
    t.match(await outcome, { code: 'delivered' });
    t.match(await sender.send(message(target.port)), { code: 'interrupted' });
    t.equal(target.connections(), 1);
});

t.test('ignores proxies that the environment names', async (t) => {
    const proxy = await receiverFor(t, answers('HTTP/1.1 502 Proxy\r\nContent-Length: 0\r\n\r\n'));
    const target = await receiverFor(t, answers(OK));
    for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']) {
        process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : `http://127.0.0.1:${proxy.port}`;
        t.teardown(() => delete process.env[name]);
    }

    t.match(await senderFor(t).send(message(target.port)), { code: 'delivered' });
    t.equal(proxy.connections(), 0);
});

t.test('refuses limits that cannot be', async (t) => {
    t.throws(() => httpSender({ guard, attemptTimeout: 0 }), { code: 'MISCONFIGURED', field: 'attemptTimeout' });
});

t.test('has let no error escape in all of this', async (t) => {
    t.same(escaped, []);
});

t.test('gives up what is in flight when it is closed without time, as a fault of its own', async (t) => {
    const asked: (() => void)[] = [];
    const came = new Promise<void>((resolve) => asked.push(resolve));
    const silent = await receiverFor(t, async (_, request) => {
        await request();
        asked[0]?.();
    });
    const sender = senderFor(t);
    const sending = sender.send(message(silent.port));
    await came;
    await sender.close({ timeout: 0 });
    t.match(await sending, { code: 'interrupted', detail: 'The sender was closed before the receiver had answered' });
});
