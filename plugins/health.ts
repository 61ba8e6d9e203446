/** Routes for whoever starts, replaces and balances processes: without a key, so with no more in their answers than a word. */
import type { Lifecycle, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { ROUTE_PATH } from '../lib/schema-validation.ts';
import type { Readiness } from '../lib/webhooks/observing/readiness.ts';
import { READABLE_COOKIES } from './route-parts.ts';

/** The option `health`. */
export interface HealthRoutes {
    /** What stands before `/health/live` and `/health/ready`. Nothing by default. */
    readonly prefix?: string;
}

/** Rule of the option `health`. */
export const healthSchema: Joi.ObjectSchema<HealthRoutes> = Joi.object({
    prefix: Joi.string().allow('').pattern(ROUTE_PATH).message('{{#label}} must look like /webhooks').default(''),
});

/**
 * `GET /health/live`: 200 as long as the process answers at all. `GET /health/ready`: 200 while it can accept and deliver, else 503, and
 * 503 from the first moment of a stop on. The body is `{"status":"ok"}` or `{"status":"unavailable"}`.
 */
export function healthRoutes(readiness: () => Promise<Readiness>, { prefix = '' }: HealthRoutes = {}): ServerRoute[] {
    const route = (name: string, isWell: () => Promise<boolean>): ServerRoute => ({
        method: 'GET',
        path: `${prefix}/health/${name}`,
        options: { auth: false, cache: { otherwise: 'no-store' }, state: READABLE_COOKIES },
        handler: told(isWell),
    });
    return [route('live', async () => true), route('ready', async () => (await readiness()).ready)];
}

function told(isWell: () => Promise<boolean>): Lifecycle.Method {
    return async (_, h) => ((await isWell()) ? h.response({ status: 'ok' }) : h.response({ status: 'unavailable' }).code(503));
}
