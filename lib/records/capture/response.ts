import type tls from 'node:tls';
import { connectionCode } from '../../egress/connection-code.ts';
import { codeNote } from '../../errors.ts';
import { within } from '../../within.ts';
import { chunkWalk, nextChunk } from '../response/chunks.ts';
import { blankLine, contentLength, headerCodings, responseHeaders } from '../response/head.ts';
import { CaptureFailure } from './failure.ts';

/** A connection on which a response comes, and how much of it is kept. */
export interface ResponseReading {
    /** Secured, its request written; destroyed at the end. */
    readonly socket: tls.TLSSocket;
    /** For messages. */
    readonly host: string;
    /** So many bytes of the response are kept. */
    readonly maxBytes: number;
    /** Milliseconds. */
    readonly timeout: number;
    readonly signal: AbortSignal;
}

/**
 * Keeps the bytes of a response as they come: until it is complete, the connection ends in whatever way, there
 * are `maxBytes` of them or the time is over.
 *
 * @returns At least one byte.
 * @throws CaptureFailure when there is none, or the signal's reason.
 */
export async function readResponse({ socket, host, maxBytes, timeout, signal }: ResponseReading): Promise<Buffer> {
    const endOf = responseEnd();
    const join = receivedBytes(maxBytes);
    let response: Buffer = Buffer.alloc(0);

    const done = new Promise<void>((resolve, reject) => {
        socket.on('error', reject);
        socket.once('end', resolve);
        socket.once('close', resolve);
        socket.on('data', (chunk: Buffer) => {
            const received = join(chunk);
            const end = endOf(received);
            response = end === null ? received : received.subarray(0, end);
            if (end !== null || response.length === maxBytes) {
                socket.destroy();
                resolve();
            }
        });
    });
    const late = (): CaptureFailure => new CaptureFailure('timeout', `${host} did not answer in time`);
    try {
        await within(done, { timeout, late, signal });
    } catch (error) {
        if (signal.aborted || response.length === 0) {
            throw error instanceof CaptureFailure || signal.aborted ? error : brokenOff(host, error);
        }
    } finally {
        socket.destroy();
    }

    if (response.length === 0) {
        throw new CaptureFailure('no_answer', `${host} closed the connection without an answer`);
    }

    return response;
}

function brokenOff(host: string, error: unknown): CaptureFailure {
    const code = connectionCode(error, 'connection_reset');
    const what = code === 'tls_client_cert_required' ? 'demands a client certificate' : 'broke off without an answer';
    return new CaptureFailure(code, `${host} ${what}${codeNote(error)}`, error);
}

const MIN_CAPACITY = 16_384;

/**
 * Joins bytes as they come in, as many as fit: those that come one by one must not take an object each. The first chunk is kept, not
 * copied.
 *
 * @returns Takes a chunk and gives all bytes so far, valid until the next call.
 */
function receivedBytes(maxBytes: number): (chunk: Buffer) => Buffer {
    let buffer: Buffer = Buffer.alloc(0);
    let length = 0;

    return (chunk) => {
        const kept = chunk.subarray(0, maxBytes - length);
        if (length === 0) {
            length = kept.length;
            buffer = kept;
            return buffer;
        }

        if (length + kept.length > buffer.length) {
            const larger = Buffer.allocUnsafeSlow(Math.max(MIN_CAPACITY, 2 * buffer.length, length + kept.length));
            buffer.copy(larger, 0, 0, length);
            buffer = larger;
        }

        buffer.set(kept, length);
        length += kept.length;
        return buffer.subarray(0, length);
    };
}

/** So many bytes at the end may belong to a blank line that is not whole yet. */
const BLANK_LINE_BYTES = 3;

/**
 * Finds where the response to a `GET` ends, as it comes in, so that nobody waits for a server that keeps the connection open. Interim
 * responses belong to it. Of what is not HTTP, or says no length, nobody knows the end before the connection is closed.
 *
 * @returns A function to be called with all bytes received so far; it returns the length of the whole response, or null while
 * there may be more to come. Each byte is looked at once, however the bytes are cut.
 */
export function responseEnd(): BodyEnd {
    let headStart = 0;
    let seen = 0;
    let body: BodyEnd | null = null;

    return (received) => {
        while (body === null) {
            const blank = blankLine(received, seen);
            if (blank === null) {
                seen = Math.max(headStart, received.length - BLANK_LINE_BYTES);
                return null;
            }

            const head = received.toString('latin1', headStart, blank.start);
            headStart = blank.end;
            seen = blank.end;
            body = /^HTTP\/1\.[01] 1(?!01)\d\d/.test(head) ? null : bodyEnd(head, blank.end);
        }

        return body(received);
    };
}

const untilClosed: BodyEnd = () => null;

function bodyEnd(head: string, start: number): BodyEnd {
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head) ?? [];
    if (status === undefined || status === '101') {
        return untilClosed;
    }

    if (status === '204' || status === '304') {
        return () => start;
    }

    const headers = responseHeaders(head, head.indexOf('\n') + 1, new Set());
    const lastCoding = headerCodings(headers, 'transfer-encoding').at(-1);
    if (lastCoding !== undefined) {
        return lastCoding === 'chunked' ? chunksEnd(start) : untilClosed;
    }

    const length = contentLength(headers);
    return typeof length === 'number' ? (received) => (received.length >= start + length ? start + length : null) : untilClosed;
}

/** Where a body ends, given all bytes received so far; null while there may be more to come. */
type BodyEnd = (received: Buffer) => number | null;

/** Behind the trailer of a chunked body that begins at `start`. One that is not chunked as it says ends with the connection. */
function chunksEnd(start: number): BodyEnd {
    const walk = chunkWalk(start);
    return (received) => {
        while (nextChunk(walk, received, false)) {
            // only the end is wanted
        }

        return walk.state === 'end' ? walk.at : null;
    };
}
