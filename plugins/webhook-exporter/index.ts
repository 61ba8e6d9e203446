import type { Plugin } from '@hapi/hapi';
import { VERSION } from '../../lib/version.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { mapErrors } from '../errors.ts';
import { announcing, claimInstance, exposeInstance, type Instances, logTags } from '../instance.ts';
import { type WebhookExporterOptions, webhooksOf } from './options.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export { redact, type ScanwireEvent } from '../instance.ts';
export type { WebhookExporterOptions } from './options.ts';

/** What `server.plugins['webhook-exporter']` offers. */
export type WebhookExporterApi = Pick<Webhooks, 'publish' | 'publishAll' | 'exporters' | 'deliveries' | 'events' | 'kinds' | 'readiness'>;

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
        const {
            webhooks,
            collectors,
            concurrency,
            drainTimeout,
            mapErrors: mapsErrors,
        } = webhooksOf(options, {
            onError: (error) => server.log([...logTags('webhook-exporter', options.instance), 'error'], error),
            onEvent: announcing(server, 'webhook-exporter', options),
        });
        const { publish, publishAll, exporters, deliveries, events, kinds, readiness, start, work, close } = webhooks;

        claimInstance(server, 'webhook-exporter', options);
        exposeInstance(server, 'webhook-exporter', options, { publish, publishAll, exporters, deliveries, events, kinds, readiness });
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
