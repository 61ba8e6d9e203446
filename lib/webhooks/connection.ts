import type { Socket } from 'node:net';
import { Client } from 'undici';
import { type AnswerWatch, filterInterim } from './interim-filter.ts';

/** How long a connection may idle, unless the receiver's `Keep-Alive` says less. Milliseconds. */
const KEEP_ALIVE = 30_000;
const KEEP_ALIVE_MARGIN = 1000;
const MAX_HEADER_SIZE = 16_384;

/** One connection to a receiver, for one request at a time. */
export interface Connection {
    readonly client: Client;
    readonly socket: Socket;
    readonly answers: AnswerWatch;
    readonly address: string | null;
    readonly fingerprint: string | null;
    /** By `performance.now()`. */
    readonly openedAt: number;
    /** Requests handed to it so far. */
    used: number;
    /** The first error of the socket. An alert of a TLS peer is told here only: the socket goes on and just ends after it. */
    broken: Error | null;
    destroy(): void;
}

export type ConnectionOrigin = Pick<Connection, 'socket' | 'address' | 'fingerprint'> & { readonly origin: string };

/** Raised before a byte of the request is written, so that the request may go out on another connection without being sent twice. */
export class ConnectionLost extends Error {
    override readonly name = 'ConnectionLost';
    readonly code = 'ECONNRESET';
}

/**
 * An HTTP client around a socket that is connected, vetted and secured already. The client cannot connect by itself: when the
 * socket is gone, so is the connection, and a request is never repeated behind our back.
 */
export function connection({ socket, address, fingerprint, origin }: ConnectionOrigin): Connection {
    let handedOver = false;
    const client = new Client(origin, {
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE,
        keepAliveMaxTimeout: KEEP_ALIVE,
        keepAliveTimeoutThreshold: KEEP_ALIVE_MARGIN,
        maxHeaderSize: MAX_HEADER_SIZE,
        // the deadline of the attempt covers both
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: (_options, callback) => {
            const first = !handedOver;
            handedOver = true;
            // undici loses a request when it is called back before `connect` returns
            queueMicrotask(() => (first ? callback(null, socket) : callback(new ConnectionLost('the connection has been closed'), null)));
        },
    });

    const made: Connection = {
        client,
        socket,
        answers: filterInterim(socket),
        address,
        fingerprint,
        openedAt: performance.now(),
        used: 0,
        broken: null,
        destroy() {
            socket.destroy();
            client.destroy().catch(() => undefined);
        },
    };
    socket.on('error', (error) => {
        made.broken ??= error;
    });
    return made;
}
