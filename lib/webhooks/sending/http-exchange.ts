import type { Dispatcher } from 'undici';
import type { HeaderPairs } from '../messages/message-headers.ts';
import type { AttemptProgress } from '../outcomes/outcome.ts';
import type { Connection } from './connection.ts';

/** One POST over a connection. */
export interface ExchangeRequest {
    /** Path and query. */
    readonly path: string;
    readonly headers: HeaderPairs;
    readonly body: Uint8Array;
    readonly maxResponseBytes: number;
    /** Whether the beginning of the body is kept when the answer is no 2xx. */
    readonly keepsBody: boolean;
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
    /** The body of an answer that is no 2xx; null for a 2xx, and where bodies are not kept. */
    readonly body: KeptBody | null;
    /** Whether a byte of the request may have been sent. */
    readonly written: boolean;
    /** Whether part of the request was still waiting to be sent when it ended. */
    readonly unsent: boolean;
}

/** The body of an answer, as it came. */
export interface KeptBody {
    /** At most 4 KiB of its beginning. */
    readonly body: Uint8Array;
    /** How many bytes of it were read. */
    readonly bytes: number;
    /** Whether it has a `Content-Encoding`, which is not decoded. */
    readonly encoded: boolean;
    /** Whether the body is longer than what is kept. */
    readonly cut: boolean;
}

/** An answer that is no 2xx: its body, and the headers of the request that it answers. */
export interface RefusedResponse extends KeptBody {
    /** The headers that were sent, those of the authentication too. */
    readonly sent: HeaderPairs;
}

/** Maximum number of bytes of a body that are kept. It is more than is shown, since a secret in it is longer than the mask that replaces it. */
const MAX_KEPT_BYTES = 4096;

/** Any 2xx is success. */
export function isSuccess(status: number): boolean {
    return status >= 200 && status <= 299;
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

/** Sends one POST over a connection and reads the response, whose body is counted and thrown away but for what is kept. Never rejects. */
export function exchange(connection: Connection, request: ExchangeRequest): Promise<Exchange> {
    const { signal, progress, maxResponseBytes, keepsBody } = request;
    const state = { status: null as number | null, headers: {} as Headers, bytes: 0, written: false, kept: null as Buffer[] | null };

    return new Promise((resolve) => {
        const finish = (error: unknown): void => {
            signal.removeEventListener('abort', onAbort);
            const { status, headers, written, kept, bytes } = state;
            const unsent = connection.socket.writableLength > 0;
            resolve({
                status,
                location: onlyValue(headers.location),
                retryAfter: headers['retry-after'],
                date: onlyValue(headers.date),
                error,
                body: kept && {
                    ...keptOf(kept, Math.min(bytes, maxResponseBytes), error),
                    encoded: isEncoded(headers['content-encoding']),
                },
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
                state.kept = keepsBody && !isSuccess(status) ? [] : null;
            },
            onResponseData(_controller, chunk) {
                if (state.bytes < MAX_KEPT_BYTES) {
                    state.kept?.push(chunk);
                }
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

function keptOf(chunks: readonly Buffer[], bytes: number, error: unknown): Omit<KeptBody, 'encoded'> {
    const body = Buffer.concat(chunks).subarray(0, Math.min(bytes, MAX_KEPT_BYTES));
    return { body, bytes, cut: error !== null || bytes > body.length };
}

function isEncoded(coding: string | string[] | undefined): boolean {
    return !['', 'identity'].includes(
        String(coding ?? '')
            .trim()
            .toLowerCase(),
    );
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

/** Measures the time to the first byte, from the moment when the request has left our buffers. That is now, unless the receiver is slow to read. */
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
