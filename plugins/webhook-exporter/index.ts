import type { Plugin } from '@hapi/hapi';
import { checked } from '../../lib/checked.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { VERSION } from '../../lib/version.ts';
import { httpSender } from '../../lib/webhooks/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { optionsSchema, type WebhookExporterOptions } from './options.ts';

export type { WebhookExporterOptions } from './options.ts';

/** What `server.plugins['webhook-exporter']` offers. */
export type WebhookExporterApi = Pick<Webhooks, 'publish' | 'exporters' | 'deliveries'>;

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
        const { collectors, concurrency, drainTimeout, stores, egress, attemptTimeout, connectTimeout, resolver, ...settings } = checked(
            optionsSchema,
            options,
            {
                subject: 'webhook-exporter options',
                code: 'MISCONFIGURED',
            },
        );
        const guard = egressGuard(egress);
        const { publish, exporters, deliveries, start, work, close } = webhooks({
            ...settings,
            ...stores,
            guard,
            sender: httpSender({ guard, attemptTimeout, connectTimeout, resolver }),
            onError: (error) => server.log(['scanwire', 'webhook-exporter', 'error'], error),
        });

        server.expose({ publish, exporters, deliveries });
        server.ext('onPreStart', async () => {
            await start();
            await work(collectors, { concurrency });
        });
        // Before the host ends its pools, which outcomes are recorded with.
        server.ext('onPreStop', () => close({ timeout: drainTimeout }));
    },
};
