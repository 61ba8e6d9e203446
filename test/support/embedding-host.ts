import { randomBytes } from 'node:crypto';
import { server as hapiServer, type Server } from '@hapi/hapi';
import pg from 'pg';
import type { Test } from 'tap';
import { postgresQueue, redisQueue } from '../../adapters/bullmq/index.ts';
import { type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { plugin, type WebhookExporterOptions } from '../../plugins/webhook-exporter/index.ts';
import { migratedDatabase } from './migrated-database.ts';
import { required } from './required.ts';

/** The servers of an application that has scanwire in it and sends nothing itself, and what its workers need in their environment. */
export interface Embedding {
    readonly env: Readonly<Record<'DATABASE_URL' | 'REDIS_URL' | 'SCANWIRE_KEY_RING', string>>;
    readonly pool: pg.Pool;
    redis(prefix?: string): DeliveryQueue;
    postgres(): DeliveryQueue;
    /** A server of the application that has started, with what it logs. */
    host(options: Partial<WebhookExporterOptions>): Promise<{ readonly server: Server; readonly errors: Error[] }>;
}

/** An application with a database of its own, on the Redis of `REDIS_URL`. */
export async function embedding(t: Test): Promise<Embedding> {
    const database = await migratedDatabase();
    t.after(() => database.drop());
    const pool = new pg.Pool({ connectionString: database.url });
    t.after(() => pool.end());
    const sealing = randomBytes(32);
    const url = required('REDIS_URL');
    const closing = (queue: DeliveryQueue): DeliveryQueue => {
        t.after(() => queue.close());
        return queue;
    };
    const redis = (prefix?: string) => closing(redisQueue({ url, onWarning: () => {}, ...(prefix !== undefined && { prefix }) }));

    return {
        env: {
            DATABASE_URL: database.url,
            REDIS_URL: url,
            SCANWIRE_KEY_RING: JSON.stringify({ current: 'k', keys: { k: sealing.toString('base64') } }),
        },
        pool,
        redis,
        postgres: () => closing(postgresQueue({ pool })),

        async host(options) {
            const server = hapiServer();
            const errors: Error[] = [];
            server.events.on('log', ({ error }) => errors.push(error as Error));
            await server.register({
                plugin,
                options: {
                    stores: postgresWebhooks({ pool: pool as PoolLike }),
                    queue: options.queue ?? redis(),
                    keyRing: keyRing({ current: 'k', keys: { k: sealing } }),
                    egress: { allow: ['127.0.0.0/8'] },
                    collectors: [],
                    ...options,
                },
            });
            await server.initialize();
            t.after(() => server.stop());
            return { server, errors };
        },
    };
}
