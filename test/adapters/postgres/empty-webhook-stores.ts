import type { WebhookStores } from '../../../adapters/contract/index.ts';
import { type PoolLike, postgresWebhooks } from '../../../adapters/postgres/index.ts';

/** Stores over a pool whose schema is up to date; empty once started. */
export function emptyWebhookStores(pool: PoolLike): Required<Omit<WebhookStores, 'stop'>> {
    return {
        ...postgresWebhooks({ pool }),
        async start() {
            await pool.query('truncate scanwire.exporters, scanwire.events, scanwire.deliveries, scanwire.attempts');
        },
        async begin() {
            const tx = await pool.connect();
            await tx.query('begin');
            const end = async (how: string): Promise<void> => {
                await tx.query(how);
                tx.release();
            };
            return { tx, commit: () => end('commit'), rollback: () => end('rollback') };
        },
    };
}
