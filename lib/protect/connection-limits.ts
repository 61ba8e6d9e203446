import type { IncomingMessage } from 'node:http';
import Joi from 'joi';
import { count, inMilliseconds } from '../schema-validation.ts';

/** What a connection may take. All times are in milliseconds, a second at least. */
export interface ConnectionLimits {
    /** Connections at once. At the limit a new one takes the place of the one that has waited longest without a request, else of one whose body hardly comes. 8192 by default. */
    readonly maxConnections?: number | undefined;
    /** Connections at once of one address, IPv6 by the first 64 bits; for servers that clients reach without a proxy. No limit by default. */
    readonly maxPerAddress?: number | undefined;
    /**
     * Connections at once on which TLS has begun and from which no request has come yet: each takes some 30 KiB. At the limit the next ones take the places of those
     * that have waited longest, at most 250 in a second and no more than a fortieth of the limit in a tenth of one. 1000 by default.
     */
    readonly maxWithoutRequest?: number | undefined;
    /** Requests of one connection that have no answer yet; they are handled one after the other. 32 by default. */
    readonly maxUnanswered?: number | undefined;
    /** How long a TLS handshake may take. 10 s by default. */
    readonly handshakeTimeout?: number | undefined;
    /** How long the head of a request may take, the first one from the connection on. 15 s by default. */
    readonly headTimeout?: number | undefined;
    /** How long a connection waits for its next request. 15 s by default. */
    readonly idleTimeout?: number | undefined;
    /** How long the body of a request may bring less than `minRate`, while it is read. 20 s by default. */
    readonly bodyTimeout?: number | undefined;
    /** Least bytes of a body in each second of `bodyTimeout`. 64 by default. */
    readonly minRate?: number | undefined;
    /** How long a request may take to be received. 5 minutes by default. */
    readonly requestTimeout?: number | undefined;
    /** Whether a request may be received for as long as it makes progress; no request by default. */
    readonly isLong?: ((request: IncomingMessage) => boolean) | undefined;
    /** How long a client may take nothing of an answer that waits for it. 30 s by default. */
    readonly answerTimeout?: number | undefined;
    /** Milliseconds since any moment. Default: a clock that nobody sets. */
    readonly now?: (() => number) | undefined;
}

/** All of them. */
export type Limits = Required<{ [Name in Exclude<keyof ConnectionLimits, 'maxPerAddress'>]: NonNullable<ConnectionLimits[Name]> }> &
    Pick<ConnectionLimits, 'maxPerAddress'>;

/** Limits once they were checked; without `isLong` and `now` where none was given. */
export type CheckedLimits = Omit<Limits, 'isLong' | 'now'> & Partial<Pick<Limits, 'isLong' | 'now'>>;

/** Less was meant in seconds: hardly a client would get an answer. */
const time = (byDefault: number): Joi.NumberSchema => inMilliseconds(1000).default(byDefault);

/** The rules of {@link ConnectionLimits}, with their defaults. */
export const limitsSchema: Joi.ObjectSchema<CheckedLimits> = Joi.object({
    maxConnections: count().default(8192),
    maxPerAddress: count().max(Joi.ref('maxConnections')),
    maxWithoutRequest: count().default(1000),
    maxUnanswered: count().default(32),
    handshakeTimeout: time(10_000),
    headTimeout: time(15_000),
    idleTimeout: time(15_000),
    bodyTimeout: time(20_000),
    minRate: count().default(64),
    requestTimeout: time(300_000),
    isLong: Joi.function(),
    answerTimeout: time(30_000),
    now: Joi.function(),
});
