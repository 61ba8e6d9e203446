import pg from 'pg';
import type { Checkout } from './checkout.ts';
import { background } from './processes.ts';
import { emptyStore } from './sender-store.ts';

/** A database with many exporters and deliveries, and a host that shows them. */
export interface FilledStore {
    readonly url: string;
    /** Of the host. */
    readonly origin: string;
    readonly known: Known;
}

/** Ids of what there is to be looked at. */
export interface Known {
    readonly exporter: string;
    readonly delivery: string;
    readonly event: string;
    /** From the middle of what is kept, and the exporter that 900 come before. */
    readonly middle: string;
    readonly late: string;
    /** Exporters of one of ten owners. */
    readonly owned: readonly string[];
}

/** How much there is. */
export interface Filling {
    readonly exporters: number;
    readonly deliveries: number;
}

/** In words. */
export function namesOf({ exporters, deliveries }: Filling): string {
    return `${exporters.toLocaleString('en')} exporters and ${deliveries.toLocaleString('en')} deliveries`;
}

/** Rows that one statement adds. */
const AT_ONCE = 100_000;
/** From how many days what is kept comes. */
const DAYS = 30;

/** As who ends deliveries does. */
const COUNTED = `
insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, count)
select d.exporter_id, d.state, d.last_code, d.kind, count(*)
from scanwire.deliveries d
where d.state in ('delivered', 'exhausted', 'poisoned', 'cancelled', 'erased') and d.kind is not null
group by d.exporter_id, d.state, d.last_code, d.kind`;

/** Fills a database by the package of the checkout, and removes it after the task. */
export async function withFilledStore<Result>(
    checkout: Checkout,
    { exporters, deliveries }: Filling,
    task: (filled: FilledStore) => Promise<Result>,
): Promise<Result> {
    const store = await emptyStore({ database: true });
    const url = String(store.urls.DATABASE_URL);
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const host = await background(checkout, 'screens', { args: [url, String(exporters)] });
    try {
        await fill(pool, deliveries);
        return await task({ url, origin: `http://127.0.0.1:${host.firstLine}`, known: await knownOf(pool) });
    } finally {
        await host.stop();
        await pool.end();
        await store.remove();
    }
}

async function fill(pool: pg.Pool, deliveries: number): Promise<void> {
    await pool.query(`update scanwire.exporters set state = 'running'`);
    for (let done = 0; done < deliveries; done += AT_ONCE) {
        const count = Math.min(AT_ONCE, deliveries - done);
        await pool.query(DONE, [count, done / deliveries, count / deliveries, DAYS]);
    }
    const { rows } = await pool.query<{ known: boolean }>(`select to_regclass('scanwire.delivery_count_changes') is not null as known`);
    if (rows[0]?.known === true) {
        await pool.query(COUNTED);
        await pool.query('select scanwire.fold_delivery_counts(1000000)');
    }
    await pool.query('vacuum analyze');
}

async function knownOf(pool: pg.Pool): Promise<Known> {
    const { rows } = await pool.query<Known>(KNOWN);
    return rows[0] as Known;
}

/** `$1` rows, from share `$2` of the time on, which they take share `$3` of; `$4` days. Of fifty one was given up, of a thousand one waits. */
const DONE = `
with numbered as materialized (
    select
        gen_random_uuid() as id, g.i,
        scanwire.now() - $4::float8 * interval '1 day' * (1 - $2::float8 - $3::float8 * g.i / $1::float8) as at,
        case when g.i % 1000 = 0 then 'pending' when g.i % 50 = 1 then 'exhausted' else 'delivered' end as state,
        case when g.i % 20000 = 7 then 'test' else 'idr_investigation_created' end as kind
    from generate_series(1, $1::integer) as g (i)
),
added as (
    insert into scanwire.events (id, kind, body, created_at)
    select
        n.id, n.kind, '{"description":"' || repeat('x', 200) || '"}', n.at
    from numbered n
    order by n.i
),
exporters as materialized (
    select e.id, e.collector, row_number() over (order by e.seq) - 1 as number, count(*) over () as count from scanwire.exporters e
),
kept as (
    insert into scanwire.deliveries (
        event_id, kind, accepted_at, exporter_id, due_at, queued_at, claimed_at, finished_at, priority, attempts, round, collector, state, last_code
    )
    select
        n.id, n.kind, n.at, e.id, case when n.state = 'pending' then scanwire.now() + interval '1 day' else n.at end, n.at, n.at,
        case when n.state <> 'pending' then n.at + n.i % 300 * interval '1 ms' end, case when n.state = 'pending' then 2 else 1 end,
        1, 1, e.collector, n.state,
        case when n.state = 'delivered' then 'delivered' when n.i % 10000 = 1 then 'gone' else 'server_error' end
    from numbered n
    join exporters e on e.number = n.i % e.count
    order by n.i
    returning id, claimed_at, finished_at, last_code
)
insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
select
    k.id, 1, k.claimed_at, coalesce(k.finished_at, k.claimed_at), k.id::text, false,
    ('{"code":' || to_json(k.last_code) || ',"detail":null,"timings":{"total":5}}')::json
from kept k`;

const KNOWN = `
select
    d.exporter_id as exporter, d.id as delivery, d.event_id as event,
    (select m.id from scanwire.deliveries m where m.seq >= (select (min(s.seq) + max(s.seq)) / 2 from scanwire.deliveries s) order by m.seq limit 1) as middle,
    (select e.id from scanwire.exporters e order by e.seq offset (select count(*) * 9 / 10 from scanwire.exporters) limit 1) as late,
    array(select e.id::text from scanwire.exporters e where e.owner = 'owner 1') as owned
from scanwire.deliveries d
order by d.seq desc
limit 1`;
