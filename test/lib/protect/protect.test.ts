import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import Hapi from '@hapi/hapi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { addressBlock } from '../../../lib/addresses.ts';
import type { ConnectionLimits } from '../../../lib/protect/connection-limits.ts';
import { type Protection, protect } from '../../../lib/protect/connections.ts';
import { certificate } from '../../support/certificates.ts';

interface Protected {
    readonly server: Server | SecureServer;
    readonly protection: Protection;
    connect(): Promise<Socket>;
    /** Lets so many milliseconds pass, and looks at the connections. */
    pass(time: number): void;
}

/** Time passes only where the test says so. */
async function protectedServer(
    t: Test,
    limits: ConnectionLimits,
    answer: RequestListener,
    server: Server | SecureServer = createServer(answer),
): Promise<Protected> {
    let time = 0;
    const protection = protect(server, { now: () => time, ...limits });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.close();
        server.closeAllConnections();
    });
    return {
        server,
        protection,
        async connect() {
            const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
            t.teardown(() => socket.destroy());
            const accepted = once(server, 'connection');
            await accepted;
            return socket;
        },
        pass(passed) {
            time += passed;
            protection.sweep();
        },
    };
}

const ok: RequestListener = (_, response) => void response.end('ok');
const HEAD = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** Sends, and resolves when something of an answer came. */
async function answered(socket: Socket, text: string): Promise<void> {
    socket.write(text);
    await once(socket, 'data');
}

t.test('destroys what sends no head, and what takes too long for one', async (t) => {
    const { connect, pass } = await protectedServer(t, { headTimeout: 1000 }, ok);
    const [silent, slow] = [await connect(), await connect()];
    slow.write('GET / HTTP/1.1\r\n');
    pass(999);
    await answered(await connect(), HEAD);
    t.notOk(silent.destroyed || silent.readableEnded);
    const closed = Promise.all([once(silent.resume(), 'close'), once(slow.resume(), 'close')]);
    pass(1);
    await closed;
});

/** All that comes until the connection ends. */
async function everything(socket: Socket): Promise<string> {
    let text = '';
    for await (const chunk of socket.setEncoding('utf8')) {
        text += chunk;
    }
    return text;
}

const LONG = [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`];

t.test('says why a head that is too long is refused, on a server of Node and of hapi', async (t) => {
    const hapi = Hapi.server({ host: '127.0.0.1', port: 0 });
    protect(hapi.listener);
    await hapi.start();
    t.teardown(() => hapi.stop());
    const { connect: connected } = await protectedServer(t, {}, ok);
    for (const text of LONG) {
        for (const socket of [await connected(), connect(Number(hapi.info.port), '127.0.0.1')]) {
            socket.write(text);
            const [head = '', body = ''] = (await everything(socket)).split('\r\n\r\n');
            t.match(head, /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
            t.match(JSON.parse(body), { statusCode: 431, message: /must not be longer than 16,384 bytes in all$/ });
        }
    }
    const other = connect(Number(hapi.info.port), '127.0.0.1');
    other.write('what\r\n\r\n');
    t.match(await everything(other), /^HTTP\/1\.1 400 /);
    const plain = await connected();
    plain.write('what\r\n\r\n');
    t.equal(await everything(plain).catch(() => ''), '');
});

t.test('writes none into an answer that is under way', async (t) => {
    const { connect } = await protectedServer(t, {}, (_, response) => void response.write('{"begun":'));
    const socket = await connect();
    await answered(socket, HEAD);
    socket.write(LONG[0] ?? '');
    t.notMatch(await everything(socket).catch(() => ''), /431/);
});

t.test('destroys an idle connection, and lets a request that began to come have its time', async (t) => {
    const { connect, pass, protection } = await protectedServer(t, { headTimeout: 1000, idleTimeout: 1000 }, ok);
    const [idle, next] = [await connect(), await connect()];
    await answered(idle, HEAD);
    await answered(next, HEAD);
    await setImmediate();
    next.write('GET / ');
    await answered(await connect(), HEAD);
    const closed = once(idle.resume(), 'close');
    pass(1000);
    await closed;
    pass(999);
    await answered(next, 'HTTP/1.1\r\nHost: a\r\n\r\n');
    t.ok(protection.connections() >= 1);
});

t.test('destroys what sends a body too slowly or for too long, but for long requests', async (t) => {
    const isLong: ConnectionLimits['isLong'] = ({ url }) => url === '/long';
    const limits = { bodyTimeout: 1000, minRate: 100, requestTimeout: 3000, isLong };
    let received = 0;
    const { connect, pass } = await protectedServer(t, limits, (request) => {
        request.on('data', (chunk: Buffer) => {
            received += chunk.length;
        });
    });
    const [slow, endless, long] = [await connect(), await connect(), await connect()];
    const post = (path: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n`;
    slow.write(post('/'));
    endless.write(post('/'));
    long.write(post('/long'));
    const gone = new Set<Socket>();
    for (const socket of [slow, endless, long]) {
        socket.resume().on('close', () => gone.add(socket));
    }

    const send = async (texts: readonly (readonly [Socket, string])[]): Promise<void> => {
        const before = received;
        for (const [socket, text] of texts) {
            socket.write(text);
        }

        const sum = texts.reduce((total, [, text]) => total + text.length, 0);
        await until(() => received === before + sum);
    };
    await send([
        [slow, 'x'.repeat(9)],
        [endless, 'x'.repeat(200)],
        [long, 'x'.repeat(200)],
    ]);
    pass(999);
    await setImmediate();
    t.equal(gone.size, 0, 'not before its time');
    pass(1);
    await until(() => gone.size === 1);
    t.ok(gone.has(slow));
    for (let round = 0; round < 2; round += 1) {
        await send([
            [endless, 'x'.repeat(200)],
            [long, 'x'.repeat(200)],
        ]);
        pass(1000);
    }

    await until(() => gone.size === 2);
    t.ok(gone.has(endless));
    t.notOk(gone.has(long));
});

