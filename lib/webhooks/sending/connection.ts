import type { Socket } from 'node:net';
import { Client } from 'undici';
import { machineClock } from '../../clock.ts';
import type { PresentedCertificate } from '../outcomes/outcome.ts';

/** How long a connection may idle, unless the receiver's `Keep-Alive` says less. Milliseconds. */
const KEEP_ALIVE = 30_000;
const KEEP_ALIVE_MARGIN = 1000;
const MAX_HEADER_SIZE = 16_384;

/** One connection to a receiver, for one request at a time. */
export interface Connection {
    readonly client: Client;
    readonly socket: Socket;
    readonly responses: ResponseWatch;
    readonly address: string | null;
    readonly fingerprint: string | null;
    /** The receiver's certificate, for the outcome of each attempt over the connection. */
    readonly certificate: PresentedCertificate | null;
    /** By `machineClock`. */
    readonly connectedAt: number;
    /** Requests sent over it so far. */
    requests: number;
    /** The first error of the socket. An alert from the TLS peer is seen only here: after it the socket just ends. */
    socketError: Error | null;
    destroy(): void;
}

/** A socket that is connected, and where it leads. */
export type ConnectedSocket = Pick<Connection, 'socket' | 'address' | 'fingerprint' | 'certificate'> & { readonly origin: string };

/** Raised before a byte of the request is written, so that the request may go out on another connection without being sent twice. */
class ConnectionLost extends Error {
    override readonly name = 'ConnectionLost';
    readonly code = 'ECONNRESET';
}

/**
 * An HTTP client around a socket that is connected, vetted and secured already. The client cannot connect by itself: when the
 * socket is gone, so is the connection, and undici cannot repeat a request by itself.
 */
export function connection({ socket, address, fingerprint, certificate, origin }: ConnectedSocket): Connection {
    let connected = false;
    const client = new Client(origin, {
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE,
        keepAliveMaxTimeout: KEEP_ALIVE,
        keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN,
        maxHeaderSize: MAX_HEADER_SIZE,
        // the time limit of the attempt covers both
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: (_options, callback) => {
            const first = !connected;
            connected = true;
            // undici loses a request if its callback is called before `connect` returns
            queueMicrotask(() => (first ? callback(null, socket) : callback(new ConnectionLost('The connection was closed'), null)));
        },
    });

    const made: Connection = {
        client,
        socket,
        responses: filterInterim(socket),
        address,
        fingerprint,
        certificate,
        connectedAt: machineClock.now(),
        requests: 0,
        socketError: null,
        destroy() {
            socket.destroy();
            client.destroy().catch(() => undefined);
        },
    };
    socket.on('error', (error) => {
        made.socketError ??= error;
    });
    return made;
}

/** The longest interim head that is filtered out, in bytes. A longer one is left to the parser, which refuses it. */
const MAX_HEAD = 16_384;
const EMPTY: Buffer = Buffer.alloc(0);

/** Watches for the responses on a connection. */
export interface ResponseWatch {
    /** To be called before each request: the next bytes are the head of a response. */
    expect(onFirstByte: () => void): void;
}

/**
 * Removes interim responses (100 to 199 except 101) from what is read from a socket. A client must accept them even if it has not asked for any
 * (RFC 9110, 15.2), and some older servers send `100 Continue` to every POST. undici would break the connection at one.
 */
function filterInterim(socket: Socket): ResponseWatch {
    const read = socket.read.bind(socket);
    let unread: Buffer = EMPTY;
    let firstByte: (() => void) | null = null;
    let watching = false;

    socket.read = (size?: number): Buffer | null => {
        if (!watching || size !== undefined) {
            return read(size);
        }

        for (let chunk = read(); chunk !== null; chunk = read()) {
            firstByte?.();
            firstByte = null;
            unread = withoutInterim(Buffer.concat([unread, chunk]));
            if (!mayBeInterim(unread)) {
                const rest = unread;
                unread = EMPTY;
                watching = false;
                return rest;
            }
        }

        return null;
    };

    return {
        expect(onFirstByte) {
            unread = EMPTY;
            firstByte = onFirstByte;
            watching = true;
        },
    };
}

const INTERIM = /^HTTP\/1\.\d 1(?!01)\d\d/;

/** The bytes behind all whole interim heads they start with. */
function withoutInterim(bytes: Buffer): Buffer {
    let rest = bytes;
    while (INTERIM.test(rest.toString('latin1', 0, 12))) {
        const end = rest.indexOf('\r\n\r\n');
        if (end === -1) {
            break;
        }

        rest = rest.subarray(end + 4);
    }

    return rest;
}

/** True for the start of an interim head, and for bytes that are still too few to tell. */
function mayBeInterim(bytes: Buffer): boolean {
    const start = bytes.toString('latin1', 0, 12);
    return bytes.length < MAX_HEAD && (start.length < 12 ? 'HTTP/1.1 1'.startsWith(start.slice(0, 10)) : INTERIM.test(start));
}
