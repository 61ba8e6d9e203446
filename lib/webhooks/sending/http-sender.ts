import { createHash } from 'node:crypto';
import Joi from 'joi';
import type { Clock } from '../../clock.ts';
import { type ConnectVetted, connectVetted } from '../../egress/connect.ts';
import { lateBy } from '../../egress/connection-code.ts';
import type { EgressGuard } from '../../egress/guard.ts';
import { hostOf, portOf } from '../../egress/outgoing-url.ts';
import { nameServersSchema, type Resolver, type ResolverOptions, resolverSchema } from '../../egress/resolver.ts';
import { checked, clockSchema, count, milliseconds, objectWith } from '../../schema-validation.ts';
import { afterWait } from '../../within.ts';
import { type Authentication, authorizationOf, egressProxy, repeatsAuthorization } from '../exporters/authentication.ts';
import { tlsContext } from '../exporters/client-certificate.ts';
import { parseReceiverUrl } from '../exporters/receiver-url.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { isSenderHeader } from '../messages/message-headers.ts';
import { codeOfError, resultOfError, resultOfExchange } from '../outcomes/attempt-result.ts';
import { AttemptFailure, type AttemptProgress, type AttemptResult, newProgress, type Outcome, outcomeOf } from '../outcomes/outcome.ts';
import type { Trust } from '../setting-values.ts';
import { accessTokens } from './access-tokens.ts';
import { type Connection, connection } from './connection.ts';
import { connectionPool, type Lease } from './connection-pool.ts';
import { type Exchange, exchange, type RefusedResponse } from './http-exchange.ts';
import { secure } from './receiver-certificate.ts';

/** One POST, ready to go. */
export interface Message {
    /** Connections are shared by messages of the same exporter, origin, trust and TLS identity only. */
    readonly exporterId: string;
    /** Whose exporter it is, which decides what may be called; the deployment's when absent. */
    readonly owner?: string | null;
    readonly url: string;
    readonly trust: Trust;
    /**
     * The headers in order, but those that the sender adds: `Host`, `Connection`, `Accept-Encoding`, `Content-Length`, and the `Authorization` of
     * `authentication`.
     */
    readonly headers: HeaderPairs;
    /** How the exporter authenticates itself. If any part of it cannot be used, nothing is sent. */
    readonly authentication?: Authentication | null;
    readonly body: Uint8Array;
    /** Whether a new connection is made for it: a `test` shows whether the receiver can be reached now, and how long every phase takes. */
    readonly newConnection?: boolean;
    /** Written into while the attempt goes on, for whoever looks at it meanwhile. */
    readonly progress?: AttemptProgress;
    /** Called with an answer that is no 2xx, before `send` resolves. The answer is text of the receiver's, and may repeat everything that was sent. */
    readonly onRefused?: ((response: RefusedResponse) => void) | null;
}

/** Sends messages through the egress guard. */
export interface Sender {
    /** No `send` takes longer, in milliseconds. Claims are made to hold longer than this. */
    readonly attemptTimeout: number;
    /** The limits that all processes of a deployment must have in common; absent where they cannot be known. */
    readonly limits?: SharedLimits;
    /** Name servers that it asks, `address` or `address:port`; those of the system when absent. */
    readonly nameServers?: readonly string[] | undefined;
    /** Never rejects: whatever happens is an {@link Outcome}. */
    send(message: Message): Promise<Outcome>;
    /** Takes messages again after `close`. */
    open?(): void;
    /** Ends idle connections. Messages that are being sent finish first; those that take longer than `timeout` milliseconds end as `interrupted`. */
    close(options?: { readonly timeout?: number }): Promise<void>;
}

/** Times in milliseconds. */
export interface SenderLimits {
    /** For the name. 5,000 by default. */
    readonly dnsTimeout: number;
    /** For the connection, and once more for its TLS handshake. 5,000 by default. */
    readonly connectTimeout: number;
    /** For all of it, from the name to the last byte of the response. 15,000 by default. */
    readonly attemptTimeout: number;
    /** How much of a response's body is read; the rest is cut off. 64 KiB by default. */
    readonly maxResponseBytes: number;
    /** Maximum number of idle connections of all exporters together. 256 by default. */
    readonly maxIdleConnections: number;
    /** After this a connection is not used again, so that its address is vetted again. 60,000 by default. */
    readonly socketMaxAge: number;
}

/** The limits that a receiver may notice. The number of idle connections is none of them: each machine has its own. */
export interface SharedLimits extends Omit<SenderLimits, 'maxIdleConnections'> {
    readonly resolver: Resolver;
}

/** Limits of the sender, and what it asks. */
export interface HttpSenderOptions extends Partial<SenderLimits>, Pick<ResolverOptions, 'resolver' | 'lookup' | 'nameServers'> {
    readonly guard: EgressGuard;
    /** For `Retry-After` dates and certificates. */
    readonly clock?: Clock;
}

