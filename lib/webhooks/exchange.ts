import type { Dispatcher } from 'undici';
import type { Connection } from './connection.ts';
import type { HeaderPairs } from './exporter.ts';
import type { AttemptProgress } from './outcome.ts';

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
    /** The response's own `Date`. */
    readonly date: string | undefined;
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
            resolve({
                status,
                location: onlyValue(headers.location),
                retryAfter: headers['retry-after'],
                date: onlyValue(headers.date),
                error,
                written,
                unsent,
            });
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
        connection.client.dispatch(requestOptions(request), handler);
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
