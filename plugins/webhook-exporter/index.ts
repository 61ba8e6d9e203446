import type { Plugin, Server } from '@hapi/hapi';
import { checked } from '../../lib/checked.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { VERSION } from '../../lib/version.ts';
import { httpSender } from '../../lib/webhooks/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { type CheckedWebhookExporterOptions, optionsSchema, type WebhookExporterOptions } from './options.ts';

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
        const { collectors, concurrency, ...settings } = checked<CheckedWebhookExporterOptions>(optionsSchema, options, {
            subject: 'webhook-exporter options',
            code: 'MISCONFIGURED',
        });
        const { publish, exporters, deliveries, start, work, close } = webhooksOf(settings, server);

        server.expose({ publish, exporters, deliveries });
        server.ext('onPreStart', async () => {
            await start();
            await work(collectors, { concurrency });
        });
        server.ext('onPostStop', close);
    },
};

function webhooksOf(settings: Omit<CheckedWebhookExporterOptions, 'collectors' | 'concurrency'>, server: Server): Webhooks {
    const { stores, egress, attemptTimeout, connectTimeout, ...shared } = settings;
    const guard = egressGuard(egress);
    return webhooks({
        ...shared,
        ...stores,
        guard,
        sender: httpSender({ guard, attemptTimeout, connectTimeout }),
        onError: (error) => server.log(['scanwire', 'webhook-exporter', 'error'], error),
    });
}
