import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { WebhookStores } from '../../../adapters/contract/webhook-stores.ts';
import { webhooks as migration } from '../../../adapters/postgres/migrations/0002-webhooks.ts';
import type { PoolLike } from '../../../adapters/postgres/pool.ts';
import { postgresWebhooks } from '../../../adapters/postgres/webhooks.ts';

/** Sets the tables up. */
export const SCHEMA: string = `create schema if not exists scanwire; ${migration.sql}`;

const TABLES = 'scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.attempts';

/** A database of its own on the server of `DATABASE_URL`. */
export async function createDatabase(): Promise<{ readonly pool: pg.Pool; drop(): Promise<void> }> {
    const url = process.env.DATABASE_URL;
    if (url === undefined) {
        throw new Error('DATABASE_URL is not set');
    }

    const name = `hooks_${randomBytes(6).toString('hex')}`;
    const server = new pg.Pool({ connectionString: url, max: 1 });
    await server.query(`create database ${name}`);
    const own = new URL(url);
    own.pathname = name;
    const pool = new pg.Pool({ connectionString: own.href, max: 10 });
    // a connection may still be closing when the database is dropped
    pool.on('connect', (client) => client.on('error', () => {}));
    await pool.query(SCHEMA);
    return {
        pool,
        async drop() {
            await pool.end();
            await server.query(`drop database ${name} with (force)`);
            await server.end();
        },
    };
}

/** Empty stores over the pool. */
export async function emptyStores(pool: PoolLike): Promise<WebhookStores> {
    await pool.query(`truncate ${TABLES}`);
    return {
        ...postgresWebhooks({ pool }),
        async begin() {
            const tx = await pool.connect();
            await tx.query('begin');
            const end = async (how: string): Promise<void> => {
                await tx.query(how);
                tx.release();
            };
            return { tx, commit: () => end('commit'), rollback: () => end('rollback') };
        },
        async stop() {},
    };
}
