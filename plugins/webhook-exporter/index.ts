import type { Plugin, Server } from '@hapi/hapi';
import { VERSION } from '../../lib/version.ts';
import { logLines } from '../../lib/webhooks/observing/emitted-events.ts';
import { drainWarning } from '../../lib/webhooks/options.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { mapErrors } from '../errors.ts';
import { healthRoutes } from '../health.ts';
import { claimInstance, exposeInstance, type Instances } from '../instance.ts';
import { announcing, logging } from '../log-and-events.ts';
import { atFreePaths, withStrategy } from '../route-authorization.ts';
import { type WebhookExporterOptions, webhooksOf } from './options.ts';
import { exporterRoutes, UNKNOWN_STRATEGY } from './routes.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { HealthRoutes } from '../health.ts';
export { redact, type ScanwireEvent } from '../log-and-events.ts';
export type { ExporterRoutes, WebhookExporterOptions } from './options.ts';

/** What `server.plugins['webhook-exporter']` offers. */
export type WebhookExporterApi = Pick<
    Webhooks,
    'publish' | 'publishAll' | 'exporters' | 'deliveries' | 'events' | 'kinds' | 'readiness' | 'overview' | 'doctor'
>;

declare module '@hapi/hapi' {
    interface PluginProperties {
        'webhook-exporter': WebhookExporterApi & Instances<WebhookExporterApi>;
    }
}

/** Accepts events and delivers them, signed, to the receivers that users configure. */
export const plugin: Plugin<WebhookExporterOptions> = {
    name: 'webhook-exporter',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    register(server, options) {
        const log = logging(server, 'webhook-exporter', options);
        const announce = announcing(server, 'webhook-exporter', options, log);
        const lineOf = logLines();
        const { webhooks, collectors, concurrency, drainTimeout, attemptTimeout, ...settings } = webhooksOf(options, {
            onError: (error) => log('error', error),
            onWarning: (message) => log('warn', message),
            onEvent(event) {
                announce(event);
                const line = lineOf(event);
                if (line !== null) {
                    log(line.level, line.text);
                }
            },
        });
        const { publish, publishAll, exporters, deliveries, events, kinds, readiness, overview, doctor, start, work, close } = webhooks;

        claimInstance(server, 'webhook-exporter', options);
        exposeInstance(server, 'webhook-exporter', options, {
            publish,
            publishAll,
            exporters,
            deliveries,
            events,
            kinds,
            readiness,
            doctor,
            overview,
        });
        if (settings.mapErrors) {
            mapErrors(server, 'webhook-exporter');
        }
        addRoutes(server, webhooks, settings);

        const warning = drainWarning(drainTimeout, attemptTimeout);
        server.ext('onPreStart', async () => {
            if (warning !== null) {
                log('warn', warning);
            }
            await start();
            await work(collectors, { concurrency });
        });
        // Before the host ends its pools, which outcomes are recorded with.
        server.ext('onPreStop', () => close({ timeout: drainTimeout }));
    },
};

function addRoutes(
    server: Server,
    own: Webhooks,
    { routes, health, maxBodyBytes }: Pick<ReturnType<typeof webhooksOf>, 'routes' | 'health' | 'maxBodyBytes'>,
): void {
    if (routes !== undefined) {
        withStrategy(UNKNOWN_STRATEGY, 'webhook-exporter options: routes.prefix', () =>
            server.route(exporterRoutes(own, routes, maxBodyBytes)),
        );
    }
    if (health !== undefined) {
        atFreePaths('webhook-exporter options: health.prefix', () => server.route(healthRoutes(own.readiness, health)));
    }
}
