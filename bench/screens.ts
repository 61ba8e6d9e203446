import pg from 'pg';
import { request } from 'undici';
import type { Checkout } from './checkout.ts';
import { background } from './processes.ts';
import type { Figure, Figures, Run, Section } from './section.ts';
import { emptyStore } from './sender-store.ts';
import { percentilesOf } from './steady.ts';

const EXPORTERS = 1_000;
const DELIVERIES = 1_000_000;
/** Rows that one statement adds. */
const AT_ONCE = 100_000;
/** From how many days what is kept comes. */
const DAYS = 30;
const LOOKS = 40;

/** Ids of what there is to be looked at. */
interface Known {
    readonly exporter: string;
    readonly delivery: string;
    readonly event: string;
    /** From the middle of what is kept, and the exporter that 900 come before. */
    readonly middle: string;
    readonly late: string;
}

const dayAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 16);

/** The pages that are looked at, by their names in the table. */
const PAGES: Readonly<Record<string, (known: Known) => string>> = {
    overview: () => '/admin/overview',
    keys: () => '/admin/keys',
    exporters: () => '/admin/exporters',
    'exporters, the last ones': ({ late }) => `/admin/exporters?after=${late}`,
    'an exporter': ({ exporter }) => `/admin/exporters/${exporter}`,
    'its form': ({ exporter }) => `/admin/exporters/${exporter}/edit`,
    deliveries: () => '/admin/deliveries',
    'deliveries, in the middle': ({ middle }) => `/admin/deliveries?after=${middle}`,
    'of an exporter': ({ exporter }) => `/admin/deliveries?exporterId=${exporter}`,
    'given up': () => '/admin/deliveries?state=exhausted',
    'waiting, of an exporter': ({ exporter }) => `/admin/deliveries?state=pending&exporterId=${exporter}`,
    'of an outcome': () => '/admin/deliveries?outcome=server_error',
    'of a rare outcome': () => '/admin/deliveries?outcome=gone',
    'of a kind': () => '/admin/deliveries?kind=idr_investigation_created',
    'of a rare kind': () => '/admin/deliveries?kind=test',
    'of an event': ({ event }) => `/admin/deliveries?eventId=${event}`,
    'of a day': () => `/admin/deliveries?since=${dayAgo(10)}&until=${dayAgo(9)}`,
    'a delivery': ({ delivery }) => `/admin/deliveries/${delivery}`,
    activity: () => '/admin/deliveries/activity',
    'activity of an exporter': ({ exporter }) => `/admin/deliveries/activity?exporterId=${exporter}`,
    replays: () => '/admin/deliveries/replays',
    audit: () => '/admin/audit',
    'exporters of an owner': () => '/webhooks/exporters',
    'deliveries of an owner': () => '/webhooks/deliveries',
    'activity of an owner': () => '/webhooks/deliveries/activity',
};

const FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    Object.keys(PAGES).map((name) => [name, { label: `${name} p95, ms`, digits: 1, bar: '≤ 100' }]),
);

/** How long the pages of the screens take, when there is much to show. */
export const screens: Section = {
    name: 'screens',
    discarded: 0,
    mostRounds: 1,
    onRequest: true,

    async open({ scale }) {
        const [exporters, deliveries] = [Math.ceil(EXPORTERS * scale), Math.ceil(DELIVERIES * scale)];
        const title = `pages of ${exporters.toLocaleString('en')} exporters and ${deliveries.toLocaleString('en')} deliveries, PostgreSQL`;
        return { measurements: [{ title, figures: FIGURES, scanwire: async (checkout) => looked(checkout, exporters, deliveries) }] };
    },
};

function looked(checkout: Checkout, exporters: number, deliveries: number): Run {
    return async () => {
        const store = await emptyStore({ database: true });
        const url = String(store.urls.DATABASE_URL);
        const pool = new pg.Pool({ connectionString: url, max: 1 });
        const host = await background(checkout, 'screens', { args: [url, String(exporters)] });
        try {
            await fill(pool, deliveries);
            return await lookAt(`http://127.0.0.1:${host.firstLine}`, await knownOf(pool));
        } finally {
            await host.stop();
            await pool.end();
            await store.remove();
        }
    };
}

async function fill(pool: pg.Pool, deliveries: number): Promise<void> {
    await pool.query(`update scanwire.exporters set state = 'running'`);
    for (let done = 0; done < deliveries; done += AT_ONCE) {
        const count = Math.min(AT_ONCE, deliveries - done);
        await pool.query(DONE, [count, done / deliveries, count / deliveries, DAYS]);
    }
    await pool.query('vacuum analyze');
}

async function knownOf(pool: pg.Pool): Promise<Known> {
    const { rows } = await pool.query<Known>(KNOWN);
    return rows[0] as Known;
}

async function lookAt(origin: string, known: Known): Promise<Figures> {
    const figures: Record<string, number> = {};
    for (const [name, pathOf] of Object.entries(PAGES)) {
        const times: number[] = [];
        // The first ones make connections and plans.
        for (let look = -5; look < LOOKS; look += 1) {
            const took = await timed(origin + pathOf(known));
            if (look >= 0) {
                times.push(took);
            }
        }
        figures[name] = percentilesOf(times).p95 ?? Number.NaN;
    }
    return figures;
}

/** Milliseconds until the whole page is there. */
async function timed(url: string): Promise<number> {
    const begun = performance.now();
    const { statusCode, body } = await request(url);
    const text = await body.text();
    if (statusCode !== 200 || !text.includes('</html>')) {
        throw new Error(`${url} was answered with ${statusCode}: ${text.slice(0, 500)}`);
    }
    return performance.now() - begun;
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
    json_build_object('code', k.last_code, 'detail', null, 'timings', json_build_object('total', 5))
from kept k`;

const KNOWN = `
select
    d.exporter_id as exporter, d.id as delivery, d.event_id as event,
    (select m.id from scanwire.deliveries m where m.seq >= (select (min(s.seq) + max(s.seq)) / 2 from scanwire.deliveries s) order by m.seq limit 1) as middle,
    (select e.id from scanwire.exporters e order by e.seq offset (select count(*) * 9 / 10 from scanwire.exporters) limit 1) as late
from scanwire.deliveries d
order by d.seq desc
limit 1`;
