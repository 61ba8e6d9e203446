import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { mock } from 'node:test';
import { setImmediate as setNextTurn } from 'node:timers';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import type { ConnectionLimits } from '../../../lib/protect/connection-limits.ts';
import { protect } from '../../../lib/protect/connections.ts';

/** How many that wait are ended in a step; a round, in which all are looked at, has ten, and one to begin with. */
const IN_STEP = 12;
const ROUND = 11;
/** Of those that end at once, more than could be ended in a round if they were spared. */
const MANY = 240;
const HEAD = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** A server whose time passes, and whose connections are looked at, only where the test says so. Limits of time are 1 s. */
async function server(t: Test, limits: ConnectionLimits = {}, answer: RequestListener = (_, response) => void response.end('ok')) {
    mock.timers.enable({ apis: ['setTimeout'] });
    let time = 0;
    const listener = createServer(answer);
    const { connections } = protect(listener, { now: () => time, headTimeout: 1000, idleTimeout: 1000, answerTimeout: 1000, ...limits });
    const ended: { readonly from: string; readonly turn: number }[] = [];
    let turn = 0;
    let timer = setNextTurn(function count() {
        turn += 1;
        timer = setNextTurn(count);
    });
    listener.on('connection', (socket: Socket) => {
        const from = socket.remoteAddress ?? '';
        socket.on('close', () => ended.push({ from, turn }));
    });
    const listen = () => once(listener.listen(0, '127.0.0.1'), 'listening');
    await listen();
    t.teardown(async () => {
        clearImmediate(timer);
        const closed = once(listener.close(), 'close');
        listener.closeAllConnections();
        await closed;
        // Timers of one test and of the next have the same names.
        mock.timers.reset();
    });
    return {
        listener,
        connections,
        ended,
        listen,

        /** So many connections, from an address. */
        async connect(count: number, localAddress = '127.0.0.1'): Promise<readonly Socket[]> {
            const before = connections();
            const { port } = listener.address() as AddressInfo;
            const sockets = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {}));
            await until(() => connections() === before + count);
            return sockets;
        },

        pass(milliseconds: number): void {
            time += milliseconds;
        },

        /** Lets it take so many steps, and ends happen. */
        async look(steps: number): Promise<void> {
            for (let step = 0; step < steps; step += 1) {
                mock.timers.tick(1000);
                for (let turns = 0; turns < 20; turns += 1) {
                    await setImmediate();
                }
            }
        },
    };
}

t.test('ends few of those that wait in a step, however long nothing was over, and few of all in a turn of the event loop', async (t) => {
    const { connect, ended, pass, look, connections } = await server(t);
    await connect(200);
    await look(3 * ROUND);
    pass(1000);
    for (let steps = 1; steps <= ROUND; steps += 1) {
        await look(1);
        t.ok(ended.length <= steps * IN_STEP, `${ended.length} after ${steps} steps`);
    }
    t.ok(ended.length >= (ROUND - 2) * IN_STEP, `${ended.length}`);
    const most = Math.max(...ended.map(({ turn }) => ended.filter((other) => other.turn === turn).length));
    t.ok(most <= 16, `${most} in a turn`);
    await look(2 * ROUND);
    t.equal(connections(), 0);
});

t.test('leaves to nobody else to end those that wait for their next request', async (t) => {
    const { listener, connect, ended, pass, look } = await server(t);
    const accepted: Socket[] = [];
    listener.on('connection', (socket: Socket) => accepted.push(socket));
    for (const socket of await connect(40)) {
        socket.write(HEAD);
        await once(socket, 'data');
    }
    await until(() => accepted.every(({ timeout }) => timeout === 0));
    pass(1000);
    await look(2);
    t.ok(ended.length <= 2 * IN_STEP, `${ended.length}`);
    await look(2 * ROUND);
    t.equal(ended.length, 40);
});

t.test('ends at once what keeps something of ours', async (t) => {
    let begun = 0;
    const { connect, ended, pass, look } = await server(t, { bodyTimeout: 1000 }, () => {
        begun += 1;
    });
    // Their bodies do not come.
    for (const socket of await connect(MANY)) {
        socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n');
    }
    await until(() => begun === MANY);
    await look(2 * ROUND);
    t.equal(ended.length, 0);
    pass(1000);
    await look(2 * ROUND);
    t.equal(ended.length, MANY);
});

t.test('ends what is slow with a body that was answered before it came', async (t) => {
    const { connect, ended, pass, look } = await server(t, { bodyTimeout: 1000, idleTimeout: 100_000, headTimeout: 100_000 });
    for (const socket of await connect(40)) {
        const answer = once(socket, 'data');
        socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n');
        await answer;
    }
    pass(1000);
    await look(2 * ROUND);
    t.equal(ended.length, 40);
});

t.test('spares nobody who stands in the way of others of the address', async (t) => {
    const { connect, ended, pass, look } = await server(t, { maxPerAddress: 60 });
    const others = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6'];
    for (const other of others) {
        await connect(59, other);
    }
    await connect(60);
    await look(2 * ROUND);
    pass(1000);
    await look(ROUND);
    t.ok(ended.filter(({ from }) => others.includes(from)).length <= ROUND * IN_STEP, 'others wait for their turn');
    t.ok(ended.some(({ from }) => from === '127.0.0.1'));
    await connect(1);
});

t.test('lets one that was spared ask', async (t) => {
    const { connect, ended, pass, look, connections } = await server(t);
    const sockets = await connect(300);
    pass(1000);
    // All are over, and were seen to be; few were ended.
    await look(ROUND);
    const late = sockets.findLast(({ destroyed }) => !destroyed) as Socket;
    late.write(HEAD);
    await once(late, 'data');
    await look(3 * ROUND);
    t.equal(ended.length, 299);
    t.equal(connections(), 1);
});

t.test('looks at all of them in a second, however many come meanwhile', async (t) => {
    const { connect, ended, pass, look } = await server(t);
    const slow = await connect(100);
    await look(1);
    pass(1000);
    // As many as are looked at in a step come and go.
    for (let step = 0; step < 2 * ROUND; step += 1) {
        const brief = await connect(20);
        await look(1);
        const before = ended.length;
        for (const socket of brief) {
            socket.destroy();
        }
        await until(() => ended.length === before + brief.length);
    }
    t.equal(slow.filter(({ destroyed }) => !destroyed).length, 0);
});

t.test('lets one ask that was found to be over, and was not ended yet', async (t) => {
    const { connect, ended, pass, look } = await server(t, { maxPerAddress: 1000 });
    const sockets = await connect(1000);
    pass(1000);
    // It is among the last of the first step, which ends all of its 100, and its request is read some turns before its end would come.
    const asking = sockets[97] as Socket;
    await until(() => !asking.connecting);
    const answer = once(asking, 'data');
    asking.write(HEAD);
    await look(1);
    t.equal(ended.length, 99);
    t.match(String((await answer)[0]), /^HTTP\/1\.1 200 /);
});

t.test('spares nobody once nobody can come back, and looks again where the listener listens again', async (t) => {
    const { listener, listen, connect, ended, pass, look } = await server(t);
    await connect(200);
    const closed = once(listener.close(), 'close');
    pass(1000);
    await look(ROUND);
    await closed;
    t.equal(ended.length, 200);

    await listen();
    await connect(20);
    pass(1000);
    await look(2 * ROUND);
    t.equal(ended.length, 220);
});
