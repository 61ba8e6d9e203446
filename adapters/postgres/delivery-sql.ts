import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import type { Claim, DeliveryState } from '../../lib/webhooks/store.ts';
import type { Row, Time } from './database.ts';
import { EXPORTER_COLUMNS } from './exporters.ts';

/** A `Delivery` of deliveries `d`, their events `v` and, where they still exist, exporters `e`. */
export const DELIVERY_COLUMNS = `d.id, d.event_id as "eventId", v.kind, d.exporter_id as "exporterId",
    coalesce(e.collector, d.collector) as collector, d.state, d.attempts, d.due_at as "dueAt", v.created_at as "createdAt",
    d.finished_at as "finishedAt", d.last_code as "lastCode"`;

/**
 * Stores events with their deliveries, or nothing when an exporter is missing or an event id was accepted before: a refusal,
 * unlike an error, leaves the application's transaction usable. The exporters stay locked against removal until the deliveries are
 * committed.
 *
 * `$1` is a JSON array of `{ index, id, kind, body, types, exporter_id }`, one of the last two being null. It is a text first, since the
 * application's driver may turn whatever is to be `json` into JSON once more.
 */
export const ACCEPT = `
with input as materialized (
    select i.* from json_to_recordset($1::text::json) as i (
        index integer, id uuid, kind text, body text, types text[], exporter_id uuid
    )
),
clock as materialized (
    select scanwire.now() as at
),
addressed as materialized (
    select e.id, e.seq, e.collector, e.type, e.state from scanwire.exporters e
    where
        (e.state = 'running' and e.type in (select unnest(i.types) from input i))
        or e.id in (select i.exporter_id from input i)
    order by e.id
    for key share
),
targets as materialized (
    select i.index, i.id as event_id, i.exporter_id is not null as single, e.id as exporter_id, e.seq, e.collector
    from input i
    join addressed e on e.id = i.exporter_id or (i.exporter_id is null and e.state = 'running' and e.type = any (i.types))
),
verdict as materialized (
    select
        exists (
            select from input i
            where i.exporter_id is not null and not exists (select from targets t where t.index = i.index)
        ) as missing,
        exists (select from scanwire.events v join input i on i.id = v.id)
            or (select count(*) > count(distinct i.id) from input i) as duplicate
),
new_events as (
    insert into scanwire.events (id, kind, body, created_at)
    select i.id, i.kind, i.body, clock.at
    from input i
    cross join clock
    join verdict on not missing and not duplicate
),
new_deliveries as (
    insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector)
    select t.event_id, t.exporter_id, clock.at, case when t.single then 0 else 1 end, t.collector
    from targets t
    cross join clock
    join verdict on not missing and not duplicate
    order by t.index, t.seq
    returning id, seq, event_id
)
select
    verdict.missing,
    verdict.duplicate,
    i.id as "eventId",
    coalesce(json_agg(d.id order by d.seq) filter (where d.id is not null), '[]') as deliveries
from input i
cross join verdict
left join new_deliveries d on d.event_id = i.id
group by i.index, i.id, verdict.missing, verdict.duplicate
order by i.index`;

/** One event of {@link ACCEPT}, or why none was stored. */
export interface AcceptedRow {
    readonly missing: boolean;
    readonly duplicate: boolean;
    readonly eventId: string;
    readonly deliveries: readonly string[];
}

const DISPATCHED = 'delivery_id as "deliveryId", collector, attempt, single as "singleAttempt"';

/**
 * `$1` window, `$2` failures from which an exporter is probed only, `$3` limit, `$4` slots of a collector whose workers are not known, `$5`
 * milliseconds from which on an attempt is slow.
 */
export const DISPATCH: string = `select ${DISPATCHED} from scanwire.dispatch_deliveries($1, $2, $3, $4, $5)`;

/**
 * `$1` milliseconds after which a job counts as lost, `$2` how many of each kind, `$3` claims in a row, `$4` outcome of those that ran
 * out, `$5` whether only claims of ended sessions count.
 */
export const SWEEP: string = `select ${DISPATCHED} from scanwire.sweep_deliveries($1 * interval '1 millisecond', $2, $3, $4, $5)`;

/** `$1` is a JSON array of outcomes, `$2` the rules of the breaker, `$3` the outcome of who sends what was delivered already. */
export const RECORD_OUTCOMES = 'select record_outcomes as index from scanwire.record_outcomes($1, $2, $3)';

/** `$1` is the id of a delivery. */
export const GET: string = `
select ${DELIVERY_COLUMNS}
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.exporters e on e.id = d.exporter_id
where d.id = $1`;

/** An open attempt is part of its delivery; those that have ended have rows. */
export const ATTEMPTS = `
select a.number, a.started_at as "startedAt", a.finished_at as "finishedAt", a.outcome, a.late
from scanwire.attempts a
where a.delivery_id = $1
union all
select d.attempts, d.claimed_at, null, null, false
from scanwire.deliveries d
where d.id = $1 and d.state = 'sending'
order by number`;

