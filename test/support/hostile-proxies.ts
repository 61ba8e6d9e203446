import type { Socket } from 'node:net';

const NOTHING = (): void => {};

/** Proxies that answer something else than they should, each with what is said of it. MS stands for the time that one may take. */
export const HOSTILE_PROXIES: Readonly<Record<string, readonly [serve: (socket: Socket) => void, detail: string]>> = {
    'says nothing': [NOTHING, 'The proxy did not answer within MS ms'],
    'sends headers without end': [
        (socket) => {
            socket.write('HTTP/1.1 200 OK\r\n');
            const more = (): void => void (socket.writable && socket.write(`X-A: ${'a'.repeat(1_000)}\r\n`, () => setImmediate(more)));
            more();
        },
        'The proxy answered with more than 16384 bytes',
    ],
    'sends one line without end': [
        (socket) => {
            const more = (): void => void (socket.writable && socket.write('a'.repeat(1_000), () => setImmediate(more)));
            more();
        },
        'The proxy answered with more than 16384 bytes',
    ],
    drips: [
        (socket) => {
            const timer = setInterval(() => socket.write('a'), 20);
            socket.on('close', () => clearInterval(timer));
        },
        'The proxy did not answer within MS ms',
    ],
    'speaks another protocol': [(socket) => void socket.write('220 mail.test ESMTP\r\n\r\n'), 'The proxy did not answer in HTTP/1.1'],
    'answers in a status that is none': [(socket) => void socket.write('HTTP/1.1 99 x\r\n\r\n'), 'The proxy did not answer in HTTP/1.1'],
    'answers in an interim status': [
        (socket) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'),
        'The proxy did not answer in HTTP/1.1',
    ],
    'speaks for the receiver': [
        (socket) => void socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'),
        'The proxy sent more than an answer',
    ],
    'hangs up': [(socket) => void socket.end(), 'The proxy closed the connection without an answer'],
    'hangs up in the middle': [(socket) => void socket.end('HTTP/1.1 200 O'), 'The proxy closed the connection without an answer'],
    'breaks off': [(socket) => void socket.resetAndDestroy(), 'The proxy closed the connection without an answer'],
};
