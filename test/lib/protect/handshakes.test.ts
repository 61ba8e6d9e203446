import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { type Protection, protect } from '../../../lib/protect/connections.ts';
import { handshakeOptions } from '../../../lib/protect/handshakes.ts';
import { certificate } from '../../support/certificates.ts';

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
    several(count: number): Promise<readonly Ends[]>;
    /** Resolves once so many bytes of it have come. */
    sent(ends: Ends, bytes: Uint8Array): Promise<void>;
    /** Lets so many milliseconds pass, and looks at the connections. */
    pass(time: number): void;
    /** A new client is answered over TLS. */
    answers(): Promise<void>;
}

async function secured(t: Test): Promise<Secured> {
    let time = 0;
    let turn = 0;
    let timer = setImmediate(function count() {
        turn += 1;
        timer = setImmediate(count);
    });
    t.teardown(() => clearImmediate(timer));

    const begun: { readonly socket: Socket; readonly turn: number }[] = [];
    const server = createServer(await certificate(), (_, response) => void response.end('ok'));
    server.on('connection', (socket: Socket) => {
        begun.push({ socket, turn });
        server.emit('begun');
    });
    const protection = protect(server, { handshakeTimeout: 1000, now: () => time });
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
        async several(count) {
            const all: Ends[] = [];
            while (all.length < count) {
                all.push(await opened());
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
        async answers() {
            const asked = connectTls({ port, rejectUnauthorized: false });
            asked.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
            t.match(String((await asked.toArray())[0]), /^HTTP\/1\.1 200 /);
        },
    };
}

/** What a client of TLS says first. */
async function clientHello(): Promise<Buffer> {
    const said = promiseOf<Buffer>();
    const socket = new Duplex({ read() {}, write: (chunk: Buffer, _, done) => done(void said.resolve(chunk)) });
    connectTls({ socket }).on('error', () => {});
    return await said.promise;
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

t.test('begins TLS on one connection in a turn of the event loop, however many hellos have come', async (t) => {
    const { begun, several } = await secured(t);
    const hello = await clientHello();
    const all = await several(20);
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
    talking.client.write(Buffer.concat([Buffer.of(22, 3, 1, 64, 0), Buffer.alloc(16_385)]));
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
    }
});

function promiseOf<T>(): { readonly promise: Promise<T>; resolve(value: T): void } {
    let resolve = (_: T): void => {};
    const promise = new Promise<T>((settle) => {
        resolve = settle;
    });
    return { promise, resolve: (value) => resolve(value) };
}
