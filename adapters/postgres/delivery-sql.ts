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
 * `$1` is a JSON array of `{ index, id, kind, body, created_at, types, exporter_id }`, one of the last two being null.
 */
export const ACCEPT = `
with input as materialized (
    select i.* from json_to_recordset($1::json) as i (
        index integer, id uuid, kind text, body text, created_at timestamptz, types text[], exporter_id uuid
    )
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
    select i.index, i.id as event_id, i.created_at, i.exporter_id is not null as single, e.id as exporter_id, e.seq, e.collector
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
    select i.id, i.kind, i.body, i.created_at
    from input i
    join verdict on not missing and not duplicate
),
new_deliveries as (
    insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector)
    select t.event_id, t.exporter_id, t.created_at, case when t.single then 0 else 1 end, t.collector
    from targets t
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

/** `$1` now, `$2` window, `$3` failures from which an exporter is probed only, `$4` limit. */
export const DISPATCH = 'select delivery_id as "deliveryId", collector, attempt from scanwire.dispatch_deliveries($1, $2, $3, $4)';

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
    set state = 'pending', priority = least(d.priority, 1), round = 0, due_at = $2, finished_at = null
    from exporter e
    where d.id = $1 and d.exporter_id = e.id and d.state in ('delivered', 'exhausted')
    returning d.*
)
select ${DELIVERY_COLUMNS}
from replayed d
join exporter e on e.id = d.exporter_id
join scanwire.events v on v.id = d.event_id`;

/** Which of the partial indexes holds the deliveries of a state, as the column `stage` says. */
export const STAGES: { readonly [State in DeliveryState]: string } = {
    pending: 'waiting',
    queued: 'in flight',
    sending: 'in flight',
    delivered: 'delivered',
    exhausted: 'failed',
    cancelled: 'failed',
};

/**
 * Claims attempts. The open attempt is the delivery row itself, so that a claim writes one row, and no index.
 *
 * `$1` is a JSON array of `{ index, id, token, at, expires_at }`. Here and wherever several deliveries are locked with waiting,
 * this happens in the order of their ids, so that two callers never wait for each other.
 */
