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

    register(server, given) {
        const options = checked<CheckedWebhookExporterOptions>(optionsSchema, given, {
            subject: 'webhook-exporter options',
            code: 'MISCONFIGURED',
        });
        const exporter = exporterOf(options, server);

        server.expose({ publish: exporter.publish, exporters: exporter.exporters, deliveries: exporter.deliveries });
        server.ext('onPreStart', async () => {
            await exporter.start();
            await exporter.work(options.collectors, { concurrency: options.concurrency });
        });
        server.ext('onPostStop', () => exporter.close());
    },
};

function exporterOf(options: CheckedWebhookExporterOptions, server: Server): Webhooks {
    const { stores, egress, attemptTimeout, connectTimeout, collectors, concurrency, ...parts } = options;
    const guard = egressGuard(egress);
    return webhooks({
        ...parts,
        ...stores,
        guard,
        sender: httpSender({ guard, attemptTimeout, connectTimeout }),
        attemptTimeout,
        onError: (error) => server.log(['scanwire', 'webhook-exporter', 'error'], error),
    });
}
