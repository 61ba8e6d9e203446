import type { Socket } from 'node:net';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { endpoint } from '../support/endpoint.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

/*
 * Proxies that answer something else than they should: none may hold up an attempt, fill the memory, or put words into the receiver's mouth.
 */

const NOTHING = (): void => {};

const PROXIES: Readonly<Record<string, readonly [serve: (socket: Socket) => void, detail: RegExp]>> = {
    'says nothing': [NOTHING, /^The proxy did not answer within 1000 ms$/],
    'sends headers without end': [
        (socket) => {
            socket.write('HTTP/1.1 200 OK\r\n');
            const more = (): void => void (socket.writable && socket.write(`X-A: ${'a'.repeat(1_000)}\r\n`, () => setImmediate(more)));
            more();
        },
        /^The proxy answered with more than 16384 bytes$/,
    ],
    'sends one line without end': [
        (socket) => {
            const more = (): void => void (socket.writable && socket.write('a'.repeat(1_000), () => setImmediate(more)));
            more();
        },
        /^The proxy answered with more than 16384 bytes$/,
    ],
    drips: [
        (socket) => {
            const timer = setInterval(() => socket.write('a'), 20);
            socket.on('close', () => clearInterval(timer));
        },
        /^The proxy did not answer within 1000 ms$/,
    ],
    'speaks another protocol': [(socket) => void socket.write('220 mail.test ESMTP\r\n\r\n'), /^The proxy did not answer in HTTP\/1.1$/],
    'answers in a status that is none': [(socket) => void socket.write('HTTP/1.1 99 x\r\n\r\n'), /^The proxy did not answer in HTTP\/1.1$/],
    'answers in an interim status': [
        (socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
        /^The proxy did not answer in HTTP\/1.1$/,
    ],
    'speaks for the receiver': [
        (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
        /^The proxy sent more than an answer$/,
    ],
    'hangs up': [(socket) => void socket.end(), /^The proxy closed the connection without an answer$/],
    'hangs up in the middle': [(socket) => void socket.end('HTTP/1.1 200 O'), /^The proxy closed the connection without an answer$/],
    'breaks off': [(socket) => void socket.resetAndDestroy(), /^The proxy closed the connection without an answer$/],
};

for (const [name, [serve, detail]] of Object.entries(PROXIES)) {
    t.test(`a proxy that ${name} costs one attempt and nothing more`, async (t) => {
        const hostile = await endpoint((socket) => socket.once('data', () => serve(socket)));
        t.teardown(() => hostile.close());
        const came: string[] = [];
        const receiver = await secureServer(t, (request, response) => {
            came.push(String(request.url));
            response.writeHead(204).end();
        });
        for (const url of [receiver, receiver.replace('https', 'http')]) {
            const outcome = await loopbackSender(t, { connectTimeout: 1_000 }).send({
                exporterId: 'e',
                url,
                trust: 'strict',
                headers: [['X-Secret', 'hidden']],
                authentication: {
                    proxy: { url: `http://user:hidden@127.0.0.1:${hostile.port}` },
                    ...(url === receiver && { ca: ROOT.cert }),
                },
                body: Buffer.from('{"hidden":1}'),
            });
            t.match(outcome, { code: 'proxy_failed', detail, status: null });
            t.notMatch(JSON.stringify(outcome), /hidden|mail\.test/);
        }
        t.same(came, []);
        t.notMatch(hostile.received(), /hidden/, 'the message waits for the tunnel');
        await until(() => hostile.open() === 0);
    });
}