/** The exporter is locked against removal, as in `accept`. */
export const REPLAY: string = `
with exporter as materialized (
    select e.id, e.collector from scanwire.exporters e
    where e.id = (select d.exporter_id from scanwire.deliveries d where d.id = $1)
    for key share
),
replayed as (
    update scanwire.deliveries d
    set
        state = 'pending',
        priority = least(d.priority, 1),
        round = 0,
        faults = 0,
        expired_claims = 0,
        due_at = scanwire.now(),
        finished_at = null
    from exporter e
    where d.id = $1 and d.exporter_id = e.id and d.state in ('delivered', 'exhausted', 'poisoned')
    returning d.*
)
select ${DELIVERY_COLUMNS}
from replayed d
join exporter e on e.id = d.exporter_id
join scanwire.events v on v.id = d.event_id`;

/** `$1` id, `$2` process, `$3` slots, `$4` milliseconds, `$5` generation of the settings, or null. */
export const KEEP_ALIVE = `
insert into scanwire.worker_sessions as s (id, process, slots, alive_until, generation)
values ($1, $2, $3, scanwire.now() + $4 * interval '1 millisecond', $5)
on conflict (id) do update
set slots = excluded.slots, alive_until = excluded.alive_until, generation = excluded.generation`;

/** Which of the partial indexes holds the deliveries of a state, as the column `stage` says. */
export const STAGES: { readonly [State in DeliveryState]: string } = {
    pending: 'waiting',
    queued: 'in flight',
    sending: 'in flight',
    delivered: 'delivered',
    exhausted: 'failed',
    poisoned: 'failed',
    cancelled: 'failed',
};

/**
 * Claims attempts. The open attempt is the delivery row itself, so that a claim writes one row, and no index.
 *
 * `$1` is a JSON array of `{ index, id, token, duration }`, `$2` the session, or null, `$3` the bytes that all bodies together may
 * have, or null. Here and wherever several deliveries are locked with waiting, this happens in the order of their ids, so that two
 * callers never wait for each other.
 */
export const CLAIM: string = `
with requests as (
    select distinct on (r.id) r.*
    from json_to_recordset($1::json) as r (index integer, id uuid, token text, duration double precision)
    order by r.id, r.index
),
clock as materialized (
    select
        scanwire.now() as at,
        not exists (
            select from scanwire.worker_sessions s
            join scanwire.deployment p on p.generation <> s.generation
            where s.id = $2::uuid
        ) as current
),
found as materialized (
    select
        r.*,
        d.priority = 0 as single,
        clock.current and (d.priority = 0 or e.state = 'running') as claimed,
        octet_length(v.body) as bytes
    from requests r
    cross join clock
    join scanwire.deliveries d on d.id = r.id
    join scanwire.events v on v.id = d.event_id
    join scanwire.exporters e on e.id = d.exporter_id
    where d.state = 'queued'
    order by d.id
    for update of d
),
first_beyond as materialized (
    select min(s.index) as index
    from (select f.index, f.bytes, sum(f.bytes) over (order by f.index) as total from found f where f.claimed) s
    where s.total > $3::bigint and s.total > s.bytes
),
moved as (
    update scanwire.deliveries d
    set
        state = case when f.claimed then 'sending' else 'pending' end,
        attempts = d.attempts + f.claimed::integer,
        round = d.round + f.claimed::integer,
        token = case when f.claimed then f.token end,
        session = case when f.claimed then $2::uuid end,
        claimed_at = case when f.claimed then clock.at end,
        claim_expires_at = case when f.claimed then clock.at + f.duration * interval '1 millisecond' end
    from found f
    join first_beyond b on b.index is null or f.index < b.index
    cross join clock
    where d.id = f.id
    returning f.index, b.index as "end", f.claimed, f.token, f.single, d.id, d.event_id, d.exporter_id, d.attempts, d.round, d.claimed_at
)
select
    m.index,
    m."end",
    m.id as "deliveryId",
    m.token,
    m.claimed_at as "claimedAt",
    m.attempts as attempt,
    m.round as "attemptSinceReplay",
    m.single as "singleAttempt",
    v.id as "eventId",
    v.kind,
    v.body,
    v.created_at as "eventCreatedAt",
    ${EXPORTER_COLUMNS}
from moved m
join scanwire.events v on v.id = m.event_id
join scanwire.exporters e on e.id = m.exporter_id
where m.claimed`;

/** A claim of {@link CLAIM} beside its event and the columns of its exporter. */
export interface ClaimRow
    extends Row<StoredExporter>,
        Pick<Claim, 'deliveryId' | 'token' | 'attempt' | 'attemptSinceReplay' | 'singleAttempt'> {
    /** Of its request, from 0. */
    readonly index: number;
    /** The number of requests that were looked at; null for all. */
    readonly end: number | null;
    readonly eventId: string;
    readonly kind: string;
    readonly body: string;
    readonly claimedAt: Time;
    readonly eventCreatedAt: Time;
}
