import { maxHeaderSize, type Server } from 'node:http';
import type { Server as TlsListener } from 'node:https';
import type { Duplex } from 'node:stream';

const BODY = JSON.stringify({
    statusCode: 431,
    error: 'Request Header Fields Too Large',
    message: `The path, the query and the headers of a request must not be longer than ${maxHeaderSize.toLocaleString('en')} bytes in all`,
});

const ANSWER = [
    'HTTP/1.1 431 Request Header Fields Too Large',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(BODY)}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'connection: close',
    '',
    BODY,
].join('\r\n');

type Failed = (error: NodeJS.ErrnoException, socket: Duplex) => void;

/**
 * Answers a request whose URL or headers are too long, which no route ever sees, with a reason; hapi has a 400 for it that says nothing. What
 * else is no HTTP is left to those who listened before.
 *
 * @param isAnswering Whether an answer is under way on a connection, into which another must not be written.
 */
export function answerLongHeads(listener: Server | TlsListener, isAnswering: (socket: Duplex) => boolean): void {
    const others = listener.listeners('clientError') as Failed[];
    listener.removeAllListeners('clientError');
    listener.on('clientError', (error: NodeJS.ErrnoException, socket) => {
        if (error.code === 'HPE_HEADER_OVERFLOW' && socket.writable && !isAnswering(socket)) {
            socket.end(ANSWER);
        } else if (others.length === 0) {
            socket.destroy(error);
        } else {
            for (const other of others) {
                other.call(listener, error, socket);
            }
        }
    });
}
