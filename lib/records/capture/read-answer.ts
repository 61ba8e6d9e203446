import type tls from 'node:tls';
import { connectionCode } from '../../egress/connection-code.ts';
import { handshakeCode } from '../../egress/handshake-code.ts';
import { settledWithin } from '../../egress/settled-within.ts';
import { errorCode } from '../../error-code.ts';
import { answerEnd } from './answer-end.ts';
import { CaptureFailure } from './capture-failure.ts';
import { receivedBytes } from './received-bytes.ts';

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
        await settledWithin(done, { timeout, late, signal });
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
