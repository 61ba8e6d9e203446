import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { ConnectionLimits } from '../../../lib/protect/connection-limits.ts';
import { type Protection, protect } from '../../../lib/protect/connections.ts';
import { Handshakes, handshakeOptions } from '../../../lib/protect/handshakes.ts';
import { certificate } from '../../support/certificates.ts';
import { clientHello } from '../../support/client-hello.ts';

/** A connection. */
interface Ends {
    readonly client: Socket;
    readonly accepted: Socket;
}

interface Secured {
    readonly server: Server;
    readonly protection: Protection;
    /** Connections in the order in which TLS began on them, each with the turn of the event loop in which it did. */
    readonly begun: { readonly socket: Socket; readonly turn: number }[];
    /** Resolves with both ends, once it is accepted. */
    connect(localAddress?: string): Promise<Ends>;
    /** So many of them, one after the other. */
    several(count: number, localAddress?: string): Promise<readonly Ends[]>;
    /** Resolves once so many bytes of it have come. */
    sent(ends: Ends, bytes: Uint8Array): Promise<void>;
    /** Lets so many milliseconds pass, and looks at the connections. */
    pass(time: number): void;
    /** From now on each turn of the event loop takes so many milliseconds. */
    slow(time: number): void;
    /** A new client of `127.0.0.1` is answered over TLS. */
    answers(): Promise<void>;
}