t.test('destroys what takes nothing of an answer, and waits for an answer that is being made', async (t) => {
    const asked = promiseOf<() => void>();
    const wrote = promiseOf<void>();
    const { connect, pass } = await protectedServer(t, { answerTimeout: 1000 }, (request, response) => {
        if (request.url === '/late') {
            asked.resolve(() => response.end('late'));
        } else {
            response.write(Buffer.alloc(64 * 1_048_576));
            wrote.resolve();
        }
    });
    const [deaf, patient] = [await connect(), await connect()];
    deaf.write(HEAD);
    patient.write(HEAD.replace('/', '/late'));
    const release = await asked.promise;
    await wrote.promise;
    const closed = new Promise((resolve) => deaf.on('close', resolve));
    pass(100);
    pass(999);
    pass(1001);
    deaf.resume();
    await closed;
    const late = once(patient, 'data');
    release();
    t.match(String((await late)[0]), /late/);
});

t.test('destroys a connection with more requests than may wait', async (t) => {
    const { connect } = await protectedServer(t, { maxUnanswered: 32 }, () => {});
    const [few, many] = [await connect(), await connect()];
    few.write(HEAD.repeat(32));
    many.write(HEAD.repeat(33));
    await once(many.resume(), 'close');
    t.notOk(few.closed);
});

t.test('handles the requests of a connection one after the other, each in a context of its own', async (t) => {
    const contexts = new AsyncLocalStorage<string | undefined>();
    const handled: { readonly url: string | undefined; readonly context: string | undefined; end(): void }[] = [];
    const { connect, server } = await protectedServer(t, {}, ({ url }, response) => {
        handled.push({ url, context: contexts.getStore(), end: () => contexts.run(`of ${url}`, () => response.end(url)) });
    });
    const [first, second] = [await connect(), await connect()];
    first.write(['/a', '/b', '/c'].map((path) => HEAD.replace('/', path)).join(''));
    await once(server, 'request');
    second.write(HEAD.replace('/', '/d'));
    await once(server, 'request');
    t.same(
        handled.map(({ url }) => url),
        ['/a', '/d'],
    );
    for (const [index, next] of [
        [0, '/b'],
        [2, '/c'],
    ] as const) {
        handled[index]?.end();
        await until(() => handled.at(-1)?.url === next);
    }
    t.same(
        handled.map(({ context }) => context),
        [undefined, undefined, undefined, undefined],
    );

    first.destroy();
    handled.at(-1)?.end();
    handled[1]?.end();
    await once(second, 'data');
});

t.test('counts connections in all and of an address; a new one takes the place of one that waits', async (t) => {
    const all = await protectedServer(t, { maxConnections: 2 }, () => {});
    const [busy, waits] = [await all.connect(), await all.connect()];
    busy.write(HEAD);
    await once(all.server, 'request');
    const closed = once(waits.resume(), 'close');
    const third = await all.connect();
    await closed;
    t.equal(all.protection.connections(), 2);
    third.write(HEAD);
    await once(all.server, 'request');
    await once((await all.connect()).resume(), 'close');

    const one = await protectedServer(t, { maxPerAddress: 1 }, ok);
    const first = await one.connect();
    await once((await one.connect()).resume(), 'close');
    await answered(first, HEAD);
    first.destroy();
    await until(() => one.protection.connections() === 0);
    await answered(await one.connect(), HEAD);
});

