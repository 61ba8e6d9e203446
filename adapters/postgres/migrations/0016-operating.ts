import type { Migration } from '../migrate.ts';

/**
 * Exporters that somebody has paused.
 *
 * Processes of the version before heed it too: what is sent is decided by these functions.
 */
const sql = `
alter table scanwire.exporters add column paused_at timestamptz;

-- Who has read its settings with a claim reads them once more.
create trigger exporters_pause_generation
before update on scanwire.exporters
for each row
when (old.paused_at is distinct from new.paused_at)
execute function scanwire.next_generation();

-- The time for which it was paused is none for which it failed.
create function scanwire.resume_exporter()
returns trigger
language plpgsql
as $$
begin
    new.failing_since := new.failing_since + (scanwire.now() - old.paused_at);
    return new;
end
$$;

create trigger exporters_resumed
before update on scanwire.exporters
for each row
when (old.paused_at is not null and new.paused_at is null)
execute function scanwire.resume_exporter();

-- How much room exporters have, as poolsOf and the breaker say: one rule for acceptance and dispatch. Besides the candidates, all that
-- have deliveries in flight take part in the shares.
create or replace function scanwire.rooms_of(
    candidates uuid[], at timestamptz, max_in_flight integer, breaker_after integer, default_slots integer, slow_after double precision
)
returns table (
    exporter_id uuid, collector text, generation integer,
    -- whether it needs no probe, has no slow start and is not left alone
    steady boolean,
    slow boolean, flying integer, singles integer, retries integer, own_window integer, share integer,
    -- of all exporters that share its places
    pool_room integer
)
language plpgsql
stable
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    return query
    with flying as materialized (
        select
            d.exporter_id,
            count(*)::integer as count,
            (count(*) filter (where d.priority = 0))::integer as singles,
            (count(*) filter (where d.priority = 2))::integer as retries,
            coalesce(bool_or(d.state = 'sending' and d.claimed_at < at - slow_after * interval '1 millisecond'), false) as late
        from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
        group by d.exporter_id
    ),
    slots as materialized (
        select s.key as collector, sum(s.value::integer)::integer as count
        from scanwire.worker_sessions w
        cross join lateral json_each_text(w.slots) s
        where w.alive_until > at
        group by s.key
    ),
    sharers as (
        select
            e.id,
            e.collector,
            e.generation,
            e.state = 'running' and e.paused_at is null and e.paused_until is null and e.consecutive_failures < breaker_after and e.slow_start is null as steady,
            e.answers_slowly or coalesce(f.late, false) as slow,
            coalesce(f.count, 0) as flying,
            coalesce(f.singles, 0) as singles,
            coalesce(f.retries, 0) as retries,
            coalesce(s.count, default_slots) as slots,
            case
                when e.state <> 'running' or e.paused_at is not null then 0
                when e.paused_until > at then 0
                when e.paused_until is null and e.consecutive_failures < breaker_after
                    then least(max_in_flight, coalesce(e.slow_start, max_in_flight))
                when e.probe_at > at then 0
                else 1
            end as own_window
        from (select unnest(candidates) as exporter_id union select f.exporter_id from flying f) x
        join scanwire.exporters e on e.id = x.exporter_id
        left join flying f on f.exporter_id = e.id
        left join slots s on s.collector = e.collector
    ),
    -- Slow exporters share half of the slots, quick ones what the slow ones do not hold, and as much again.
    pools as (
        select
            s.*,
            case when s.slow then greatest(1, s.slots / 2) else 2 * s.slots - coalesce(sum(s.flying) filter (where s.slow) over of_collector, 0) end as capacity,
            sum(s.flying) over of_pool as pool_flying,
            count(*) filter (where s.own_window > 0 or s.flying > 0) over of_pool as pool_size
        from sharers s
        window of_collector as (partition by s.collector), of_pool as (partition by s.collector, s.slow)
    )
    select
        p.id, p.collector, p.generation, p.steady, p.slow, p.flying, p.singles, p.retries, p.own_window,
        least(p.own_window, greatest(1, p.capacity / greatest(1, p.pool_size)))::integer,
        (p.capacity - p.pool_flying)::integer
    from pools p;
end
$$;

-- As before, and of one that is paused nothing is claimed.
create or replace function scanwire.claim_attempts(requests json, claiming uuid, max_bytes bigint)
returns table (
    index integer, "end" integer, delivery_id uuid, token text, claimed_at timestamptz, attempt integer, round integer, single boolean,
    event_id uuid, exporter_id uuid
)
language plpgsql
rows 1
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at timestamptz := scanwire.now();
    current boolean := not exists (
        select from scanwire.worker_sessions s
        join scanwire.deployment p on p.generation <> s.generation
        where s.id = claiming
    );
begin
    return query
    with asked as materialized (
        select distinct on (r.id) r.*
        from json_to_recordset(requests) as r (index integer, id uuid, token text, duration double precision, "grant" text, holds boolean)
        order by r.id, r.index
    ),
    queued as materialized (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where not a.holds and d.state = 'queued' and (d.token is null or d.token = a."grant")
        order by d.id
        for update of d
    ),
    held as (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where a.holds and d.state = 'queued' and d.token = a."grant"
    ),
    found as materialized (
        select
            a.*, a.priority = 0 as single, octet_length(coalesce(m.body, v.body)) as bytes,
            current and (a.priority = 0 or (e.state = 'running' and e.paused_at is null)) as claimed
        from (select q.* from queued q union all select h.* from held h) a
        join scanwire.events v on v.id = a.event_id
        join scanwire.exporters e on e.id = a.exporter_id
        left join scanwire.delivery_messages m on m.delivery_id = a.id
    ),
    first_beyond as materialized (
        select min(s.index) as index
        from (select f.index, f.bytes, sum(f.bytes) over (order by f.index) as total from found f where f.claimed) s
        where s.total > max_bytes and s.total > s.bytes
    ),
    moved as (
        update scanwire.deliveries d
        set
            state = case when f.claimed then 'sending' else 'pending' end,
            attempts = d.attempts + f.claimed::integer,
            round = d.round + f.claimed::integer,
            token = case when f.claimed then f.token end,
            -- what was taken back and goes back again has still not been claimed
            begin_by = case when not f.claimed and d.token is null then d.begin_by end,
            session = case when f.claimed then claiming end,
            claimed_at = case when f.claimed then at end,
            claim_expires_at = case when f.claimed then at + f.duration * interval '1 millisecond' end
        from found f
        join first_beyond b on b.index is null or f.index < b.index
        where d.id = f.id and not f.holds
    )
    select f.index, b.index, f.id, case when f.holds then f."grant" else f.token end, at, f.attempts + 1, f.round + 1, f.single, f.event_id, f.exporter_id
    from found f
    join first_beyond b on b.index is null or f.index < b.index
    where f.claimed;
end
$$;
`;

export const operating: Migration = { id: '0016-operating', sql };
