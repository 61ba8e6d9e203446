import { createHash } from 'node:crypto';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import { redisQueue } from 'scanwire/bullmq';
import { keyRing } from 'scanwire/keys';
import { memoryApiKeys } from 'scanwire/memory';
import { migrate, postgresWebhooks } from 'scanwire/postgres';
import { plugin as tokenAuth } from 'scanwire/token-auth';
import { plugin as webhookExporter } from 'scanwire/webhook-exporter';
import { addKeyStrategy, key as bareKey } from './bare-key.ts';

/**
 * Accepts events for one exporter whose workers run elsewhere: by the `route` of webhook-exporter and a key of token-auth, or by a `bare` route of
 * hapi that checks a key and calls `publish`. Prints its address and the key.
 */
const [way = '', database = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: database, max: 10 });
await migrate(pool);
const deployment = createHash('sha256').update(database).digest();
const ring = keyRing({ current: 'k', keys: { k: deployment } });
const server = hapiServer({ host: '127.0.0.1', port: 0 });
const exporting = {
    stores: postgresWebhooks({ pool }),
    queue: redisQueue({ url: process.env.REDIS_URL ?? '', prefix: `bench-${deployment.toString('hex', 0, 6)}` }),
    keyRing: ring,
    egress: { allow: ['127.0.0.0/8'] },
    collectors: [],
};

const starts: Readonly<Record<string, () => Promise<string>>> = {
    async route() {
        await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring } });
        await server.register({ plugin: webhookExporter, options: { ...exporting, routes: {} } });
        await server.start();
        const { key } = await server.plugins['token-auth'].create('bench', { scopes: ['events:publish'] });
        return key;
    },

    async bare() {
        await server.register({ plugin: webhookExporter, options: exporting });
        addKeyStrategy(server);
        server.route({
            method: 'POST',
            path: '/webhook-exporter/events',
            options: { auth: 'key', payload: { allow: 'application/json' } },
            async handler({ payload }, h) {
                const { kind, body } = payload as { readonly kind: string; readonly body: object };
                const { eventId, deliveries } = await server.plugins['webhook-exporter'].publish(kind, body);
                return h.response({ eventId, deliveries }).code(202);
            },
        });
        await server.start();
        return bareKey;
    },
};

const key = await (starts[way] as () => Promise<string>)();
await server.plugins['webhook-exporter'].exporters.create({ url: 'http://127.0.0.1/hook' });
// Its start would wait for a worker's test.
await pool.query(`update scanwire.exporters set state = 'running'`);
process.stdout.write(`${server.info.uri}/webhook-exporter/events ${key}\n`);
