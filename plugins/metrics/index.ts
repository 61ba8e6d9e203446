import type { NamedPlugin, RouteOptionsAccess, Server, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError } from '../../lib/errors.ts';
import { checked, objectWith, ROUTE_PATH } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { DELIVERY_EVENTS, type WebhookEvent } from '../../lib/webhooks/observing/emitted-events.ts';
import { type MetricsRegistry, type WebhookMetrics, webhookMetrics } from '../../lib/webhooks/observing/metrics.ts';
import { toBoom } from '../errors.ts';
import { inTime, noteArrival } from '../in-time.ts';
import { authSchema, claimInstance, type InstanceOptions, instanceSchema } from '../instance.ts';
import { EVENT, logFailure, logTags, type ScanwireEvent } from '../log-and-events.ts';
import { needsAllWorkspaces, needsScope, withStrategy } from '../route-authorization.ts';
import { READABLE_COOKIES, unsniffed } from '../route-parts.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { MetricsRegistry } from '../../lib/webhooks/observing/metrics.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';

/** Options of the plugin. */
export interface MetricsPluginOptions extends InstanceOptions {
    /** Path of the metrics. Default `/metrics`. */
    readonly path?: string;
    /** Name of an authentication strategy, or false for none. A key of token-auth needs the scope `deliveries:read`. */
    readonly auth: string | false;
    /** Name of the instance of webhook-exporter that is measured, where that has one. */
    readonly of?: string;
    /** Whether attempts and certificates have the id of their exporter as a label. Default false. */
    readonly perExporter?: boolean;
    /** Whether memory, processor time, event loop and garbage collection of the process are shown as well. Default false. */
    readonly processMetrics?: boolean;
    /** A registry of prom-client, for an application that has metrics of its own in it. */
    readonly registry?: MetricsRegistry;
}

type Defaulted = 'path' | 'perExporter' | 'processMetrics';

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<MetricsPluginOptions & Required<Pick<MetricsPluginOptions, Defaulted>>> = Joi.object({
    path: Joi.string().pattern(ROUTE_PATH).message('{{#label}} must look like /metrics').default('/metrics'),
    auth: authSchema.required(),
    of: instanceSchema,
    perExporter: Joi.boolean().default(false),
    processMetrics: Joi.boolean().default(false),
    registry: objectWith<MetricsRegistry>('metrics'),
    instance: instanceSchema,
}).required();

/** Shows metrics of the plugin webhook-exporter, registered before it, in the form of Prometheus. Needs the package `prom-client`. */
export const plugin: NamedPlugin<MetricsPluginOptions> = {
    name: 'metrics',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    async register(server, options) {
        const settings = checked(optionsSchema, options, { subject: 'metrics options', code: 'MISCONFIGURED' });
        const { of, path, auth, instance } = settings;
        claimInstance(server, 'metrics', settings);
        const exporter = server.plugins['webhook-exporter'];
        if (exporter === undefined) {
            throw new ScanwireError('MISCONFIGURED', 'metrics measures the plugin webhook-exporter: register that before');
        }

        const measured = of === undefined ? exporter : instanceOf(exporter, of);
        const onError = (error: Error): void => server.log([...logTags('metrics', instance), 'error'], error);
        const metrics = await webhookMetrics({ ...settings, source: () => measured, onError });
        server.events.on({ name: EVENT, channels: ['event.accepted', ...DELIVERY_EVENTS] }, (event: ScanwireEvent & WebhookEvent) => {
            if (event.instance === of) {
                metrics.hear(event);
            }
        });
        withStrategy('metrics options: auth must name a strategy of the server, registered before', 'metrics options: path', () =>
            server.route(metricsRoute(metrics, path, auth === false ? false : { strategies: [auth], mode: 'required' })),
        );
    },
};

function instanceOf(exporter: Server['plugins']['webhook-exporter'], name: string): ReturnType<typeof exporter.of> {
    try {
        return exporter.of(name);
    } catch (cause) {
        const rule = 'must be the name of an instance of webhook-exporter, registered before';
        throw new ScanwireError('MISCONFIGURED', `metrics options: of ${rule}`, { field: 'of', cause });
    }
}

const metricsSchema = objectWith<WebhookMetrics>('text').required();

/** `GET path`: what a scrape gets. @throws ScanwireError `MISCONFIGURED` without metrics. */
export function metricsRoute(metrics: WebhookMetrics, path: string, auth: false | RouteOptionsAccess): ServerRoute {
    const { text } = checked(metricsSchema, metrics, { subject: 'Metrics', code: 'MISCONFIGURED' });
    return {
        method: 'GET',
        path,
        options: {
            auth,
            description: 'Metrics in the form of Prometheus',
            cache: { otherwise: 'no-store' },
            state: READABLE_COOKIES,
            ext: {
                onPreAuth: { method: noteArrival },
                onCredentials: [
                    { method: needsScope('deliveries:read', 'The API key needs the scope deliveries:read') },
                    { method: needsAllWorkspaces },
                ],
                onPreResponse: unsniffed,
            },
        },
        async handler(request, h) {
            try {
                // A registry of the application may have metrics that ask somebody else.
                const shown = await inTime(request, text);
                return h.response(shown.text).type(shown.type);
            } catch (error) {
                if (error instanceof ScanwireError) {
                    logFailure(request, 'metrics', error);
                }
                throw toBoom(error);
            }
        },
    };
}
