import { isIP } from 'node:net';
import Joi from 'joi';
import { type ConnectionProgress, connectVetted } from '../../egress/connect.ts';
import { ConnectionFailure } from '../../egress/connection-code.ts';
import type { EgressGuard } from '../../egress/guard.ts';
import { type ResolverOptions, resolverSchema } from '../../egress/resolver.ts';
import { ScanwireError } from '../../errors.ts';
import { checked, milliseconds, objectWith } from '../../schema-validation.ts';
import { VERSION } from '../../version.ts';
import { within } from '../../within.ts';
import { type HttpsRecord, MAX_LINE_BYTES } from '../record.ts';
import { CaptureFailure } from './failure.ts';
import { parallel } from './parallel.ts';
import { readResponse } from './response.ts';
import { authorityOf, type CaptureTarget, checkTarget, parseTarget } from './target.ts';
import { certificateSubject, secureUnverified } from './tls.ts';

/** What a record holds besides `data`: its keys, a path and a subject of the greatest length, all characters escaped. */
const REST_OF_LINE = 32_768;

/** So many bytes in base64, with the rest of the record, fit into the longest line that is read by default. */
export const MAX_RESPONSE_BYTES: number = ((MAX_LINE_BYTES - REST_OF_LINE) / 4) * 3;

/** The limits of one capture, and what it says of itself. Times in milliseconds. */
export interface CaptureLimits {
    /** For the name. 5,000 by default. */
    readonly dnsTimeout: number;
    /** For the connection, and once more for its TLS handshake. 5,000 by default. */
    readonly connectTimeout: number;
    /** For all of it; a response that takes longer is cut. 15,000 by default. */
    readonly timeout: number;
    /** A longer response is cut. By default, and at most, {@link MAX_RESPONSE_BYTES}. */
    readonly maxBytes: number;
    /** Value of the `User-Agent` header. `scanwire/` and the version by default. */
    readonly userAgent: string;
    /** Value of an `Accept-Encoding` header, for example `gzip`; none is sent by default, and most servers then do not pack. */
    readonly acceptEncoding?: string;
}

/** Who may be called, and the limits of a capture where they differ from the defaults. */
export interface CaptureOptions extends Partial<CaptureLimits>, Pick<ResolverOptions, 'resolver' | 'lookup'> {
    /** Which addresses may be called. */
    readonly guard: EgressGuard;
}

const headerValue = (): Joi.StringSchema =>
    Joi.string()
        .max(256)
        .pattern(/^[!-~](?:[ -~]*[!-~])?$/)
        .messages({ 'string.pattern.base': '{{#label}} must be printable ASCII' });

const optionsSchema = Joi.object<CaptureLimits & Pick<CaptureOptions, 'guard' | 'resolver' | 'lookup'>, true>({
    guard: objectWith<EgressGuard>('vet', 'vetHost').required(),
    resolver: resolverSchema,
    lookup: Joi.function(),
    dnsTimeout: milliseconds(5000, 100).max(Joi.ref('timeout')),
    connectTimeout: milliseconds(5000, 100).max(Joi.ref('timeout')),
    timeout: milliseconds(15_000, 100),
    maxBytes: Joi.number().integer().min(1).max(MAX_RESPONSE_BYTES).default(MAX_RESPONSE_BYTES),
    userAgent: headerValue().default(`scanwire/${VERSION}`),
    acceptEncoding: headerValue(),
}).required();

/**
 * Makes a record from a live endpoint: connects under the guard's rules, asks once and keeps the response's bytes as they came. The
 * certificate is not verified, redirects are not followed, nothing is decoded. A response that is cut, by a limit or by a connection
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
    options: CaptureOptions & { readonly signal?: AbortSignal },
): Promise<HttpsRecord> {
    const { signal, ...limits } = given(options);
    // A host's signal may serve many captures at once, and Node warns of more than ten listeners.
    return capturer(limits)(target, signal && AbortSignal.any([signal]));
}

/** Without options it is the guard that is missing. */
function given<T extends CaptureOptions>(options: T | undefined): T {
    return options ?? ({} as T);
}

/** Options of {@link captureRecords}. */
export interface CaptureManyOptions extends CaptureOptions {
    /** Captures at the same time: 1 to 1,000, 64 by default. */
    readonly concurrency?: number;
    /** Ends the iteration with its reason, and the captures in flight. */
    readonly signal?: AbortSignal;
}

