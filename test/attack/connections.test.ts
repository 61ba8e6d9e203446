import { once } from 'node:events';
import { request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { json, serve } from '../acceptance/support/processes.ts';
import { temporaryFolder } from '../acceptance/support/temporary-folder.ts';
import { clientHello } from '../support/client-hello.ts';

/*
 * Connections that cost a stranger nothing, to the built server: each must end by itself, and none may keep others out.
 */

interface Target {
    readonly port: number;
    get(path: string): Promise<number | undefined>;
}

async function served(t: Test, ...args: string[]): Promise<Target> {
    const data = `${temporaryFolder(t)}/data`;
    const { origin } = await serve(t, data, { args });
    const { key } = await json<{ key: string }>(['keys', 'create', 'reader', '--data', data]);
    return {
        port: Number(new URL(origin).port),
        async get(path) {
            const asked = request(`${origin}${path}`, { headers: { token: key }, agent: false, rejectUnauthorized: false });
            const [answer] = await once(asked.end(), 'response');
            await answer.resume().toArray();
            return answer.statusCode;
        },
    };
}

/** The server with what is set by default. What one test has done to it keeps no other from being served. */
const usual = await served(t);

function opened(t: Test, socket: Socket): { readonly socket: Socket; readonly closed: Promise<unknown> } {
    t.teardown(() => socket.destroy());
    const closed = new Promise((resolve) =>
        socket
            .on('error', () => {})
            .resume()
            .on('close', resolve),
    );
    return { socket, closed };
}

const tls = async (t: Test, port: number, text = '') => {
    const socket = connectTls({ port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    socket.write(text);
    return opened(t, socket);
};

const POST = 'POST /https-record-schema/check HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n';
const GET = 'GET /rest_api/v2/workspaces HTTP/1.1\r\nHost: a\r\ntoken: scw_no\r\n\r\n';

t.test('requests that wait behind others do not fill the memory', { timeout: 90_000 }, async (t) => {
    const { port, get } = usual;
    // The 30 of a connection fit into one record of TLS, so that 29 wait behind the first at once. Those that came one by one might be refused as quickly.
    const wrong = GET.replace('\r\n\r\n', `\r\nX-Filling: ${'x'.repeat(400)}\r\n\r\n`).repeat(30);
    const parked = await Promise.all(Array.from({ length: 200 }, () => tls(t, port)));
    let ended = 0;
    for (const { socket, closed } of parked) {
        socket.write(wrong);
        void closed.then(() => {
            ended += 1;
        });
    }
    // Of 5,800 behind others no more than 1,024 are kept: the connections that have the most of them are ended while they come, sooner than
    // those that were answered are idle for too long.
    await until(() => ended >= 40, 10_000);
    t.equal(await get('/rest_api/v2/workspaces'), 200);
});

t.test('what is silent, slow or idle is destroyed within half a minute', { timeout: 90_000 }, async (t) => {
    const { port, get } = usual;
    const silent = Array.from({ length: 100 }, () => opened(t, connect(port, '127.0.0.1')));
    const handshake = opened(t, connect(port, '127.0.0.1'));
    handshake.socket.write(Buffer.from([22, 3, 1, 1, 0, 1]));
    const others = await Promise.all([tls(t, port), tls(t, port, GET.slice(0, -2)), tls(t, port, POST), tls(t, port, GET)]);
    const drops = setInterval(() => others[1]?.socket.write('X-A: b\r\n'), 1_000);
    t.equal(await get('/rest_api/v2/workspaces'), 200);
    await Promise.all([...silent, handshake, ...others].map(({ closed }) => closed));
    clearInterval(drops);
    t.equal(await get('/rest_api/v2/workspaces'), 200);
});

t.test('a pile of requests that nobody waits for ends its connection only', { timeout: 60_000 }, async (t) => {
    const { port, get } = usual;
    const { socket, closed } = await tls(t, port);
    socket.write(GET.repeat(80_000));
    await closed;
    t.equal(await get('/rest_api/v2/workspaces'), 200);
});

t.test('silent connections, and bodies that hardly come, keep nobody out in any number', { timeout: 60_000 }, async (t) => {
    const { port, get } = await served(t, '--max-connections', '50');
    const silent = Array.from({ length: 300 }, () => opened(t, connect(port, '127.0.0.1')));
    t.equal(await get('/rest_api/v2/workspaces'), 200);
    await Promise.all(silent.slice(0, 200).map(({ closed }) => closed));

    // Nor do bodies that hardly come; in the first second nobody can tell them from those that do.
    const slow = await Promise.all(Array.from({ length: 50 }, () => tls(t, port, POST)));
    await until(async () => (await get('/rest_api/v2/workspaces').catch(() => 0)) === 200);
    await Promise.race(slow.map(({ closed }) => closed));
});

t.test('handshakes that go no further keep nobody out', { timeout: 60_000 }, async (t) => {
    const { port, get } = usual;
    const hello = await clientHello();
    for (let host = 2; host < 12; host += 1) {
        const begun = Array.from({ length: 20 }, () => opened(t, connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${host}` })));
        for (const { socket } of begun) {
            socket.write(hello);
        }
    }
    t.equal(await get('/rest_api/v2/workspaces'), 200);
    t.equal(await get('/rest_api/v2/workspaces'), 200);
});

t.test('strangers who shake hands and say no more do not keep OpenSSL busy, nor anybody out', { timeout: 60_000 }, async (t) => {
    const { port, get } = await served(t, '--max-without-request', '80');
    let secured = 0;
    let closed = 0;
    let isOver = false;
    t.teardown(() => {
        isOver = true;
    });
    const come = (): void => {
        const socket = connectTls({ port, rejectUnauthorized: false });
        socket.once('secureConnect', () => {
            secured += 1;
        });
        void opened(t, socket).closed.then(() => {
            closed += 1;
            if (!isOver) {
                come();
            }
        });
    };
    for (let count = 0; count < 240; count += 1) {
        come();
    }
    // Some have taken the places of others.
    await until(() => closed >= 20, 20_000);
    t.ok(secured - closed <= 80, `${secured - closed} at once`);
    for (let asked = 0; asked < 10; asked += 1) {
        t.equal(await get('/rest_api/v2/workspaces'), 200);
    }
    t.ok(secured - closed <= 80, `${secured - closed} at once`);
});

t.test('one address has its share of connections', { timeout: 60_000 }, async (t) => {
    const { port } = await served(t, '--max-per-address', '3');
    const kept = await Promise.all([tls(t, port), tls(t, port), tls(t, port)]);
    const more = opened(t, connect(port, '127.0.0.1'));
    await more.closed;
    t.notOk(kept.some(({ socket }) => socket.destroyed));
});

t.test('no stranger chooses a key exchange that takes long, or a second handshake', { timeout: 60_000 }, async (t) => {
    const { port } = usual;
    const agreed = async (options: ConnectionOptions) => {
        const socket = connectTls({ port, rejectUnauthorized: false, ...options });
        t.teardown(() => socket.destroy());
        await once(socket, 'secureConnect');
        return socket;
    };
    for (const ecdhCurve of ['X25519', 'P-256', 'P-384']) {
        await agreed({ ecdhCurve });
    }
    for (const ecdhCurve of ['ffdhe8192', 'ffdhe2048', 'P-521']) {
        await t.rejects(agreed({ ecdhCurve }), /handshake failure/, ecdhCurve);
    }

    const socket = await agreed({ maxVersion: 'TLSv1.2' });
    const refused = new Promise((resolve) => socket.on('error', resolve));
    socket.renegotiate({}, (error) => t.ok(error));
    t.match(await refused, /no renegotiation/);
});