t.test('leaves alone what a host upgrades', async (t) => {
    const upgrading = (server: Server): Server =>
        server.on('upgrade', (_request, socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'));
    const before = await protectedServer(t, { headTimeout: 1000 }, ok, upgrading(createServer(ok)));
    const after = await protectedServer(t, { headTimeout: 1000 }, ok);
    upgrading(after.server);
    for (const { connect, pass, protection } of [before, after]) {
        const upgraded = await connect();
        await answered(upgraded, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n');
        pass(100_000);
        t.equal(protection.connections(), 0);
        t.notOk(upgraded.destroyed);
    }
});

t.test('answers over a connection that was there before it', async (t) => {
    const server = createServer(ok).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close().closeAllConnections());
    const early = connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(server, 'connection');
    const { connections } = protect(server, { maxUnanswered: 1 });
    await answered(early, HEAD);
    t.equal(connections(), 0);
});

t.test('begins TLS on a connection with its first bytes, and ends what sends none', async (t) => {
    let sessions = 0;
    const secure = createSecureServer(await certificate(), ok).on('connection', () => {
        sessions += 1;
    });
    const { connect, pass, protection } = await protectedServer(t, { handshakeTimeout: 1000 }, ok, secure);
    const [silent, broken, leaving] = [await connect(), await connect(), await connect()];
    broken.resetAndDestroy();
    leaving.end();
    await until(() => protection.connections() === 1);
    t.equal(sessions, 0);

    const speaking = connectTls({ socket: await connect(), rejectUnauthorized: false });
    await answered(speaking, HEAD);
    t.equal(sessions, 1);
    t.equal(protection.connections(), 2);
    pass(999);
    t.notOk(silent.readableEnded);
    const closed = once(silent.resume(), 'close');
    pass(1);
    await closed;
    await answered(speaking, HEAD);
});

t.test('ends those with the most requests behind others once there are too many of all of them', async (t) => {
    const held: ServerResponse[] = [];
    const { connect, protection } = await protectedServer(t, {}, (_, response) => void held.push(response));
    const patient = await connect();
    patient.write(HEAD.repeat(2));
    const greedy: Socket[] = [];
    // 31 of each wait behind the first: in 33 connections these are as many as may, but for one.
    while (greedy.length < 33) {
        const socket = await connect();
        socket.resume().write(HEAD.repeat(32));
        greedy.push(socket);
    }
    await until(() => held.length === 34);
    t.equal(protection.connections(), 34);

    const another = await connect();
    another.write(HEAD.repeat(2));
    await until(() => greedy.filter(({ destroyed }) => destroyed).length === 1);
    for (const socket of [patient, another]) {
        const both = answers(socket, 2);
        await until(() => {
            for (const response of held.splice(0)) {
                response.end('ok');
            }
            return both.come();
        });
    }

    // What was answered counts no more.
    const last = await connect();
    last.write(HEAD.repeat(32));
    const all = answers(last, 32);
    await until(() => {
        for (const response of held.splice(0)) {
            response.end('ok');
        }
        return all.come();
    });
    t.equal(greedy.filter(({ destroyed }) => destroyed).length, 1);
});

t.test('tells two TLS connections from the same port of a client to two addresses of the machine apart', async (t) => {
    let time = 0;
    let secured = 0;
    const server = createSecureServer(await certificate(), ok).on('secureConnection', () => {
        secured += 1;
    });
    const protection = protect(server, { now: () => time, headTimeout: 1000, idleTimeout: 1000 });
    await once(server.listen(0, '0.0.0.0'), 'listening');
    t.teardown(() => {
        server.close();
        server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    const connected = async (host: string, localPort?: number): Promise<Socket> => {
        const accepted = once(server, 'connection');
        const socket = connect({ port, host, localAddress: '127.0.0.1', ...(localPort !== undefined && { localPort }) }).on(
            'error',
            () => {},
        );
        await Promise.all([accepted, once(socket, 'connect')]);
        return socket;
    };
    const first = await connected('127.0.0.1');
    const both = [first, await connected('127.0.0.2', first.localPort)].map((socket) => connectTls({ socket, rejectUnauthorized: false }));
    for (const socket of both) {
        socket.on('error', () => {});
    }
    await until(() => secured === 2);
    time += 1000;
    protection.sweep();
    await until(() => both.every((socket) => socket.resume().destroyed));
    await until(() => protection.connections() === 0);
    t.pass('both are ended');
});

t.test('takes IPv6 addresses by their first 64 bits', (t) => {
    t.equal(addressBlock('2001:db8:1:2:3:4:5:6'), addressBlock('2001:DB8:1:2::1'));
    t.not(addressBlock('2001:db8:1:2::1'), addressBlock('2001:db8:1:3::1'));
    t.equal(addressBlock('fe80::1%eth0'), 'fe80:0:0:0');
    t.equal(addressBlock('::ffff:192.0.2.7'), '192.0.2.7');
    t.not(addressBlock('192.0.2.7'), addressBlock('192.0.2.8'));
    t.equal(addressBlock(''), '', 'a socket of this machine has none');
    t.end();
});

t.test('refuses limits that cannot be', (t) => {
    const wrong = { maxConnections: 0 };
    t.throws(() => protect(createServer(), wrong), { code: 'MISCONFIGURED', field: 'maxConnections' });
    t.end();
});

/** Whether so many answers have come. */
function answers(socket: Socket, count: number): { come(): boolean } {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
        text += chunk;
    });
    return { come: () => text.split('HTTP/1.1 200').length - 1 === count };
}

function promiseOf<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
    let resolve = (_: T): void => {};
    const promise = new Promise<T>((settle) => {
        resolve = settle;
    });
    return { promise, resolve: (value) => resolve(value) };
}

t.test('at the limit a new one takes the place of the one whose body hardly comes, where all have a request', async (t) => {
    const requests: string[] = [];
    let received = 0;
    const { connect, pass } = await protectedServer(t, { maxConnections: 4 }, (request, response) => {
        requests.push(request.url ?? '');
        if (request.method === 'POST') {
            request.on('data', ({ length }: Buffer) => {
                received += length;
            });
            request.on('end', () => response.end('ok'));
        }
    });
    const post = async (name: string): Promise<Socket> => {
        const socket = await connect();
        socket.write(`POST /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`);
        await until(() => requests.includes(`/${name}`));
        return socket;
    };
    const answering = await connect();
    answering.write('GET /answering HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => requests.includes('/answering'));
    const [quick, trickling, slow] = [await post('quick'), await post('trickling'), await post('slow')];
    pass(5_000);
    quick.write('x'.repeat(50_000));
    slow.write('x'.repeat(1_000));
    trickling.write('x'.repeat(100));
    await until(() => received === 51_100);

    const ended = once(trickling.resume(), 'close');
    const next = await post('next');
    await ended;
    next.write('x'.repeat(100_000));
    await once(next, 'data');
    quick.write('x'.repeat(50_000));
    await once(quick, 'data');
    t.notOk(slow.destroyed);
    t.notOk(answering.destroyed, 'whose request is there waits for nobody but us');
});

t.test('at the limit a body that comes takes no harm from a new one, nor does one that has just begun', async (t) => {
    const requests: string[] = [];
    let received = 0;
    const { connect, pass } = await protectedServer(t, { maxConnections: 2 }, (request, response) => {
        requests.push(request.url ?? '');
        request.on('data', ({ length }: Buffer) => {
            received += length;
        });
        request.on('end', () => response.end('ok'));
    });
    const post = async (name: string): Promise<Socket> => {
        const socket = await connect();
        socket.write(`POST /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`);
        await until(() => requests.includes(`/${name}`));
        return socket;
    };
    const coming = await post('coming');
    coming.write('x'.repeat(50_000));
    await until(() => received === 50_000);
    pass(5_000);
    const begun = await post('begun');
    const turnedAway = await connect();
    await once(turnedAway.resume(), 'close');
    begun.write('x'.repeat(100_000));
    await once(begun, 'data');
    coming.write('x'.repeat(50_000));
    await once(coming, 'data');
    t.notOk(coming.destroyed || begun.destroyed);
});

t.test('bodies that come shield none that hardly does, however many', async (t) => {
    const QUICK = 70;
    const requests: string[] = [];
    let received = 0;
    const { connect, pass } = await protectedServer(t, { maxConnections: QUICK + 1 }, (request) => {
        requests.push(request.url ?? '');
        request.on('data', ({ length }: Buffer) => {
            received += length;
        });
    });
    const post = async (name: string): Promise<Socket> => {
        const socket = await connect();
        socket.write(`POST /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n`);
        await until(() => requests.includes(`/${name}`));
        return socket;
    };
    for (let count = 0; count < QUICK; count += 1) {
        (await post(`quick-${count}`)).write('x'.repeat(20_000));
    }
    const slow = await post('slow');
    slow.write('x'.repeat(100));
    await until(() => received === QUICK * 20_000 + 100);
    pass(5_000);
    // One look is at so many at most; the next one goes on.
    const first = await connect();
    await once(first.resume(), 'close');
    const ended = once(slow.resume(), 'close');
    await connect();
    await ended;
});
