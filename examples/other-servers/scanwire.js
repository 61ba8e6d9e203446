import Hapi from '@hapi/hapi';
import { postgresQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { alwaysLicensed } from 'scanwire/license';
import { migrate, postgresApiKeys, postgresInventory, postgresWebhooks } from 'scanwire/postgres';
import { plugin as restApiV2 } from 'scanwire/rest-api-v2';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { egressGuard, httpSender, webhooks } from 'scanwire/webhooks';

const report = (error) => console.error('scanwire:', error.message);

/** All of scanwire for a server that is not hapi: the webhook exporter, and the REST API below a path of the server. */
export async function startScanwire({ pool, sealingKey, path = '/scan', egress = { allow: [] } }) {
    await migrate(pool);
    const sealing = keyRing({ current: 'k1', keys: { k1: sealingKey } });
    const queue = postgresQueue({ pool });
    const exporter = exporterOver({ pool, queue, sealing, egress });
    const rest = await restBelow(path, pool, sealing);

    await exporter.start();
    await exporter.work(['default']);
    await rest.start();

    return {
        publish: exporter.publish,
        exporters: exporter.exporters,
        createKey: rest.plugins['token-auth'].create,

        /** Hands a request over as it arrived: the path whole, the body unread. */
        handle(request, response) {
            rest.listener.emit('request', request, response);
        },

        /** After the last request: sends nothing new, waits for the answers of receivers, lets go of the queue. The pool stays open. */
        async stop() {
            await rest.stop();
            await exporter.close();
            await queue.close();
        },
    };
}

function exporterOver({ pool, queue, sealing, egress }) {
    const guard = egressGuard(egress);
    const stores = postgresWebhooks({ pool });
    return webhooks({ ...stores, queue, keyRing: sealing, guard, sender: httpSender({ guard }), vendor: 'Acme', onError: report });
}

/** A hapi server that never listens; connections are the other server's to count and to end. */
async function restBelow(prefix, pool, sealing) {
    const server = Hapi.server({ autoListen: false, operations: { cleanStop: false } });
    server.events.on('log', ({ error }) => error && report(error));
    await server.register(
        [
            { plugin: tokenAuth, options: { store: postgresApiKeys({ pool }), keyRing: sealing } },
            { plugin: restApiV2, options: { store: postgresInventory({ pool }), license: alwaysLicensed() } },
        ],
        { routes: { prefix } },
    );
    return server;
}