/** What came of a target, which is the value from the source. */
export type CaptureResult<Target> = { readonly target: Target } & (
    | { readonly ok: true; readonly record: HttpsRecord }
    | { readonly ok: false; readonly failure: CaptureFailure }
);

const concurrencySchema = Joi.number().integer().min(1).max(1000).default(64).label('concurrency');

/**
 * {@link captureRecord} for many targets, some at the same time; the results come in the order in which they are there. A target is
 * taken from the source only when there is room for it, so memory does not depend on their number, and results that nobody takes
 * hold up the rest. Leaving the iteration early closes every connection.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot be, the signal's reason, or what the source throws.
 */
export async function* captureRecords<Target extends string | CaptureTarget>(
    targets: Iterable<Target> | AsyncIterable<Target>,
    options: CaptureManyOptions,
): AsyncGenerator<CaptureResult<Target>, void, undefined> {
    const { concurrency, signal, ...limits } = given(options);
    const max = checked<number>(concurrencySchema, concurrency, { subject: 'capture options', code: 'MISCONFIGURED' });
    const capture = capturer(limits);

    const result = async (target: Target, stop: AbortSignal): Promise<CaptureResult<Target>> => {
        try {
            return { target, ok: true, record: await capture(target, stop) };
        } catch (error) {
            if (error instanceof CaptureFailure) {
                return { target, ok: false, failure: error };
            }

            throw error;
        }
    };

    yield* parallel(targets, result, { concurrency: max, signal });
}

/** {@link captureRecord} with its options fixed; the signal ends a capture with its reason. */
export type Capturer = (target: string | CaptureTarget, signal?: AbortSignal) => Promise<HttpsRecord>;

/** Names that wait in the system's resolver, also those whose capture has given up. */
const MAX_LOOKUPS = 1024;

/**
 * A function that captures one target after another: the options are checked once, and lookups of the same name are shared.
 *
 * @throws ScanwireError `MISCONFIGURED` for options that cannot be, and without a guard.
 */
export function capturer(options: CaptureOptions): Capturer {
    const { guard, resolver, lookup, ...limits } = checked(optionsSchema, options, { subject: 'capture options', code: 'MISCONFIGURED' });
    const connect = connectVetted({ guard, resolver, lookup, maxLookups: MAX_LOOKUPS, ...limits });

    return async (wanted, signal = new AbortController().signal) => {
        const deadline = performance.now() + limits.timeout;
        const target = targetOf(wanted);
        const { host, port, path } = target;
        const progress: ConnectionProgress = { address: null, dns: null, connect: null };
        const socket = await inTime(limits.timeout, signal, async (inner) => {
            const tcpSocket = await connect({ host: target.address ?? host, port, signal: inner, progress });
            const connection = { socket: tcpSocket, host, timeout: limits.connectTimeout, signal: inner };
            return await secureUnverified(connection, requestOf(target, limits));
        });
        const subject = certificateSubject(socket);
        const timeout = Math.max(1, deadline - performance.now());
        const response = await readResponse({ socket, host, maxBytes: limits.maxBytes, timeout, signal });

        return {
            data: response.toString('base64'),
            host,
            ip: progress.address ?? host,
            path,
            port,
            ...(isIP(host) === 0 && { vhost: authorityOf(target) }),
            ...(subject && { subject }),
        };
    };
}

function targetOf(wanted: string | CaptureTarget): CaptureTarget {
    try {
        return typeof wanted === 'string' ? parseTarget(wanted) : checkTarget(wanted);
    } catch (error) {
        throw error instanceof ScanwireError ? new CaptureFailure('invalid_target', error.message, error) : error;
    }
}

/** Runs with a signal that follows another and ends with the time. */
async function inTime<T>(timeout: number, signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const inner = new AbortController();
    const late = (): CaptureFailure => new CaptureFailure('timeout', `There was no TLS connection within ${timeout} ms`);
    signal.throwIfAborted();
    try {
        return await within(run(inner.signal), { timeout, late, signal });
    } catch (error) {
        inner.abort(error);
        throw error instanceof ConnectionFailure ? new CaptureFailure(error.code, error.message, error.cause) : error;
    }
}

function requestOf(target: CaptureTarget, { userAgent, acceptEncoding }: Pick<CaptureLimits, 'userAgent' | 'acceptEncoding'>): string {
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
