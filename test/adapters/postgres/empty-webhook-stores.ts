import type { WebhookStores } from '../../../adapters/contract/webhook-stores.ts';
import type { PoolLike } from '../../../adapters/postgres/database.ts';
import { postgresWebhooks } from '../../../adapters/postgres/index.ts';

/** Empty stores over a pool whose schema is up to date. */
export async function emptyWebhookStores(pool: PoolLike): Promise<WebhookStores> {
    await pool.query('truncate scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.attempts');
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