/** The rules of {@link SenderLimits}, with their defaults. No attempt takes longer than Standard Webhooks advises to wait for a receiver. */
export const senderLimitSchemas: { readonly [Limit in keyof SenderLimits]: Joi.NumberSchema } = {
    dnsTimeout: milliseconds(5000, 100),
    connectTimeout: milliseconds(5000, 100),
    attemptTimeout: milliseconds(15_000, 100).max(30_000),
    maxResponseBytes: count(0).default(65_536),
    maxIdleConnections: count(0).default(256),
    socketMaxAge: milliseconds(60_000),
};

const optionsSchema: Joi.ObjectSchema<
    SharedLimits & SenderLimits & Required<Pick<HttpSenderOptions, 'guard' | 'clock'>> & HttpSenderOptions
> = Joi.object({
    ...senderLimitSchemas,
    guard: objectWith<EgressGuard>('vet', 'vetHost').required(),
    clock: clockSchema,
    lookup: Joi.function(),
    resolver: resolverSchema,
    nameServers: nameServersSchema,
}).required();

/**
 * Sends messages over HTTP/1.1. Redirects are not followed, responses not decoded, no proxy used but the message's own, cookies and other state of a
 * receiver not kept. The status decides, also when the body behind it is cut off, broken or too long.
 *
 * A request that went out, even in part, is never repeated: when a kept connection turns out to be closed it goes over a new one
 * only if not a byte of it was written; else the outcome is `connection_reset` and the schedule decides.
 *
 * @throws ScanwireError `MISCONFIGURED` for limits that cannot be.
 */
export function httpSender(options: HttpSenderOptions): Sender {
    const given = checked(optionsSchema, options, { subject: 'httpSender options', code: 'MISCONFIGURED' });
    const { guard, clock, lookup, ...limits } = given;
    const { attemptTimeout } = limits;
    const { maxIdleConnections: _, nameServers, ...sent } = limits;
    const connect = connectVetted({ guard, lookup, ...limits });
    let transport = poster(limits, connect, clock);
    const inFlight = new Map<Promise<Outcome>, AbortController>();
    let closed = false;

    async function attempt(message: Message, deadline: AbortController): Promise<Outcome> {
        const startedAt = performance.now();
        const { progress = newProgress() } = message;
        const callOff = afterWait(attemptTimeout, (by) =>
            deadline.abort(lateBy(by, new AttemptFailure('timeout', `The attempt took longer than ${attemptTimeout} ms`))),
        );
        const result = await resultOf(message, deadline.signal, progress);
        callOff();
        return outcomeOf(result, progress, performance.now() - startedAt);
    }

    async function resultOf(message: Message, signal: AbortSignal, progress: AttemptProgress): Promise<AttemptResult> {
        try {
            const url = targetOf(message);
            const result =
                message.authentication == null
                    ? transport.post(url, message, signal, progress)
                    : authenticated(url, message, signal, progress);
            return resultOfExchange(await result, url, clock());
        } catch (error) {
            return resultOfError(error);
        }
    }

    async function authenticated(url: URL, message: Message, signal: AbortSignal, progress: AttemptProgress): Promise<Exchange> {
        const { exporterId, owner = null, authentication = null } = message;
        const { oauth } = authentication ?? {};
        const use = oauth && { exporterId, owner, origin: url.origin, authentication: { ...authentication, oauth } };
        const used = use && (await transport.tokens.of(use, signal));
        const headers = [...message.headers, ...authorizationOf(authentication, used?.token)];
        const result = await transport.post(url, { ...message, headers }, signal, progress);
        used?.answered(result.status);
        return result;
    }

    function interrupt(deadlines: readonly AbortController[]): void {
        for (const deadline of deadlines) {
            deadline.abort(new AttemptFailure('interrupted', 'The sender was closed before the receiver had answered'));
        }
    }

    return {
        attemptTimeout,
        limits: sent,
        nameServers,

        async send(message) {
            if (closed) {
                return outcomeOf(resultOfError(new AttemptFailure('interrupted', 'The sender is closed')), newProgress(), 0);
            }

            const deadline = new AbortController();
            const outcome = attempt(message, deadline);
            inFlight.set(outcome, deadline);
            try {
                return await outcome;
            } finally {
                inFlight.delete(outcome);
            }
        },

        open() {
            if (closed) {
                transport = poster(limits, connect, clock);
                closed = false;
            }
        },

        async close({ timeout } = {}) {
            closed = true;
            // What there is now: by the time it ends, the sender may have been opened again.
            const [closing, outcomes, deadlines] = [transport, [...inFlight.keys()], [...inFlight.values()]];
            const timer = timeout === undefined ? undefined : setTimeout(interrupt, timeout, deadlines);
            await Promise.all(outcomes);
            clearTimeout(timer);
            closing.close();
        },
    };
}

