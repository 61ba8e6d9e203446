import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import type { HeaderPairs } from './exporter.ts';
import type { AttemptProgress } from './outcome.ts';

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
    /** By `performance.now()`. */
    readonly openedAt: number;
    /** Requests sent over it so far. */
    requests: number;
    /** The first error of the socket. An alert of a TLS peer is seen here only: the socket goes on and just ends after it. */
    socketError: Error | null;
    destroy(): void;
}

/** A socket that is connected, and where it leads. */
export type ConnectedSocket = Pick<Connection, 'socket' | 'address' | 'fingerprint'> & { readonly origin: string };

/** Raised before a byte of the request is written, so that the request may go out on another connection without being sent twice. */
class ConnectionLost extends Error {
    override readonly name = 'ConnectionLost';
    readonly code = 'ECONNRESET';
}

/**
 * An HTTP client around a socket that is connected, vetted and secured already. The client cannot connect by itself: when the
 * socket is gone, so is the connection, and undici cannot repeat a request by itself.
 */
export function connection({ socket, address, fingerprint, origin }: ConnectedSocket): Connection {
    let connected = false;
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
            const first = !connected;
            connected = true;
            // undici loses a request when it is called back before `connect` returns
            queueMicrotask(() => (first ? callback(null, socket) : callback(new ConnectionLost('The connection was closed'), null)));
        },
    });

    const made: Connection = {
        client,
        socket,
        responses: filterInterim(socket),
        address,
        fingerprint,
        openedAt: performance.now(),
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

/** One POST over a connection. */
export interface ExchangeRequest {
    /** Path and query. */
    readonly path: string;
    readonly headers: HeaderPairs;
    readonly body: Uint8Array;
    readonly maxResponseBytes: number;
    /** Ends the exchange at once, whatever it waits for. */
    readonly signal: AbortSignal;
    /** Receives the time of `firstByte`. */
    readonly progress: AttemptProgress;
}

/** What came of it. */
export interface Exchange {
    /** Null when no whole head of a final response came. */
    readonly status: number | null;
    readonly location: string | undefined;
    readonly retryAfter: string | readonly string[] | undefined;
    /** What ended it before the end of the response; null when the response came whole. */
    readonly error: unknown;
    /** Whether a byte of the request may have been sent. */
    readonly written: boolean;
    /** Whether part of the request was still waiting to be sent when it ended. */
    readonly unsent: boolean;
}

/** The body of the response was longer than what is read of one. */
export class ResponseTooLong extends Error {
    override readonly name = 'ResponseTooLong';
    readonly maxBytes: number;

    constructor(maxBytes: number) {
        super(`Response body of more than ${maxBytes} bytes`);
        this.maxBytes = maxBytes;
    }
}

/** Sends one POST over a connection and reads the response, which is counted and thrown away. Never rejects. */
export function exchange(connection: Connection, request: ExchangeRequest): Promise<Exchange> {
    const { signal, progress, maxResponseBytes } = request;
    const state = { status: null as number | null, headers: {} as Headers, bytes: 0, written: false };

    return new Promise((resolve) => {
        const finish = (error: unknown): void => {
            signal.removeEventListener('abort', onAbort);
            const { status, headers, written } = state;
            const unsent = connection.socket.writableLength > 0;
            resolve({ status, location: onlyValue(headers.location), retryAfter: headers['retry-after'], error, written, unsent });
            if (error !== null) {
                connection.destroy();
            }
        };
        const onAbort = (): void => finish(signal.reason);
        const handler: Dispatcher.DispatchHandler = {
            onRequestStart() {
                state.written = true;
                watchFirstByte(connection, progress);
            },
            onResponseStart(_controller, status, headers) {
                state.status = status;
                state.headers = headers;
            },
            onResponseData(_controller, chunk) {
                state.bytes += chunk.length;
                if (state.bytes > maxResponseBytes) {
                    finish(new ResponseTooLong(maxResponseBytes));
                }
            },
            onResponseEnd() {
                finish(null);
            },
            onResponseError(_controller, error) {
                finish(connection.socketError ?? error);
            },
        };

        if (signal.aborted) {
            onAbort();
            return;
        }

        signal.addEventListener('abort', onAbort, { once: true });
        connection.requests += 1;
        try {
            connection.client.dispatch(requestOptions(request), handler);
        } catch (error) {
            finish(error);
        }
    });
}

type Headers = Record<string, string | string[] | undefined>;

function requestOptions({ path, headers, body }: ExchangeRequest): Dispatcher.DispatchOptions {
    return {
        method: 'POST',
        path,
        // the response's body is never decoded, so no coding is asked for
        headers: [...headers.flat(), 'Accept-Encoding', 'identity'],
        body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
    };
}

/** Counts from the moment in which the request has left our buffers, which is now unless the receiver is slow to read. */
function watchFirstByte({ socket, responses }: Connection, progress: AttemptProgress): void {
    let sentAt = performance.now();
    queueMicrotask(() => {
        if (socket.writableNeedDrain) {
            socket.once('drain', () => {
                sentAt = performance.now();
            });
        }
    });
    responses.expect(() => {
        progress.firstByte = Math.max(0, performance.now() - sentAt);
    });
}

function onlyValue(value: string | string[] | undefined): string | undefined {
    return typeof value === 'string' ? value : undefined;
}

/** More than this of one interim head is left to the parser, which refuses it. */
const MAX_HEAD = 16_384;
const EMPTY: Buffer = Buffer.alloc(0);

/** Watches for the responses on a connection. */
export interface ResponseWatch {
    /** To be called before each request: the next bytes are the head of a response. */
    expect(onFirstByte: () => void): void;
}

/**
 * Takes interim responses (100 to 199, but 101) out of what is read from a socket. A client must bear them unasked (RFC 9110,
 * 15.2), some older servers send `100 Continue` to every POST, and undici breaks the connection at one.
 */
function filterInterim(socket: Socket): ResponseWatch {
    const read = socket.read.bind(socket);
    let held: Buffer = EMPTY;
    let firstByte: (() => void) | null = null;
    let watching = false;

    socket.read = (size?: number): Buffer | null => {
        if (!watching || size !== undefined) {
            return read(size);
        }

        for (let chunk = read(); chunk !== null; chunk = read()) {
            firstByte?.();
            firstByte = null;
            held = withoutInterim(Buffer.concat([held, chunk]));
            if (!mayBeInterim(held)) {
                const rest = held;
                held = EMPTY;
                watching = false;
                return rest;
            }
        }

        return null;
    };

    return {
        expect(onFirstByte) {
            held = EMPTY;
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
