import { postgresQueue, redisQueue } from 'scanwire/bullmq';
import { plugin as httpsRecordSchema } from 'scanwire/https-record-schema';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { migrate, postgresApiKeys, postgresRecords, postgresWebhooks } from 'scanwire/postgres';
import { plugin as restApiV2 } from 'scanwire/rest-api-v2';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';
import { siteInventory } from './site-inventory.js';

/** All that is new: four plugins beside the routes, the sessions and the tables that were there before. */
export async function addScanwire(server, { pool, redisUrl, sealingKey, egress }) {
    await migrate(pool);
    const sealing = keyRing({ current: 'k1', keys: { k1: sealingKey } });
    const queue = redisUrl ? redisQueue({ url: redisUrl }) : postgresQueue({ pool });

    await server.register([
        { plugin: tokenAuth, options: { store: postgresApiKeys({ pool }), keyRing: sealing } },
        { plugin: restApiV2, options: { store: siteInventory(pool), license: alwaysLicensed() } },
        { plugin: httpsRecordSchema, options: { auth: 'token', records: postgresRecords({ pool }) } },
        {
            plugin: webhookExporter,
            options: { stores: postgresWebhooks({ pool }), queue, keyRing: sealing, vendor: 'Acme', egress, mapErrors: true },
        },
    ]);
    server.ext('onPostStop', () => queue.close());

    server.route([
        {
            method: 'POST',
            path: '/api-keys',
            options: { auth: 'session' },
            handler: ({ auth }) => server.plugins['token-auth'].create(`made by ${auth.credentials.user}`),
        },
        {
            method: 'DELETE',
            path: '/api-keys/{id}',
            options: { auth: 'session' },
            handler: ({ params }, h) => server.plugins['token-auth'].revoke(params.id).then(() => h.response().code(204)),
        },
        {
            method: 'POST',
            path: '/receivers',
            options: { auth: 'session' },
            async handler({ payload }) {
                const { exporters } = server.plugins['webhook-exporter'];
                const { exporter, secret } = await exporters.create({ name: payload.name, url: payload.url });
                const { test } = await exporters.start(exporter.id);
                return { id: exporter.id, secret, test: test.attempt?.outcome?.code ?? 'no answer yet' };
            },
        },
    ]);
}
