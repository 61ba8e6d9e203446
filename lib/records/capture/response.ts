import type tls from 'node:tls';
import { connectionCode, handshakeCode } from '../../egress/connection-code.ts';
import { errorCode } from '../../errors.ts';
import { within } from '../../within.ts';
import { blankLine, headerList, responseHeaders } from '../response/head.ts';
import { CaptureFailure } from './failure.ts';

export interface AwaitedAnswer {
    /** Secured, its request written; destroyed at the end. */
    readonly socket: tls.TLSSocket;
    /** For messages. */
    readonly host: string;
    /** So many bytes of the answer are kept. */
    readonly maxBytes: number;
    /** Milliseconds. */
    readonly timeout: number;
    readonly signal: AbortSignal;
}

/**
 * Keeps the bytes of an answer as they come: until it is complete, the connection ends in whatever way, there
 * are `maxBytes` of them or the time is over.
 *
 * @returns At least one byte.
 * @throws CaptureFailure when there is none, or the signal's reason.
 */
export async function readAnswer({ socket, host, maxBytes, timeout, signal }: AwaitedAnswer): Promise<Buffer> {
    const endOf = answerEnd();
    const bytes = receivedBytes(maxBytes);
    let answer: Buffer = Buffer.alloc(0);

    const done = new Promise<void>((resolve, reject) => {
        socket.on('error', reject);
        socket.once('end', resolve);
        socket.once('close', resolve);
        socket.on('data', (chunk: Buffer) => {
            const received = bytes.push(chunk);
            const end = endOf(received);
            answer = end === null ? received : received.subarray(0, end);
            if (end !== null || answer.length === maxBytes) {
                socket.destroy();
                resolve();
            }
        });
    });
    const late = (): CaptureFailure => new CaptureFailure('timeout', `${host} did not answer in time`);
    try {
        await within(done, { timeout, late, signal });
    } catch (error) {
        if (signal.aborted || answer.length === 0) {
            throw error instanceof CaptureFailure || signal.aborted ? error : brokenOff(host, error);
        }
    } finally {
        socket.destroy();
    }

    if (answer.length === 0) {
        throw new CaptureFailure('no_answer', `${host} closed the connection without an answer`);
    }

    return answer;
}

function brokenOff(host: string, error: unknown): CaptureFailure {
    const reason = errorCode(error);
    const code = handshakeCode(reason) ?? connectionCode(error, 'connection_reset');
    const what = code === 'tls_client_cert_required' ? 'demands a client certificate' : 'broke off without an answer';
    return new CaptureFailure(code, `${host} ${what}${reason === '' ? '' : ` (${reason})`}`, error);
}

const LEAST_ROOM = 16_384;

/** Bytes as they come in, in one piece: those that come one by one must not take an object each. */
export interface ReceivedBytes {
    /** Adds what still fits; the first chunk is kept, not copied. @returns All bytes so far, valid until the next call. */
    push(chunk: Buffer): Buffer;
}

function receivedBytes(maxBytes: number): ReceivedBytes {
    let room: Buffer = Buffer.alloc(0);
    let length = 0;

    return {
        push(chunk) {
            const kept = chunk.subarray(0, maxBytes - length);
            if (length === 0) {
                length = kept.length;
                room = kept;
                return room;
            }

            if (length + kept.length > room.length) {
                const larger = Buffer.allocUnsafeSlow(Math.max(LEAST_ROOM, 2 * room.length, length + kept.length));
                room.copy(larger, 0, 0, length);
                room = larger;
            }

            room.set(kept, length);
            length += kept.length;
            return room.subarray(0, length);
        },
    };
}

/** So many bytes at the end may belong to a blank line that is not whole yet. */
const BLANK_LINE = 3;
/** Of a header that is a list. */
const MOST_ELEMENTS = 5;

/**
 * Finds where an answer to a `GET` ends, as it comes in, so that nobody waits for a server that keeps the connection open. Interim
 * answers belong to it. Of what is not HTTP, or says no length, nobody knows the end before the connection is closed.
 *
 * @returns A function to be called with all bytes received so far; it answers with the length of the whole answer, or null while
 * there may be more to come. Each byte is looked at once, however the bytes are cut.
 */
export function answerEnd(): (received: Buffer) => number | null {
    let headStart = 0;
    let seen = 0;
    let body: BodyEnd | null = null;

    return (received) => {
        while (body === null) {
            const blank = blankLine(received, seen);
            if (blank === null) {
                seen = Math.max(headStart, received.length - BLANK_LINE);
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
    const codings = headerList(headers, 'transfer-encoding', MOST_ELEMENTS).filter((coding) => coding !== 'identity');
    if (codings.length > 0) {
        return codings.at(-1) === 'chunked' ? chunksEnd(start) : untilClosed;
    }

    const [length, ...others] = headerList(headers, 'content-length', MOST_ELEMENTS);
    return length === undefined || !/^\d{1,15}$/.test(length) || others.some((other) => other !== length)
        ? untilClosed
        : exactly(start + Number(length));
}

function exactly(end: number): BodyEnd {
    return ({ length }) => (length >= end ? end : null);
}

/** Where a body ends, given all bytes received so far; null while there may be more to come. */
export type BodyEnd = (received: Buffer) => number | null;

const LF = 0x0a;
const SIZE = /^[0-9a-f]{1,12}$/i;
/** What belongs to the size is at the start of its line; extensions may be of any length. */
const SIZE_ROOM = 32;

/** The end of a chunked body that begins at `start`: behind its trailer. One that is not chunked as it says ends with the connection. */
function chunksEnd(start: number): BodyEnd {
    let expected: 'size' | 'end of data' | 'trailer' | 'nothing' = 'size';
    let lineStart = start;
    let seen = start;

    /** The start of the next line; null while it is not whole. */
    function nextLine(received: Buffer): string | null {
        const end = received.indexOf(LF, seen);
        if (end === -1) {
            seen = Math.max(seen, received.length);
            return null;
        }

        const text = received.toString('latin1', lineStart, Math.min(end, lineStart + SIZE_ROOM));
        lineStart = end + 1;
        seen = lineStart;
        return text.trim();
    }

    function takeSize(line: string): void {
        const [text = ''] = line.split(';', 1);
        const size = SIZE.test(text.trim()) ? Number.parseInt(text, 16) : null;
        expected = size === null ? 'nothing' : size === 0 ? 'trailer' : 'end of data';
        lineStart += size ?? 0;
        seen = lineStart;
    }

    return (received) => {
        while (expected !== 'nothing') {
            const line = nextLine(received);
            if (line === null) {
                return null;
            }

            if (expected === 'size') {
                takeSize(line);
            } else if (expected === 'end of data') {
                expected = line === '' ? 'size' : 'nothing';
            } else if (line === '') {
                return lineStart;
            }
        }

        return null;
    };
}
