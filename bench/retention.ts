import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { postgresWebhooks } from '../adapters/postgres/index.ts';
import { stretchOf, warmUp } from './pace.ts';
import type { Figures, Run, Section } from './section.ts';
import { type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';

const DAY = 24 * 60 * 60_000;

/** A hundredth of a million deliveries a day. A turn comes each quarter of a day, and removes what came in one. */
const PER_DAY = 10_000;
const KEPT_DAYS = 30;
const TURN = 1 / 4;
/** Rows from an event's day on, of which the last turn has removed the deliveries. */
const DAYS = KEPT_DAYS + 1 + 2 * TURN;
const STRETCH = { rate: 200, seconds: (PER_DAY * TURN) / 200 };
const AT_ONCE = 100_000;

/** How a turn rests, as in a host. */
const REST = 200;

/** What it costs the database to forget at the pace at which it is given. */
export const retention: Section = {
    name: 'retention',
    discarded: 0,
    mostRounds: 3,

    async open({ scale }) {
        return {
            measurements: [
                {
                    title: `a turn of retention beside the ${PER_DAY * TURN} deliveries that come from one to the next, ${PER_DAY * KEPT_DAYS} kept`,
                    figures: {
                        removed: { label: 'deliveries and events removed' },
                        share: { label: 'of the time that PostgreSQL takes for statements and its vacuum, %', digits: 1, bar: '≤ 5' },
                        vacuum: { label: '  what the vacuum afterwards takes more than without it, ms', digits: 1 },
                        longest: { label: 'its longest statement, ms', digits: 1, bar: '≤ 50' },
                        p95: { label: 'accepted to arrived p95 meanwhile, ms', digits: 1 },
                    },
                    scanwire: async (checkout) => aTurn({ checkout, kind: 'serve' }, scale),
                },
            ],
        };
    },
};

function aTurn(options: SenderOptions, scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            const pool = new pg.Pool({ connectionString: sender.store.urls.DATABASE_URL, max: 1 });
            try {
                await warmUp(sender, Math.ceil(2_000 * scale));
                for (let left = Math.ceil(PER_DAY * DAYS * scale); left > 0; left -= AT_ONCE) {
                    await sender.store.keep(Math.min(AT_ONCE, left));
                }
                await pool.query(SPREAD, [DAYS]);
                for (const statement of IN_ORDER) {
                    await pool.query(statement);
                }
                for (let turn = 0; turn < 1; turn += TURN) {
                    await expire(pool, KEPT_DAYS + TURN);
                }
                await vacuumed(pool);
                await pool.query('checkpoint');
                return await beside(sender, pool, scale);
            } finally {
                await pool.end();
            }
        });
}

async function beside(sender: SenderUnderTest, pool: pg.Pool, scale: number): Promise<Figures> {
    // deliveries leave something to vacuum themselves
    await stretchOf(sender, STRETCH, scale);
    const without = await vacuumed(pool);
    await pool.query('create extension if not exists pg_stat_statements');
    await pool.query('select pg_stat_statements_reset()');
    const [removed, { p95 = 0 }] = await Promise.all([expire(pool, KEPT_DAYS), stretchOf(sender, STRETCH, scale)]);
    const { rows } = await pool.query<Omit<Times, 'vacuum'> & { longest: number }>(TIMES);
    const { longest = 0, ...times } = rows[0] ?? { statements: 0, expiring: 0 };
    const vacuum = Math.max(0, (await vacuumed(pool)) - without);
    return { removed, p95, longest, vacuum, share: shareOf({ ...times, vacuum }) };
}

/** Of the database, in milliseconds. */
interface Times {
    /** All but vacuums. */
    readonly statements: number;
    /** Those of retention among them. */
    readonly expiring: number;
    /** What vacuums take more for what retention removes. */
    readonly vacuum: number;
}

/** What retention takes of the database, in per cent: its statements, and the vacuum without which what it removes would take room for ever. */
export function shareOf({ statements, expiring, vacuum }: Times): number {
    return (100 * (expiring + vacuum)) / (statements + vacuum);
}

/** How long it takes to vacuum all that scanwire stores, in milliseconds; by one process, as autovacuum does. */
async function vacuumed(pool: pg.Pool): Promise<number> {
    const { rows } = await pool.query<{ list: string }>(TABLES);
    const begun = performance.now();
    await pool.query(`vacuum (parallel 0) ${rows[0]?.list}`);
    return performance.now() - begun;
}

async function expire(pool: pg.Pool, days: number): Promise<number> {
    const store = postgresWebhooks({ pool }).deliveries.retention;
    let removed = 0;
    for await (const { deliveries, events } of store?.expire(days * DAY) ?? []) {
        removed += deliveries + events;
        await sleep(REST);
    }
    return removed;
}

/** What is kept comes from so many days, evenly, in the order in which it was stored. */
const SPREAD = `
with numbered as materialized (
    select d.id, d.event_id, now() - $1 * interval '1 day' * (1 - row_number() over (order by d.seq)::float8 / count(*) over ()) as at
    from scanwire.deliveries d
),
aged as (
    update scanwire.deliveries d set accepted_at = n.at, due_at = n.at, finished_at = n.at from numbered n where d.id = n.id
)
update scanwire.events e set created_at = n.at from numbered n where e.id = n.event_id`;

/** What came together lies together, as it does where it came in so many days. */
const IN_ORDER: readonly string[] = [
    'create index accepted on scanwire.events (created_at)',
    'cluster scanwire.events using accepted',
    'drop index scanwire.accepted',
    'cluster scanwire.deliveries using deliveries_seq',
    'vacuum analyze',
];

const TABLES = "select string_agg(format('scanwire.%I', tablename), ', ') as list from pg_tables where schemaname = 'scanwire'";

const TIMES = `
select
    sum(s.total_exec_time) as statements,
    coalesce(sum(s.total_exec_time) filter (where s.query ~ 'expire_'), 0) as expiring,
    max(s.max_exec_time) filter (where s.query ~ 'expire_') as longest
from pg_stat_statements s
join pg_database d on d.oid = s.dbid
where d.datname = current_database()`;
