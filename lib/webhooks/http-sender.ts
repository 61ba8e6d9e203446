import Joi from 'joi';
import { checked, milliseconds } from '../checked.ts';
import { type Clock, systemClock } from '../clock.ts';
import { connectVetted, type Lookup } from '../egress/connect.ts';
import type { EgressGuard } from '../egress/guard.ts';
import { hostOf, portOf } from '../egress/outgoing-url.ts';
import { ScanwireError } from '../errors.ts';
import { type Connection, connection } from './connection.ts';
import { connectionPool, type Lease } from './connection-pool.ts';
import { type Exchange, exchange } from './exchange.ts';
import type { Trust } from './exporter.ts';
import { AttemptFailure, type AttemptTrace, attemptTrace, type Outcome, traced } from './outcome.ts';
import { answered, codeOfError, failed } from './outcome-code.ts';
import { checkReceiverUrl } from './receiver-url.ts';
import { secure } from './tls-trust.ts';

/** One POST, ready to go. */
export interface Message {
    /** Connections are kept apart by exporter and by what is here: a change of exporter, URL or trust never reuses an old socket. */
    readonly exporterId: string;
    readonly url: string;
    readonly trust: Trust;
    /** All headers in order, but `Host`, `Connection`, `Accept-Encoding` and `Content-Length`, which are the sender's. */
    readonly headers: readonly (readonly [name: string, value: string])[];
    readonly body: Uint8Array;
    /** Goes over a connection of its own, made for it: a `test` shows whether the receiver can be reached now, and each time that it takes. */
    readonly fresh?: boolean;
}

/** Sends messages through the egress guard. Never rejects: whatever happens is an {@link Outcome}. */
export interface Sender {
    send(message: Message): Promise<Outcome>;
    /** Ends idle connections; messages under way finish first. */
    close(): Promise<void>;
}

/** Times in milliseconds. */
export interface SenderLimits {
    /** For the name. 5,000 by default. */
    readonly dnsTimeout: number;
    /** For the connection, and once more for its TLS handshake. 5,000 by default. */
    readonly connectTimeout: number;
    /** For all of it, from the name to the last byte of the answer. 15,000 by default. */
    readonly attemptTimeout: number;
    /** So much of an answer's body is read; the rest is cut off. 64 KiB by default. */
    readonly maxResponseBytes: number;
    /** Most connections at once to one exporter's receiver. 32 by default. */
    readonly connectionsPerExporter: number;
    /** Most idle connections of all exporters together. 256 by default. */
    readonly maxIdleConnections: number;
    /** After this a connection is not used again, so that its address is vetted anew. 60,000 by default. */
    readonly socketMaxAge: number;
}

export interface HttpSenderOptions extends Partial<SenderLimits> {
    readonly guard: EgressGuard;
    /** For `Retry-After` dates and certificates. */
    readonly clock?: Clock;
    /** Stands in for `dns.lookup`. */
    readonly lookup?: Lookup;
}

const count = (byDefault: number): Joi.NumberSchema => Joi.number().integer().min(1).default(byDefault);

const limitsSchema = Joi.object<SenderLimits, true>({
    dnsTimeout: milliseconds(5000),
    connectTimeout: milliseconds(5000),
    attemptTimeout: milliseconds(15_000),
    maxResponseBytes: count(65_536).min(0),
    connectionsPerExporter: count(32),
    maxIdleConnections: count(256).min(0),
    socketMaxAge: milliseconds(60_000),
});

/**
 * Sends messages over HTTP/1.1. Redirects are not followed, answers not decoded, proxies not used, cookies and other state of a
 * receiver not kept. The status decides, also when the body behind it is cut off, broken or too long.
 *
 * A request that went out, even in part, is never repeated: when a kept connection turns out to be closed it goes over a new one
 * only if not a byte of it was written; else the outcome is `connection_reset` and the schedule decides.
 *
 * @throws ScanwireError `MISCONFIGURED` for limits that cannot be.
 */
