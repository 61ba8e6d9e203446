import Boom from '@hapi/boom';
import type { Lifecycle, Request } from '@hapi/hapi';
import Joi from 'joi';
import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';
import { optionalPackage } from '../../lib/optional-packages.ts';
import { isObject } from '../../lib/schema-validation.ts';
import { within } from '../../lib/within.ts';
import { retryLater, seconds } from '../errors.ts';
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
