import Boom from '@hapi/boom';
import type { Lifecycle, Request } from '@hapi/hapi';
import Joi from 'joi';
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import { optionalPackage } from '../../lib/errors.ts';
import { ReaderWatch } from '../../lib/protect/reader-watch.ts';
import { isObject } from '../../lib/schema-validation.ts';
import { within } from '../../lib/within.ts';
import type { InstanceOptions } from '../instance.ts';
import { logFailure } from '../log-and-events.ts';

/** How many requests one client may make. */
export interface RequestLimit {
    /** Requests of a client within a window. */
    readonly requests: number;
    /** Length of the window in seconds. Default 60. */
    readonly window?: number | undefined;
    /** A client of `ioredis`, which stays the application's: all processes count together. By default each counts for itself. */
    readonly redis?: object | undefined;
    /** Whose request it is. By default that of its API key; behind another strategy, of the client's address. */
    readonly by?: ((request: Request) => string) | undefined;
}

/** The rules of {@link RequestLimit}. */
export const requestLimitSchema: Joi.ObjectSchema<RequestLimit> = Joi.object<RequestLimit>({
    requests: Joi.number().integer().min(1).required(),
    window: Joi.number().integer().min(1).max(86_400).custom(inSeconds).default(60),
    // As it is: a client is an instance of a class.
    redis: Joi.any().custom((client: unknown, helpers) =>
        isObject(client) && typeof client.defineCommand === 'function'
            ? client
            : helpers.message({ custom: '{{#label}} must be a client of ioredis' }),
    ),
    by: Joi.function(),
});

/** A minute in milliseconds would be 17 hours. */
function inSeconds(window: number, { message }: Joi.CustomHelpers): number | Joi.ErrorReport {
    const isMeant = window <= HOUR || window % HOUR === 0;
    return isMeant ? window : message({ custom: '{{#label}} must be whole hours beyond 3600: it is in seconds' });
}

const HOUR = 3600;
const PLUGIN = 'rest-api-v2';
const POLICY = 'requests';
/** How long a request waits for Redis, and for how long none asks it again when that was in vain, in milliseconds. */
const [REDIS_PATIENCE, REDIS_AWAY] = [500, 5_000];

/** What a route does to keep the limit and to tell the client of it. */
export interface RequestLimiting {
    /** For `onPostAuth`. */
    readonly count: Lifecycle.Method;
    /** For `onPreResponse`. */
    readonly tell: Lifecycle.Method;
}

/**
 * Counts requests that have come in with a key, and refuses those that are too many with 429. Answers have `RateLimit` and
 * `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10). While Redis is away each process counts for itself.
 *
 * @throws ScanwireError `MISCONFIGURED` without the package `rate-limiter-flexible`.
 */
export async function requestLimiting(
    { requests, window = 60, redis, by }: RequestLimit,
    { instance }: InstanceOptions,
): Promise<RequestLimiting> {
    const { RateLimiterMemory, RateLimiterRedis } = await optionalPackage(
        'rate-limiter-flexible',
        'rateLimit of rest-api-v2',
        () => import('rate-limiter-flexible'),
    );
    const counts = { points: requests, duration: window, keyPrefix: `scanwire:requests:${instance ?? ''}` };
    const own = new RateLimiterMemory(counts);
    const shared = redis === undefined ? null : new RateLimiterRedis({ ...counts, storeClient: redis });
    const results = new WeakMap<Request, RateLimiterRes>();
    let awayUntil = 0;

    async function counted(request: Request, client: string): Promise<RateLimiterRes> {
        if (shared === null || performance.now() < awayUntil) {
            return await consumed(own, client);
        }

        try {
            return await within(consumed(shared, client), { timeout: REDIS_PATIENCE });
        } catch (error) {
            awayUntil = performance.now() + REDIS_AWAY;
            logFailure(request, PLUGIN, error, instance);
            return await consumed(own, client);
        }
    }

    return {
        async count(request, h) {
            const result = await counted(request, by?.(request) ?? clientOf(request));
            results.set(request, result);
            if (result.consumedPoints > requests) {
                throw retryLater(Boom.tooManyRequests(`More than ${requests} requests in ${window} s`), result.msBeforeNext);
            }
            return h.continue;
        },

        tell(request, h) {
            const result = results.get(request);
            if (result !== undefined) {
                const headers = 'isBoom' in request.response ? request.response.output.headers : request.response.headers;
                headers['ratelimit-policy'] = `"${POLICY}";q=${requests};w=${window}`;
                headers.ratelimit = `"${POLICY}";r=${result.remainingPoints};t=${seconds(result.msBeforeNext)}`;
            }
            return h.continue;
        },
    };
}

/** One request more of this client. It rejects with its result as well when there were too many. */
async function consumed(limiter: RateLimiterAbstract, client: string): Promise<RateLimiterRes> {
    try {
        return await limiter.consume(client);
    } catch (result) {
        if (result instanceof Error) {
            throw result;
        }

        return result as RateLimiterRes;
    }
}

function clientOf({ auth, info }: Request): string {
    const { id } = (auth.credentials ?? {}) as { readonly id?: unknown };
    return typeof id === 'string' ? id : info.remoteAddress;
}

const seconds = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000));

/** The answer with the time after which its client may try again. */
function retryLater(boom: Boom.Boom, milliseconds: number): Boom.Boom {
    boom.output.headers['retry-after'] = seconds(milliseconds);
    return boom;
}

/** How long a client may take nothing of an index that waits for it, and how often that is looked at, in milliseconds. */
const [PATIENCE, LOOK] = [30_000, 5_000];
/** How long a client is told to wait for a place, in milliseconds. */
const RETRY_AFTER = 5_000;

/** The indexes that are being sent. */
export interface Streams {
    /**
     * Takes a place until the answer is sent or its connection gone. A client that takes nothing of it for 30 s loses the connection.
     *
     * @throws Boom 503 with `Retry-After` while all places are taken.
     */
    begin(request: Request): void;
    /** Looks for clients that take nothing, as it does by itself every 5 s. */
    look(): void;
}

/** @param most How many there may be at once. @param now Milliseconds since any moment. */
export function streamsUpTo(most: number, now: () => number = () => performance.now()): Streams {
    // No Map: one that requests go into and out of all the time is made anew every few of them, and V8 lets each that it was hold on to the next
    // and to its requests, so that none of them goes before all of the heap is looked at.
    const open: { readonly request: Request; readonly taking: ReaderWatch }[] = [];
    let timer: NodeJS.Timeout | undefined;

    function look(): void {
        for (const { request, taking } of open) {
            if (taking.pausedFor(now()) >= PATIENCE) {
                request.raw.res.destroy();
            }
        }
    }

    return {
        look,

        begin(request) {
            if (open.length >= most) {
                throw retryLater(Boom.serverUnavailable('Too many indexes are being read; try again later'), RETRY_AFTER);
            }

            const { req, res } = request.raw;
            if (res.closed) {
                return;
            }

            const stream = { request, taking: new ReaderWatch(req.socket, now()) };
            open.push(stream);
            timer ??= setInterval(look, LOOK).unref();
            const end = (): void => {
                const place = open.indexOf(stream);
                if (place >= 0) {
                    open.splice(place, 1);
                }
                if (open.length === 0) {
                    clearInterval(timer);
                    timer = undefined;
                }
            };
            res.once('close', end);
            // Where there is no connection, as with `server.inject`, nothing is closed.
            res.once('finish', end);
        },
    };
}