async function secured(t: Test, limits: ConnectionLimits = { handshakeTimeout: 1000 }): Promise<Secured> {
    let time = 0;
    let turn = 0;
    let turnTakes = 0;
    let timer = setImmediate(function count() {
        turn += 1;
        time += turnTakes;
        timer = setImmediate(count);
    });
    t.teardown(() => clearImmediate(timer));

    const begun: { readonly socket: Socket; readonly turn: number }[] = [];
    const server = createServer(await certificate(), (_, response) => void response.end('ok'));
    server.on('connection', (socket: Socket) => {
        begun.push({ socket, turn });
        server.emit('begun');
    });
    const protection = protect(server, { ...limits, now: () => time });
    // Stands behind what protects, and hears of each connection at once.
    server.on('connection', (socket: Socket) => server.emit('accepted', socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    t.teardown(() => server.close().closeAllConnections());

    const opened = async (localAddress = '127.0.0.1'): Promise<Ends> => {
        const client = connect({ port, host: '127.0.0.1', localAddress, noDelay: true }).on('error', () => {});
        t.teardown(() => client.destroy());
        const [accepted] = await once(server, 'accepted');
        return { client, accepted };
    };
    return {
        server,
        protection,
        begun,
        connect: opened,
        async several(count, localAddress) {
            const all: Ends[] = [];
            while (all.length < count) {
                all.push(await opened(localAddress));
            }
            return all;
        },
        async sent({ client, accepted }, bytes) {
            const before = accepted.bytesRead;
            client.write(bytes);
            await until(() => accepted.bytesRead === before + bytes.length);
        },
        pass(passed) {
            time += passed;
            protection.sweep();
        },
        slow(milliseconds) {
            turnTakes = milliseconds;
        },
        async answers() {
            const asked = connectTls({ port, rejectUnauthorized: false });
            asked.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
            t.match(String((await asked.toArray())[0]), /^HTTP\/1\.1 200 /);
        },
    };
}

t.test('keeps what has not come whole of a hello from TLS, and hands it over in one piece', async (t) => {
    const { begun, connect, sent, answers } = await secured(t);
    const hello = await clientHello();
    const ends = await connect();
    for (const byte of hello.subarray(0, 8)) {
        await sent(ends, Uint8Array.of(byte));
    }
    await sent(ends, hello.subarray(8, -1));
    await answers();
    t.equal(begun.length, 1, 'for the one that was answered');

    const answer = once(ends.client, 'data');
    await sent(ends, hello.subarray(-1));
    t.equal((await answer)[0][0], 22, 'a record of the handshake');
    t.equal(begun.length, 2);
});

t.test('knows a hello that comes in several records from its beginning', async (t) => {
    const { begun, connect, sent, answers } = await secured(t);
    const hello = (await clientHello()).subarray(5);
    const records = [hello.subarray(0, 1), hello.subarray(1, 3), hello.subarray(3, 100), hello.subarray(100)];
    const bytes = Buffer.concat(records.flatMap((said) => [Buffer.of(22, 3, 1, said.length >> 8, said.length & 255), said]));
    const ends = await connect();
    for (let at = 0; at < bytes.length - 1; at += 5) {
        await sent(ends, bytes.subarray(at, Math.min(at + 5, bytes.length - 1)));
    }
    await answers();
    t.equal(begun.length, 1, 'for the one that was answered');

    const answer = once(ends.client, 'data');
    await sent(ends, bytes.subarray(-1));
    t.equal((await answer)[0][0], 22, 'a record of the handshake');
});

t.test('ends at once what says that it will be longer than a hello is', async (t) => {
    const { begun, connect, sent } = await secured(t);
    const long = {
        record: Buffer.of(22, 3, 1, 32, 1),
        message: Buffer.of(22, 3, 1, 0, 4, 1, 0, 32, 1),
        'message in two records': Buffer.of(22, 3, 1, 0, 2, 1, 0, 22, 3, 1, 0, 2, 32, 1),
    };
    for (const [what, bytes] of Object.entries(long)) {
        const ends = await connect();
        await sent(ends, bytes);
        await until(() => ends.accepted.destroyed);
        t.equal(begun.length, 0, what);
    }
});

t.test('keeps what stands behind a hello for TLS, such as data of a client that was here before another server', async (t) => {
    const { server, begun, connect } = await secured(t);
    const { client } = await connect();
    const failed = once(server, 'tlsClientError');
    client.write(Buffer.concat([await clientHello(), Buffer.from('GET / HTTP/1.1')]));
    await failed;
    t.equal(begun.length, 1);
});

t.test('begins TLS on one connection in a turn of the event loop, however many hellos have come', async (t) => {
    const { begun, several } = await secured(t);
    const hello = await clientHello();
    const all = await several(16);
    for (const { client } of all) {
        client.write(hello);
    }
    await until(() => begun.length === all.length);
    t.equal(new Set(begun.map(({ turn }) => turn)).size, all.length);
});

t.test('lets addresses take turns', async (t) => {
    const { begun, connect, several } = await secured(t);
    const hello = await clientHello();
    const many = await several(20);
    const few = await connect('127.0.0.2');
    for (const { client } of [...many, few]) {
        client.write(hello);
    }
    await until(() => begun.length === 21);
    const place = begun.findIndex(({ socket }) => socket === few.accepted);
    t.ok(place <= 4, `it was number ${place + 1}`);
});

t.test('lets more begin after a turn that took long, so that those who come back all at once are not too late', async (t) => {
    const { begun, several, slow } = await secured(t, { handshakeTimeout: 10_000 });
    const hello = await clientHello();
    const all = [...(await several(12)), ...(await several(12, '127.0.0.2'))];
    slow(250);
    for (const { client } of all) {
        client.write(hello);
    }
    await until(() => begun.length === all.length);
    const turns = new Set(begun.map(({ turn }) => turn));
    const sizes = [...turns].map((one) => begun.filter(({ turn }) => turn === one).length);
    t.ok(Math.max(...sizes) <= 8, `${sizes}`);
    t.ok(sizes.length <= 6, `${sizes}`);
});

t.test('keeps nothing of those who leave while they wait, and gives them no turn', async (t) => {
    const handshakes = new Handshakes(() => 0);
    const begun: string[] = [];
    const waits = (name: string): Socket => {
        const socket = new Socket();
        handshakes.add(socket, () => begun.push(name));
        return socket;
    };
    waits('first');
    const leaving = waits('leaves');
    waits('last');
    leaving.destroy();
    await once(leaving, 'close');
    for (let turns = 0; turns < 5; turns += 1) {
        await new Promise(setImmediate);
    }
    t.strictSame(begun, ['first', 'last']);
});

t.test('hands over at once what is no hello, for TLS to say so', async (t) => {
    const { server, begun, connect, sent } = await secured(t);
    const failed = once(server, 'tlsClientError');
    await sent(await connect(), Buffer.from('G'));
    await until(() => begun.length === 1);
    const other = await connect();
    other.client.write('GET / HTTP/1.1\r\n\r\n');
    await failed;
    await until(() => other.accepted.destroyed);
});

t.test('ends what ends, breaks or says more than a hello before it is answered, and goes on with the others', async (t) => {
    const { server, begun, connect, several, sent, pass, protection, answers } = await secured(t);
    const hello = await clientHello();
    const [leaving, broken, talking] = [await connect(), await connect(), await connect()];
    await sent(leaving, hello.subarray(0, 100));
    leaving.client.end();
    await sent(broken, hello.subarray(0, 100));
    broken.client.resetAndDestroy();
    talking.client.write(Buffer.concat([hello, Buffer.alloc(8192)]));
    await until(() => protection.connections() === 0);
    t.equal(begun.length, 0);

    const waiting = await several(20);
    server.once('begun', () => pass(1000));
    for (const { client } of waiting) {
        client.write(hello);
    }
    await until(() => protection.connections() === 0);
    t.equal(begun.length, 1);
    await answers();
    t.equal(begun.length, 2);
});

t.test('offers key exchanges that this OpenSSL knows and that are quick, for any key of a certificate', async (t) => {
    const { ecdhCurve } = handshakeOptions();
    t.match(
        ecdhCurve.split(':').filter((name) => name !== 'X25519MLKEM768'),
        ['X25519', 'P-256', 'P-384'],
    );
    for (const rsa of [undefined, 2048]) {
        const server = createServer({ ...(await certificate(rsa === undefined ? {} : { rsa })), ...handshakeOptions() }).listen(0);
        await once(server, 'listening');
        t.teardown(() => server.close().closeAllConnections());
        const { port } = server.address() as AddressInfo;
        const agreed = connectTls({ port, rejectUnauthorized: false });
        await once(agreed, 'secureConnect');
        agreed.destroy();
        await t.rejects(
            once(connectTls({ port, ecdhCurve: 'ffdhe3072', rejectUnauthorized: false }), 'secureConnect'),
            /handshake failure/,
        );
        // With it the key is used for a later message of the client, whose turn it need not be.
        await t.rejects(
            once(connectTls({ port, ciphers: 'AES128-GCM-SHA256', maxVersion: 'TLSv1.2', rejectUnauthorized: false }), 'secureConnect'),
            /handshake failure/,
        );
        const old = connectTls({ port, maxVersion: 'TLSv1.2', rejectUnauthorized: false });
        await once(old, 'secureConnect');
        old.destroy();
    }
});
