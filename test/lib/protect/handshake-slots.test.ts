import { once } from 'node:events';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { protect } from '../../../lib/protect/connections.ts';
import { certificate } from '../../support/certificates.ts';
import { clientHello } from '../../support/client-hello.ts';

const HEAD = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
/** Of so many slots two are made free in a step, and one is kept for those who come next. */
const MAX = 80;
const FREE = 2;

/** A server whose time passes, and whose connections are looked at, only where the test says so. */
async function server(t: Test, maxWithoutRequest: number) {
    let time = 0;
    let asked = 0;
    const limits = { maxWithoutRequest, handshakeTimeout: 10_000, headTimeout: 100_000, idleTimeout: 100_000 };
    const listener = createServer(await certificate(), (_, response) => {
        asked += 1;
        response.end('ok');
    });
    let begun = 0;
    // TLS hears of a connection when it begins on it.
    listener.on('connection', () => {
        begun += 1;
    });
    // The server would look by itself each second, and does where this takes so long.
    const never = { unref: () => never };
    const timers = mock.method(globalThis, 'setTimeout', () => never);
    const { sweep, connections } = protect(listener, { ...limits, now: () => time });
    await once(listener.listen(0, '127.0.0.1'), 'listening');
    timers.mock.restore();
    const { port } = listener.address() as AddressInfo;
    const all: Socket[] = [];
    t.teardown(() => {
        for (const socket of all) {
            socket.destroy();
        }
        listener.close().closeAllConnections();
    });
    return {
        connections,
        begun: () => begun,
        asked: () => asked,

        /** One more connection, without a hello. */
        async silent(localAddress = '127.0.0.1'): Promise<Socket> {
            const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true }).on('error', () => {});
            all.push(socket);
            await once(socket, 'connect');
            return socket.resume();
        },

        /** A client that asks as soon as it can. */
        asking(localAddress = '127.0.0.1'): TLSSocket {
            const socket = connectTls({ socket: connect({ port, host: '127.0.0.1', localAddress }), rejectUnauthorized: false });
            all.push(socket.on('error', () => {}));
            socket.write(HEAD);
            return socket;
        },

        pass(milliseconds: number): void {
            time += milliseconds;
        },

        step(): void {
            sweep();
        },
    };
}

type Served = Awaited<ReturnType<typeof server>>;

interface Strangers {
    readonly ended: () => number;
    /** Resolves once all who were ended are back and have sent their hello. */
    back(): Promise<void>;
}

/** So many strangers who send a hello and no more, and who come back as soon as they are ended. Resolves once all have sent it. */
async function strangers(t: Test, { silent }: Served, count: number): Promise<Strangers> {
    const hello = await clientHello();
    const there = new Set<Socket>();
    let ended = 0;
    let isOver = false;
    t.teardown(() => {
        isOver = true;
    });
    const come = async (): Promise<void> => {
        const socket = await silent();
        socket.once('close', () => {
            there.delete(socket);
            ended += 1;
            if (!isOver) {
                void come().catch(() => {});
            }
        });
        there.add(socket);
        socket.write(hello);
    };
    for (let made = 0; made < count; made += 1) {
        await come();
    }
    const back = async (): Promise<void> => {
        await until(() => there.size === count);
        await read();
    };
    await back();
    return { ended: () => ended, back };
}

/** Gives the server its turns to read what was sent. */
async function read(): Promise<void> {
    for (let turns = 0; turns < 50; turns += 1) {
        await setImmediate();
    }
}

t.test('lets TLS begin on no more than may be without a request, and ends few of those in a step', async (t) => {
    const served = await server(t, MAX);
    const { ended } = await strangers(t, served, 2 * MAX);
    await until(() => served.begun() === MAX);
    t.equal(ended(), 0);
    for (let steps = 1; steps <= 10; steps += 1) {
        const before = served.begun();
        served.step();
        await until(() => served.begun() > before);
        await until(() => served.connections() === 2 * MAX);
        t.ok(ended() <= steps * FREE, `${ended()} after ${steps} steps`);
        t.ok(served.begun() <= MAX + ended(), `${served.begun()}`);
    }
});

t.test('lets in who has just come, whoever comes back at once and waits from the same address', async (t) => {
    const served = await server(t, MAX);
    const { ended, back } = await strangers(t, served, 3 * MAX);
    served.step();
    await back();
    for (let round = 1; round <= 20; round += 1) {
        const client = served.asking();
        await once(client, 'connect');
        for (let steps = 0; steps < 3; steps += 1) {
            await read();
            served.step();
            await back();
        }
        await until(() => served.asked() === round);
        client.destroy();
    }
    t.ok(ended() >= 20, `${ended()}`);
});

t.test('lets addresses take turns', async (t) => {
    const served = await server(t, MAX);
    await strangers(t, served, 2 * MAX);
    served.step();
    await strangers(t, served, 10);
    await once(served.asking('127.0.0.2'), 'connect');
    await read();
    await strangers(t, served, 10);
    // One begins in a step, and the other address may have the first turn.
    served.step();
    await read();
    served.step();
    await until(() => served.asked() === 1);
    t.pass('it was answered');
});

t.test('counts no connection from which a request has come, nor one without a hello', async (t) => {
    const served = await server(t, 1);
    const silent = [await served.silent(), await served.silent()];
    const clients: TLSSocket[] = [];
    for (let asked = 1; asked <= 3; asked += 1) {
        clients.push(served.asking());
        await until(() => served.asked() === asked);
    }
    served.step();
    clients[0]?.write(HEAD);
    await until(() => served.asked() === 4);
    t.notOk([...silent, ...clients].some(({ destroyed }) => destroyed));
});

t.test('gives a handshake its time once there is a slot for it', async (t) => {
    const served = await server(t, 1);
    const first = await served.silent();
    const hello = await clientHello();
    first.write(hello);
    await until(() => served.begun() === 1);
    const [second, silent] = [await served.silent(), await served.silent()];
    second.write(hello);
    await read();
    served.pass(10_000);
    served.step();
    await Promise.all([until(() => first.destroyed), until(() => silent.destroyed)]);
    await until(() => served.begun() === 2);
    served.pass(9_999);
    served.step();
    t.equal(served.connections(), 1);
    served.pass(1);
    served.step();
    await until(() => served.connections() === 0);
});

t.test('keeps nothing of those who leave while they wait', async (t) => {
    const served = await server(t, 1);
    const hello = await clientHello();
    const all = [await served.silent(), await served.silent(), await served.silent()];
    for (const socket of all) {
        socket.write(hello);
        await read();
    }
    all[1]?.destroy();
    await until(() => served.connections() === 2);
    served.step();
    await until(() => served.begun() === 2 && all[0]?.destroyed === true);
    t.equal(served.connections(), 1);
    t.notOk(all[2]?.destroyed);
});
