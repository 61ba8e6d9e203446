import { isIP } from 'node:net';
import type tls from 'node:tls';
import { type ConnectionTrace, connectVetted } from '../../egress/connect-vetted.ts';
import { ConnectionFailure } from '../../egress/connection-failure.ts';
import { ScanwireError } from '../../scanwire-error.ts';
import type { HttpsRecord } from '../record.ts';
import { CaptureFailure } from './capture-failure.ts';
import { type CaptureLimits, type CaptureOptions, captureLimits } from './capture-options.ts';
import { authorityOf, type CaptureTarget, checkTarget, parseTarget } from './capture-target.ts';
import { certificateSubject } from './certificate-subject.ts';
import { readAnswer } from './read-answer.ts';
import { secureUnverified } from './unverified-tls.ts';

/** Captures one target; the signal ends it with its reason. */
export type Capture = (target: string | CaptureTarget, signal?: AbortSignal) => Promise<HttpsRecord>;

/** Names that wait in the system's resolver, also those whose capture has given up. */
const MAX_LOOKUPS = 1024;

/**
 * Makes a record from a live endpoint: connects under the guard's rules, asks once and keeps the answer's bytes as they came. The
 * certificate is not verified, redirects are not followed, nothing is decoded. An answer that is cut, by a limit or by a connection
 * that breaks, is a record; only an endpoint that says nothing at all is a failure.
 *
 * `host` is the target's host, `ip` the address that was called, `path` what was asked for. `vhost` is the value of the `Host`
 * header where it selects a virtual host, so where the host is a name. `subject` is there when a certificate was presented.
 *
 * @param target Also as text, in the form that {@link parseTarget} reads.
 * @throws CaptureFailure with a code, the signal's reason, or ScanwireError `MISCONFIGURED` for options that cannot be.
 */
export async function captureRecord(
    target: string | CaptureTarget,
    { signal, ...options }: CaptureOptions & { readonly signal?: AbortSignal },
): Promise<HttpsRecord> {
    // A host's signal may serve many captures at once, and Node warns of more than ten listeners.
    return recordCapture(options)(target, signal && AbortSignal.any([signal]));
}

/** {@link captureRecord} for many targets: the options are checked once, and lookups of the same name are shared. */
export function recordCapture({ guard, lookup, ...given }: CaptureOptions): Capture {
    const limits = captureLimits({ guard, ...given });
    const connect = connectVetted({ guard, maxLookups: MAX_LOOKUPS, ...limits, ...(lookup && { lookup }) });

    const open = async (target: CaptureTarget, signal: AbortSignal, trace: ConnectionTrace): Promise<tls.TLSSocket> => {
        const { host, port, address = host } = target;
        const socket = await connect({ host: address, port, signal, trace });
        return secureUnverified({ socket, host, request: requestOf(target, limits), timeout: limits.connectTimeout, signal });
    };

    return async (given, signal = new AbortController().signal) => {
        const giveUpAt = performance.now() + limits.timeout;
        const target = targetOf(given);
        const trace: ConnectionTrace = { address: null, dns: null, connect: null };
        const socket = await inTime(limits.timeout, signal, (inner) => open(target, inner, trace));
        const subject = certificateSubject(socket);
        const answer = await readAnswer({
            socket,
            host: target.host,
            maxBytes: limits.maxBytes,
            timeout: Math.max(1, giveUpAt - performance.now()),
            signal,
        });

        return {
            data: answer.toString('base64'),
            host: target.host,
            ip: trace.address ?? target.host,
            path: target.path,
            port: target.port,
            ...(isIP(target.host) === 0 && { vhost: authorityOf(target) }),
            ...(subject && { subject }),
        };
    };
}

function targetOf(given: string | CaptureTarget): CaptureTarget {
    try {
        return typeof given === 'string' ? parseTarget(given) : checkTarget(given);
    } catch (error) {
        throw error instanceof ScanwireError ? new CaptureFailure('invalid_target', error.message, error) : error;
    }
}

/** Runs with a signal that follows the given one and ends with the time. */
async function inTime<T>(timeout: number, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const inner = new AbortController();
    const timer = setTimeout(() => inner.abort(new CaptureFailure('timeout', `there was no TLS connection within ${timeout} ms`)), timeout);
    const follow = (): void => inner.abort(signal.reason);
    signal.addEventListener('abort', follow, { once: true });
    try {
        signal.throwIfAborted();
        return await run(inner.signal);
    } catch (error) {
        throw error instanceof ConnectionFailure ? new CaptureFailure(error.code, error.message, error.cause) : error;
    } finally {
        clearTimeout(timer);
        signal.removeEventListener('abort', follow);
    }
}

function requestOf(target: CaptureTarget, { userAgent, acceptEncoding }: CaptureLimits): string {
    return [
        `GET ${target.path} HTTP/1.1`,
        `Host: ${authorityOf(target)}`,
        `User-Agent: ${userAgent}`,
        'Accept: */*',
        ...(acceptEncoding === undefined ? [] : [`Accept-Encoding: ${acceptEncoding}`]),
        'Connection: close',
        '\r\n',
    ].join('\r\n');
}
