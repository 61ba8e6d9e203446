import type { WebhookStores } from '../../../adapters/contract/index.ts';
import { type PoolLike, postgresWebhooks } from '../../../adapters/postgres/index.ts';

const CLOCK = `
create table if not exists public.test_clock (at timestamptz not null);
truncate public.test_clock;
insert into public.test_clock values (now());
create or replace function scanwire.now() returns timestamptz language sql volatile as 'select at from public.test_clock'`;

/** Stores over a pool whose schema is up to date; empty once started, and from then on with a time that stands still. */
export function emptyWebhookStores(pool: PoolLike): Required<Omit<WebhookStores, 'stop'>> {
    return {
        ...postgresWebhooks({ pool }),
        async start() {
            await pool.query(
                `truncate scanwire.exporters, scanwire.exporter_rates, scanwire.events, scanwire.deliveries, scanwire.attempts, scanwire.worker_sessions,
                    scanwire.deployment, scanwire.delivery_messages, scanwire.idempotency_keys, scanwire.exporter_notices,
                    scanwire.replays, scanwire.order_places`,
            );
            await pool.query(CLOCK);
        },
        async setTime(time) {
            await pool.query('update public.test_clock set at = $1 where at <> $1', [time]);
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