/** The receiver's URL, checked by the same rules as when it was saved: rows can be changed with SQL, past all checks. */
function targetOf({ url, headers, authentication }: Message): URL {
    if (headers.some(([name]) => isSenderHeader(String(name)))) {
        throw new AttemptFailure('invalid_exporter', 'A header of the message is one that only the sender may set');
    }

    const target = parseReceiverUrl(url);
    if (authentication != null) {
        assertCanAuthenticate(authentication, target, headers);
    }
    return target;
}

/** Refuses a message whose authentication cannot be used, since nothing may be sent without it. */
function assertCanAuthenticate(authentication: Authentication, { protocol }: URL, headers: HeaderPairs): void {
    const { ca, clientCertificate } = authentication;
    if (repeatsAuthorization(authentication, headers)) {
        throw new AttemptFailure('invalid_exporter', 'The message would have the header Authorization twice');
    }

    if (protocol === 'http:' && (ca !== undefined || clientCertificate !== undefined)) {
        throw new AttemptFailure('invalid_exporter', 'The exporter has certificates, and its URL is plain http');
    }
}

/** Posts over connections, and with access tokens, that are kept between messages. */
function poster(limits: SenderLimits, connect: ConnectVetted, clock: Clock) {
    const { connectTimeout, maxResponseBytes, maxIdleConnections, socketMaxAge } = limits;
    const pool = connectionPool({ maxIdle: maxIdleConnections, maxAge: socketMaxAge });
    const tokens = accessTokens({
        connect: (url, { owner = null, ...authentication }, signal) =>
            connectTo(url, { owner, trust: 'strict', authentication }, signal, newProgress()),
        timeout: Math.ceil(limits.attemptTimeout / 2),
    });

    async function connectTo(
        url: URL,
        { owner = null, trust, authentication = null }: Pick<Message, 'owner' | 'trust' | 'authentication'>,
        signal: AbortSignal,
        progress: AttemptProgress,
    ): Promise<Connection> {
        const host = hostOf(url);
        const context = tlsContext(authentication);
        const proxy = authentication === null ? null : egressProxy(authentication);
        const tcpSocket = await connect({ host, port: portOf(url), signal, progress, proxy, owner });
        const handshake = { socket: tcpSocket, host, trust, context, timeout: connectTimeout, signal, now: clock(), progress };
        const socket = url.protocol === 'https:' ? await secure(handshake) : tcpSocket;
        const { address, fingerprint, certificate } = progress;
        return connection({ socket, origin: url.origin, address, fingerprint, certificate });
    }

    return {
        /** @throws AttemptFailure, ConnectionFailure or the signal's reason when there is no connection. */
        async post(url: URL, message: Message, signal: AbortSignal, progress: AttemptProgress) {
            const { headers, body, newConnection = false, onRefused = null } = message;
            const key = connectionKey(url, message);
            const connectNew = (): Promise<Connection> => connectTo(url, message, signal, progress);
            for (;;) {
                const lease = newConnection ? await unpooled(connectNew) : await pool.lease(key, connectNew);
                try {
                    const { connection: used } = lease;
                    progress.address = used.address;
                    progress.fingerprint = used.fingerprint;
                    progress.certificate = used.certificate;
                    const path = `${url.pathname}${url.search}`;
                    const request = { path, headers, body, maxResponseBytes, keepsBody: onRefused !== null, signal, progress };
                    const result = await exchange(used, request);
                    if (!wasStale(result, used, signal)) {
                        if (result.body !== null) {
                            onRefused?.({ ...result.body, sent: headers });
                        }
                        return result;
                    }
                } finally {
                    lease.release();
                }
            }
        },

        tokens,

        close() {
            pool.close();
            tokens.close();
        },
    };
}

/**
 * The key of the pool: messages with the same key may share a connection. It contains the TLS identity, as a digest, since keys stay in memory
 * for as long as idle connections do.
 */
function connectionKey({ origin }: URL, { exporterId, owner, trust, authentication }: Message): string {
    const { ca, clientCertificate, proxy } = authentication ?? {};
    const identity = (ca ?? clientCertificate ?? proxy) === undefined ? [] : [digest([ca, clientCertificate, proxy])];
    return JSON.stringify([exporterId, owner, origin, trust, ...identity]);
}

function digest(value: unknown): string {
    return createHash('sha256').update(JSON.stringify(value)).digest('base64');
}

async function unpooled(connect: () => Promise<Connection>): Promise<Lease> {
    const connection = await connect();
    return { connection, release: () => connection.destroy() };
}

/** Whether a kept connection had been closed before anything was written, so that the receiver has seen nothing of the request. */
function wasStale({ error, status, written }: Exchange, { requests }: Connection, signal: AbortSignal): boolean {
    return (
        error !== null &&
        status === null &&
        !written &&
        requests > 1 &&
        !signal.aborted &&
        codeOfError(error, 'connection_reset') === 'connection_reset'
    );
}
