import type { Plugin } from '@hapi/hapi';
import { VERSION } from '../../lib/version.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { mapErrors } from '../errors.ts';
import { type WebhookExporterOptions, webhooksOf } from './options.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { WebhookExporterOptions } from './options.ts';

/** What `server.plugins['webhook-exporter']` offers. */
export type WebhookExporterApi = Pick<Webhooks, 'publish' | 'exporters' | 'deliveries' | 'readiness'>;

declare module '@hapi/hapi' {
    interface PluginProperties {
        'webhook-exporter': WebhookExporterApi;
    }
}

/** Accepts events and delivers them, signed, to the receivers that users configure. */
export const plugin: Plugin<WebhookExporterOptions> = {
    name: 'webhook-exporter',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },

    register(server, options) {
        const {
            webhooks,
            collectors,
            concurrency,
            drainTimeout,
            mapErrors: mapsErrors,
        } = webhooksOf(options, {
            onError: (error) => server.log(['scanwire', 'webhook-exporter', 'error'], error),
        });
        const { publish, exporters, deliveries, readiness, start, work, close } = webhooks;

        server.expose({ publish, exporters, deliveries, readiness });
        if (mapsErrors) {
            mapErrors(server);
        }

        server.ext('onPreStart', async () => {
            await start();
            await work(collectors, { concurrency });
        });
        // Before the host ends its pools, which outcomes are recorded with.
        server.ext('onPreStop', () => close({ timeout: drainTimeout }));
    },
};