export function httpSender({ guard, clock = systemClock, lookup, ...given }: HttpSenderOptions): Sender {
    const limits = checked(limitsSchema, given, { subject: 'sender options', code: 'MISCONFIGURED' });
    const connect = connectVetted({ guard, ...limits, ...(lookup && { lookup }) });
    const pool = connectionPool({ perKey: limits.connectionsPerExporter, maxIdle: limits.maxIdleConnections, maxAge: limits.socketMaxAge });
    const underWay = new Set<Promise<Outcome>>();
    let closed = false;

    const open = async (url: URL, { trust }: Message, signal: AbortSignal, trace: AttemptTrace): Promise<Connection> => {
        const host = hostOf(url);
        const encrypted = url.protocol === 'https:';
        const plain = await connect({ host, port: Number(url.port) || (encrypted ? 443 : 80), signal, trace });
        const socket = encrypted
            ? await secure({ socket: plain, host, trust, timeout: limits.connectTimeout, signal, now: clock(), trace })
            : plain;
        return connection({ socket, origin: url.origin, address: trace.address, fingerprint: trace.fingerprint });
    };

    const post = async (url: URL, message: Message, signal: AbortSignal, trace: AttemptTrace): Promise<Exchange> => {
        const key = JSON.stringify([message.exporterId, url.origin, message.trust]);
        for (;;) {
            const make = (): Promise<Connection> => open(url, message, signal, trace);
            const lease = message.fresh === true ? await ownConnection(make) : await pool.lease(key, make, signal);
            try {
                const { connection: used } = lease;
                trace.address = used.address;
                trace.fingerprint = used.fingerprint;
                const result = await exchange(used, {
                    path: `${url.pathname}${url.search}`,
                    headers: message.headers,
                    body: message.body,
                    maxResponseBytes: limits.maxResponseBytes,
                    signal,
                    trace,
                });
                if (!wasStale(result, used, signal)) {
                    return result;
                }
            } finally {
                lease.release();
            }
        }
    };

    const attempt = async (message: Message): Promise<Outcome> => {
        const trace = attemptTrace();
        const startedAt = performance.now();
        const deadline = new AbortController();
        const timer = setTimeout(
            () => deadline.abort(new AttemptFailure('timeout', `the attempt took longer than ${limits.attemptTimeout} ms`)),
            limits.attemptTimeout,
        );
        try {
            const url = vettedTarget(message, guard);
            return {
                ...answered(await post(url, message, deadline.signal, trace), url, clock()),
                ...traced(trace, performance.now() - startedAt),
            };
        } catch (error) {
            return { ...failed(error), ...traced(trace, performance.now() - startedAt) };
        } finally {
            clearTimeout(timer);
        }
    };

    return {
        async send(message) {
            if (closed) {
                return { ...failed(new AttemptFailure('interrupted', 'the sender has been closed')), ...traced(attemptTrace(), 0) };
            }

            const outcome = attempt(message);
            underWay.add(outcome);
            try {
                return await outcome;
            } finally {
                underWay.delete(outcome);
            }
        },

        async close() {
            closed = true;
            await Promise.all(underWay);
            pool.close();
        },
    };
}

async function ownConnection(open: () => Promise<Connection>): Promise<Lease> {
    const connection = await open();
    return { connection, release: () => connection.destroy() };
}

/** What no message may bring along: the sender writes these, or they would change where the message ends. */
const OWN_HEADERS: ReadonlySet<string> = new Set([
    'host',
    'content-length',
    'connection',
    'transfer-encoding',
    'accept-encoding',
    'upgrade',
    'expect',
]);

/** The stored URL under the same checks as when it was saved: rows can be written by others. */
function vettedTarget({ url: text, headers }: Message, guard: EgressGuard): URL {
    const own = headers.find(([name]) => OWN_HEADERS.has(String(name).toLowerCase()));
    if (own !== undefined) {
        throw new AttemptFailure('invalid_exporter', 'a header of the message is one that only the sender may set');
    }

    try {
        return new URL(checkReceiverUrl(text, guard));
    } catch (error) {
        throw new AttemptFailure(
            isBlockedHost(text, guard) ? 'address_blocked' : 'invalid_exporter',
            error instanceof ScanwireError ? error.message : 'the URL is invalid',
            error,
        );
    }
}

function isBlockedHost(text: unknown, guard: EgressGuard): boolean {
    if (typeof text !== 'string' || !URL.canParse(text)) {
        return false;
    }

    const url = new URL(text);
    return guard.vetHost(hostOf(url), portOf(url)) !== null;
}

/** A kept connection that had been closed before anything was written: nobody has seen the request. */
function wasStale({ error, status, written }: Exchange, { used }: Connection, signal: AbortSignal): boolean {
    return (
        error !== null &&
        status === null &&
        !written &&
        used > 1 &&
        !signal.aborted &&
        codeOfError(error, 'exchange') === 'connection_reset'
    );
}