export const CLAIM: string = `
with requests as (
    select distinct on (r.id) r.*
    from json_to_recordset($1::json) as r (index integer, id uuid, token text, at timestamptz, expires_at timestamptz)
    order by r.id, r.index
),
found as materialized (
    select r.*, d.priority = 0 as single, d.priority = 0 or e.state = 'running' as claimed
    from requests r
    join scanwire.deliveries d on d.id = r.id
    join scanwire.exporters e on e.id = d.exporter_id
    where d.state = 'queued'
    order by d.id
    for update of d
),
moved as (
    update scanwire.deliveries d
    set
        state = case when f.claimed then 'sending' else 'pending' end,
        attempts = d.attempts + f.claimed::integer,
        round = d.round + f.claimed::integer,
        token = case when f.claimed then f.token end,
        claimed_at = case when f.claimed then f.at end,
        claim_expires_at = case when f.claimed then f.expires_at end
    from found f
    where d.id = f.id
    returning f.index, f.claimed, f.token, f.single, d.id, d.event_id, d.exporter_id, d.attempts, d.round
)
select
    m.index,
    m.id as "deliveryId",
    m.token,
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
    readonly eventId: string;
    readonly kind: string;
    readonly body: string;
    readonly eventCreatedAt: Time;
}

/** The outcomes of `$1`; `outcome` is the text of its JSON, which may hold what `jsonb` refuses. */
const OUTCOMES = `
    select s.* from json_to_recordset($1::json) as s (
        index integer, id uuid, exporter_id uuid, token text, finished_at timestamptz, code text, outcome text,
        state text, due_at timestamptz, health text, probe_at timestamptz, stop_reason text
    )`;

/**
 * Records the outcomes of those who still hold their claims, and returns their indexes.
 *
 * An exporter is written only when its health changes; it is locked before the deliveries, in the order in which a removal
 * locks them. `held` is what a claim's holder may change: the lock makes sure that it still is the holder.
 */
export const RECORD_OUTCOMES: string = `
with outcomes as materialized (${OUTCOMES}
),
exporters_first as materialized (
    select e.id
    from scanwire.exporters e
    join (
        select
            s.exporter_id,
            bool_or(s.health = 'failure' or s.stop_reason is not null) as failed,
            bool_or(s.health = 'success') as succeeded
        from outcomes s
        group by s.exporter_id
    ) s on s.exporter_id = e.id
    where s.failed or (s.succeeded and e.consecutive_failures > 0)
    order by e.id
    for no key update of e
),
held as materialized (
    select s.*, d.attempts, d.claimed_at
    from (select distinct on (s.id, s.token) s.* from outcomes s order by s.id, s.token, s.index) s
    join scanwire.deliveries d on d.id = s.id
    where d.state = 'sending' and d.token = s.token and (select count(*) from exporters_first) >= 0
    order by d.id
    for update of d
),
moved as (
    update scanwire.deliveries d
    set
        state = h.state,
        due_at = coalesce(h.due_at, d.due_at),
        priority = case when h.state = 'pending' and d.priority > 0 then 2 else d.priority end,
        finished_at = case when h.state <> 'pending' then h.finished_at end,
        last_code = h.code,
        token = null,
        claim_expires_at = null
    from held h
    where d.id = h.id
),
recorded as (
    insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
    select h.id, h.attempts, h.claimed_at, h.finished_at, h.token, false, h.outcome::json
    from held h
),
health as (
    select
        h.exporter_id,
        max(h.last_success) is not null as recovered,
        (count(*) filter (where h.failed))::integer as failures,
        (array_agg(h.probe_at order by h.index desc) filter (where h.failed and h.probe_at is not null))[1] as probe_at
    from (
        select s.*, s.health = 'failure' and s.index > coalesce(s.last_success, -1) as failed
        from (
            select h.*, max(h.index) filter (where h.health = 'success') over (partition by h.exporter_id) as last_success
            from held h
        ) s
    ) h
    group by h.exporter_id
),
stops as (
    select distinct on (h.exporter_id) h.exporter_id, h.stop_reason, h.finished_at
    from held h
    where h.stop_reason is not null
    order by h.exporter_id, h.index
),
exporters_after as (
    update scanwire.exporters e
    set
        consecutive_failures = h.failures + case when h.recovered then 0 else e.consecutive_failures end,
        probe_at = coalesce(h.probe_at, case when not h.recovered then e.probe_at end),
        state = case when s.exporter_id is null then e.state else 'stopped' end,
        stop_reason = case when e.state = 'running' and s.exporter_id is not null then s.stop_reason else e.stop_reason end,
        updated_at = case when e.state = 'running' and s.exporter_id is not null then s.finished_at else e.updated_at end
    from health h
    left join stops s on s.exporter_id = h.exporter_id
    where e.id = h.exporter_id and (h.failures > 0 or s.exporter_id is not null or (h.recovered and e.consecutive_failures > 0))
)
select h.index from held h`;

/**
 * Completes attempts whose claims were taken away before. A statement of its own, so that it sees what the one that took the
 * claim away has committed in the meantime.
 */
export const RECORD_LATE_OUTCOMES: string = `
update scanwire.attempts a
set finished_at = s.finished_at, outcome = s.outcome::json, late = true
from (${OUTCOMES}
) s
where a.delivery_id = s.id and a.token = s.token and a.lost and not a.late`;

/**
 * Takes claims away that ran out, and renews and returns jobs that were queued too long ago. Rows that somebody else is changing
 * now need no sweeping. `$1` is now, `$2` the time before which a job counts as lost, `$3` how many of each kind, `$4` the outcome
 * of an interrupted attempt.
 */
export const SWEEP = `
with expired as materialized (
    select d.id, d.token, d.claimed_at, d.attempts from scanwire.deliveries d
    where d.stage = 'in flight' and d.state = 'sending' and d.claim_expires_at <= $1::timestamptz
    order by d.claim_expires_at
    limit $3::integer
    for update skip locked
),
interrupted as (
    update scanwire.deliveries d
    set
        state = case when d.priority = 0 then 'exhausted' else 'pending' end,
        due_at = $1::timestamptz,
        priority = case when d.priority = 0 then 0 else 2 end,
        finished_at = case when d.priority = 0 then $1::timestamptz end,
        last_code = $4::jsonb->>'code',
        token = null,
        claim_expires_at = null
    from expired x
    where d.id = x.id
),
recorded as (
    insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
    select x.id, x.attempts, x.claimed_at, $1::timestamptz, x.token, true, scanwire.interruption($4::jsonb, $1::timestamptz - x.claimed_at)
    from expired x
),
lost as materialized (
    select d.id from scanwire.deliveries d
    where d.stage = 'in flight' and d.state = 'queued' and d.queued_at < $2::timestamptz
    order by d.queued_at
    limit $3::integer
    for update skip locked
),
renewed as (
    update scanwire.deliveries d
    set queued_at = $1::timestamptz
    from lost l
    where d.id = l.id
    returning d.id, d.exporter_id, d.collector, d.attempts + 1 as attempt
)
select r.id as "deliveryId", coalesce(e.collector, r.collector) as collector, r.attempt
from renewed r
left join scanwire.exporters e on e.id = r.exporter_id`;
