import type { WebhookStores } from '../../../../adapters/contract/index.ts';
import { type PoolLike, postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { emptyTables } from '../databases.ts';

/** In place of the clock of the schema, once: to replace a function has all that calls it planned again. */
const CLOCK = `do $$ begin
    if to_regclass('public.test_clock') is null then
        create table public.test_clock (at timestamptz not null);
        create or replace function scanwire.now() returns timestamptz language sql volatile as 'select at from public.test_clock';
    end if;
    delete from public.test_clock;
    insert into public.test_clock values (now());
end $$`;

const TABLES = [
    'exporters',
    'exporter_rates',
    'exporter_turns',
    'events',
    'deliveries',
    'attempts',
    'attempt_responses',
    'worker_sessions',
    'deployment',
    'delivery_messages',
    'idempotency_keys',
    'exporter_notices',
    'replays',
    'order_places',
    'order_releases',
    'delivery_counts',
    'delivery_count_changes',
];

/** Stores over a pool whose schema is up to date; empty once started, and from then on with a time that stands still. */
export function emptyWebhookStores(pool: PoolLike): Required<Omit<WebhookStores, 'stop'>> {
    return {
        ...postgresWebhooks({ pool }),
        async start() {
            await emptyTables(pool, TABLES);
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
