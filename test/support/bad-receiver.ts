import net from 'node:net';
import tls from 'node:tls';
import { gzipSync } from 'node:zlib';
import type { OutcomeCode } from '../../lib/webhooks/outcomes/outcome.ts';

/** What a receiver does with a connection. `request` resolves once a whole request has come, again for the next one. */
export type Behaviour = (socket: net.Socket, request: () => Promise<void>) => void | Promise<void>;

export interface Receiver {
    readonly port: number;
    /** Connections accepted so far; for TLS, those whose handshake was finished. */
    connections(): number;
    /** All that was received, of all connections. */
    received(): string;
    close(): Promise<void>;
}

/** A server on a free loopback port that behaves as told, on every connection. */
export async function receiver(behaviour: Behaviour, secure?: tls.TlsOptions): Promise<Receiver> {
    const sockets = new Set<net.Socket>();
    let connections = 0;
    let received = '';
    const serve = (socket: net.Socket): void => {
        connections += 1;
        socket.on('error', () => undefined);
        let unread = '';
        const waiting: (() => void)[] = [];
        const request = (): Promise<void> =>
            new Promise((resolve) => {
                waiting.push(resolve);
                check();
            });
        const check = (): void => {
            const whole = wholeRequest(unread);
            if (whole > 0 && waiting.length > 0) {
                unread = unread.slice(whole);
                waiting.shift()?.();
            }
        };
        socket.on('data', (chunk) => {
            received += chunk.toString('latin1');
            unread += chunk.toString('latin1');
            check();
        });
        Promise.resolve(behaviour(socket, request)).catch(() => socket.destroy());
    };
    const server = secure === undefined ? net.createServer({ noDelay: true }, serve) : tls.createServer(secure, serve);
    server.on('connection', (socket: net.Socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

    return {
        port: (server.address() as net.AddressInfo).port,
        connections: () => connections,
        received: () => received,
        async close() {
            for (const socket of sockets) {
                socket.destroy();
            }

            await new Promise((resolve) => server.close(resolve));
        },
    };
}

/** How many characters the first request in the text has; 0 while it is not whole. */
function wholeRequest(text: string): number {
    const head = text.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    return head === -1 || text.length < head + 4 + length ? 0 : head + 4 + length;
}

/** Answers every request with the same bytes and leaves the rest to the sender. */
export function answers(...parts: readonly (string | Buffer)[]): Behaviour {
    return async (socket, request) => {
        for (;;) {
            await request();
            for (const part of parts) {
                socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
            }
        }
    };
}

/** Writes something again and again until the connection is gone. */
function drips(head: string, drop: string | Buffer, everyMs: number): Behaviour {
    return async (socket, request) => {
        await request();
        socket.write(head);
        const timer = setInterval(() => socket.write(drop), everyMs);
        socket.once('close', () => clearInterval(timer));
    };
}

const OK = 'HTTP/1.1 200 OK\r\n';

export interface BadBehaviour {
    readonly behaviour: Behaviour;
    readonly code: OutcomeCode;
    readonly status: number | null;
    /** The attempt lasts until its deadline. */
    readonly untilDeadline?: true;
    /** Bytes of the message; small by default. */
    readonly bodySize?: number;
    readonly retryAfter?: number;
}

const bad = (code: OutcomeCode, status: number | null, behaviour: Behaviour, more: Partial<BadBehaviour> = {}): BadBehaviour => ({
    behaviour,
    code,
    status,
    ...more,
});

const untilDeadline = { untilDeadline: true } as const;

/** Receivers as they are met, and as an attacker would write them, with what a message to them must come to. */
export const BAD_RECEIVERS: Readonly<Record<string, BadBehaviour>> = {
    'drips its head': bad('headers_timeout', null, drips(OK, 'X-A: b\r\n', 30), untilDeadline),
    'drips its status line': bad('headers_timeout', null, drips('HTTP/1.1 200 ', 'O', 30), untilDeadline),
    'accepts and never answers': bad('headers_timeout', null, () => undefined, untilDeadline),
    'sends interim answers for ever': bad('headers_timeout', null, drips('', 'HTTP/1.1 102 Processing\r\n\r\n', 10), untilDeadline),
    'never reads a large message': bad('timeout', null, (socket) => void socket.pause(), { ...untilDeadline, bodySize: 30_000_000 }),
    'drips its body': bad('delivered', 200, drips(`${OK}Content-Length: 1000000\r\n\r\n`, 'x', 30), untilDeadline),
    'stalls in its body': bad('delivered', 202, answers('HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\nx'), untilDeadline),

    'sends an endless body': bad('delivered', 200, drips(`${OK}\r\n`, Buffer.alloc(100_000), 1)),
    'sends an endless chunked body': bad(
        'delivered',
        200,
        drips(`${OK}Transfer-Encoding: chunked\r\n\r\n`, `400\r\n${'x'.repeat(1024)}\r\n`, 1),
    ),
    'sends a gzip bomb': bad(
        'delivered',
        200,
        answers(
            `${OK}Content-Encoding: gzip\r\nContent-Length: ${gzipSync(Buffer.alloc(20_000_000)).length}\r\n\r\n`,
            gzipSync(Buffer.alloc(20_000_000)),
        ),
    ),
    'sends corrupt gzip': bad('delivered', 200, answers(`${OK}Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd`)),
    'resets after its head': bad('delivered', 200, async (socket, request) => {
        await request();
        socket.write(`${OK}Content-Length: 100\r\n\r\n`, () => setTimeout(() => socket.resetAndDestroy(), 50));
    }),
    'sends a bad chunk size': bad('delivered', 200, answers(`${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)),
    'sends a huge chunk extension': bad(
        'delivered',
        200,
        answers(`${OK}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(100_000)}\r\na\r\n0\r\n\r\n`),
    ),
    'sends less than its Content-Length': bad('delivered', 200, async (socket, request) => {
        await request();
        socket.end(`${OK}Content-Length: 100\r\n\r\nshort`);
    }),
    'answers 204 with a body': bad('delivered', 204, answers('HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello')),
    'answers in HTTP/1.0 without a length': bad('delivered', 200, async (socket, request) => {
        await request();
        socket.end('HTTP/1.0 200 OK\r\n\r\nhello');
    }),
    'sends 100, 102 and 103 before its answer': bad(
        'delivered',
        200,
        answers(
            'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
            `${OK}Content-Length: 0\r\n\r\n`,
        ),
    ),
    'sends 100 byte by byte': bad('delivered', 200, async (socket, request) => {
        await request();
        for (const byte of `HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 0\r\n\r\n`) {
            socket.write(byte);
            await new Promise((resolve) => setImmediate(resolve));
        }
    }),
    'answers twice at once': bad('delivered', 200, answers(`${OK}Content-Length: 0\r\n\r\n`.repeat(2))),

    'answers 413 before it has read the message': bad(
        'client_error',
        413,
        (socket) => void socket.once('data', () => socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n')),
        { bodySize: 30_000_000 },
    ),
    'answers 304': bad('unexpected_status', 304, answers('HTTP/1.1 304 Not Modified\r\n\r\n')),
    'answers 101': bad(
        'protocol_error',
        null,
        answers('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
    ),
    'answers 999': bad('unexpected_status', 999, answers('HTTP/1.1 999 Nonsense\r\nContent-Length: 0\r\n\r\n')),
    'answers 410': bad('gone', 410, answers('HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n')),
    'answers 401': bad('client_error', 401, answers('HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n')),
    'answers 500': bad('server_error', 500, answers('HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n')),
    'answers 429 with Retry-After': bad('rate_limited', 429, answers('HTTP/1.1 429 Slow\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n'), {
        retryAfter: 30_000,
    }),
    'answers 503 with two Retry-After': bad(
        'server_error',
        503,
        answers('HTTP/1.1 503 Busy\r\nRetry-After: 30\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n'),
    ),

    'sends 70 kB of headers': bad('protocol_error', null, answers(`${OK}X-Big: ${'x'.repeat(70_000)}\r\n\r\n`)),
    'sends 10,000 headers': bad('protocol_error', null, answers(`${OK}${'X-A: b\r\n'.repeat(10_000)}\r\n`)),
    'sends a huge interim head': bad('protocol_error', null, answers(`HTTP/1.1 103 Hints\r\nX-Big: ${'x'.repeat(70_000)}\r\n\r\n`)),
    'sends a control byte in a header': bad('protocol_error', null, answers(`${OK}X-A: \x00\r\nContent-Length: 0\r\n\r\n`)),
    'sends two lengths': bad('protocol_error', null, answers(`${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nx`)),
    'answers in HTTP/0.9': bad('protocol_error', null, async (socket, request) => {
        await request();
        socket.end('<html>hello</html>');
    }),
    'answers in HTTP/2': bad('protocol_error', null, answers(Buffer.from('000012040000000000000300000064', 'hex'))),
    'greets like SSH': bad('protocol_error', null, (socket) => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')),
    'greets like SMTP': bad('protocol_error', null, (socket) => void socket.write('220 mail.example ESMTP\r\n')),
    'answers like Redis': bad('protocol_error', null, answers("-ERR unknown command 'POST'\r\n")),
    'closes without an answer': bad('connection_reset', null, async (socket, request) => {
        await request();
        socket.end();
    }),
    'resets without an answer': bad('connection_reset', null, async (socket, request) => {
        await request();
        socket.resetAndDestroy();
    }),
    'closes within its head': bad('connection_reset', null, async (socket, request) => {
        await request();
        socket.end('HTTP/1.1 200 OK\r\nContent-');
    }),
};
