import type { SqlMigration } from '../migrate.ts';

/**
 * Exporters, events, deliveries and attempts.
 *
 * A delivery is written four times on its way, and a million finished ones stay behind, so:
 * - The indexes that find work are partial, on `stage`: finished rows are in none of them. `stage` follows `state` but stays
 *   the same from `queued` to `sending`, and no index knows `state`; so a claim is a heap-only update.
 * - Pages keep room (`fillfactor`) for the next version of a row.
 * - The open attempt is part of its delivery; a row of `attempts` is written once, when the attempt is settled.
 * - No foreign keys: these statements write only rows that they found in the same statement, and each check would cost a lock.
 *
 * Texts from outside (`body`, `outcome`) are never stored as `jsonb`, which refuses some of what JSON allows and reorders keys.
 */
const sql = `
create table scanwire.exporters (
    id uuid primary key,
    seq bigint generated always as identity,
    name text not null,
    url text not null,
    collector text not null,
    type text not null,
    legacy boolean not null,
    trust text not null,
    signatures json not null,
    header_names json not null,
    state text not null,
    stop_reason text,
    consecutive_failures integer not null,
    probe_at timestamptz,
    sealed_secret text not null,
    sealed_previous_secret text,
    previous_secret_until timestamptz,
    sealed_headers text,
    schedule json,
    created_at timestamptz not null,
    updated_at timestamptz not null
) with (fillfactor = 50);

create table scanwire.events (
    id uuid primary key,
    kind text not null,
    body text not null,
    created_at timestamptz not null
);

create table scanwire.deliveries (
    id uuid primary key default gen_random_uuid(),
    seq bigint generated always as identity,
    event_id uuid not null,
    exporter_id uuid not null,
    due_at timestamptz not null,
    queued_at timestamptz,
    claimed_at timestamptz,
    claim_expires_at timestamptz,
    finished_at timestamptz,
    -- 0: a single attempt that is never retried, 1: first try of a round, 2: retry
    priority smallint not null,
    attempts integer not null default 0,
    round integer not null default 0,
    -- the exporter's at acceptance, for the time when the exporter is gone
    collector text not null,
    state text not null default 'pending'
        check (state in ('pending', 'queued', 'sending', 'delivered', 'exhausted', 'cancelled')),
    stage text not null generated always as (
        case state
            when 'pending' then 'waiting'
            when 'queued' then 'in flight'
            when 'sending' then 'in flight'
            when 'delivered' then 'delivered'
            else 'failed'
        end
    ) stored,
    token text,
    last_code text
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

create index deliveries_waiting on scanwire.deliveries (exporter_id, priority, due_at, seq) where stage = 'waiting';
create index deliveries_in_flight on scanwire.deliveries (exporter_id) where stage = 'in flight';
create index deliveries_failed on scanwire.deliveries (seq) where stage = 'failed';
create index deliveries_seq on scanwire.deliveries (seq);
create index deliveries_exporter on scanwire.deliveries (exporter_id, seq);

create table scanwire.attempts (
    delivery_id uuid not null,
    number integer not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    token text not null,
    -- the claim was taken away before its holder had settled it
    lost boolean not null,
    -- and yet the holder told the outcome afterwards
    late boolean not null default false,
    outcome json not null,
    primary key (delivery_id, number)
);

-- The outcome of an attempt whose claim was taken away after this time.
create function scanwire.interruption(outcome jsonb, elapsed interval)
returns json
language sql
immutable
as $$
    select jsonb_set(outcome, '{timings,total}', to_jsonb(greatest(0, round(extract(epoch from elapsed) * 1000))::bigint))::json
$$;

-- The earliest due time of each exporter's pending deliveries of each priority: one step in an index per row of the answer,
-- however many deliveries wait.
create view scanwire.earliest_due as
with recursive step (exporter_id, priority, due_at) as (
    (
        select d.exporter_id, d.priority, d.due_at from scanwire.deliveries d
        where d.stage = 'waiting'
        order by d.exporter_id, d.priority, d.due_at
        limit 1
    )
    union all
    select d.exporter_id, d.priority, d.due_at
    from step
    cross join lateral (
        select d.exporter_id, d.priority, d.due_at from scanwire.deliveries d
        where d.stage = 'waiting' and (d.exporter_id, d.priority) > (step.exporter_id, step.priority)
        order by d.exporter_id, d.priority, d.due_at
        limit 1
    ) d
)
select exporter_id, priority, due_at from step;

-- Removes an exporter and cancels its unfinished deliveries. A function for the same reason as the one below: 'accept' locks the
-- exporters that it writes for, so when the delete has got through, the next statement sees every delivery there will ever be.
create function scanwire.remove_exporter(removed uuid, at timestamptz, interruption jsonb)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    last_collector text;
begin
    delete from scanwire.exporters e where e.id = removed returning e.collector into last_collector;
    if not found then
        return false;
    end if;

    with unfinished as materialized (
        select d.id, d.state = 'sending' as claimed, d.token, d.claimed_at, d.attempts from scanwire.deliveries d
        where d.state in ('pending', 'queued', 'sending') and d.id in (
            select w.id from scanwire.deliveries w where w.stage = 'waiting' and w.exporter_id = removed
            union all
            select f.id from scanwire.deliveries f where f.stage = 'in flight' and f.exporter_id = removed
        )
        order by d.id
        for update
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select u.id, u.attempts, u.claimed_at, at, u.token, true, scanwire.interruption(interruption, at - u.claimed_at)
        from unfinished u
        where u.claimed
    )
    update scanwire.deliveries d
    set
        state = 'cancelled',
        collector = last_collector,
        finished_at = at,
        token = null,
        claim_expires_at = null,
        last_code = case when u.claimed then interruption->>'code' else d.last_code end
    from unfinished u
    where d.id = u.id;
    return true;
end
$$;

-- Marks due deliveries queued, as DeliveryStore.dispatch says. A function, because it needs two snapshots in one round trip:
-- only one dispatcher at a time may count a window and fill it, and the statement after the lock sees what the one before has
-- committed. It waits rather than tries: whoever is turned away may be the only one who saw an event that was just accepted.
-- Its plans are kept, perhaps from a time when the tables were empty: hence indexes only.
create function scanwire.dispatch_deliveries(at timestamptz, max_in_flight integer, breaker_after integer, max_rows integer)
returns table (delivery_id uuid, collector text, attempt integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('scanwire.dispatch_deliveries', 0));

    return query
    with due_classes as materialized (
        select w.exporter_id, w.priority from scanwire.earliest_due w where w.due_at <= at
    ),
    rooms as materialized (
        select
            e.id,
            e.collector,
            max_in_flight - flying.count as room,
            case
                when e.state <> 'running' then 0
                when e.consecutive_failures < breaker_after then max_in_flight - flying.count
                when e.probe_at > at then 0
                else 1 - flying.count
            end as ordinary_room
        from (select distinct c.exporter_id from due_classes c) due
        join scanwire.exporters e on e.id = due.exporter_id
        cross join lateral (
            select count(*)::integer as count from scanwire.deliveries d
            where d.stage = 'in flight' and d.exporter_id = e.id
        ) flying
    ),
    ranked as (
        select
            r.collector,
            d.*,
            case d.priority when 0 then r.room else r.ordinary_room end as room,
            row_number() over (partition by r.id order by d.priority, d.due_at, d.seq) as rank
        from rooms r
        join due_classes c on c.exporter_id = r.id
        cross join lateral (
            select d.id, d.priority, d.due_at, d.seq from scanwire.deliveries d
            where d.stage = 'waiting' and d.exporter_id = r.id and d.priority = c.priority and d.due_at <= at
            order by d.due_at, d.seq
            limit greatest(0, least(max_rows, case c.priority when 0 then r.room else r.ordinary_room end))
        ) d
    ),
    -- exporters take turns, so that under a small limit the longest backlog does not take it all
    picked as materialized (
        select r.id, r.collector, row_number() over (order by r.priority > 0, r.rank, r.priority, r.due_at, r.seq) as place
        from ranked r
        where r.rank <= r.room
        order by place
        limit max_rows
    ),
    -- A row that somebody is changing now is being cancelled with its exporter. It is found by its key, so 'state' and not
    -- 'stage' here: after a quiet time the planner takes the index of waiting rows for empty, and would walk all of it per row.
    free as materialized (
        select d.id, p.collector, p.place from picked p join scanwire.deliveries d on d.id = p.id
        where d.state = 'pending'
        for update of d skip locked
    ),
    queued as (
        update scanwire.deliveries d
        set state = 'queued', queued_at = at
        from free f
        where d.id = f.id
        returning d.id, f.collector, d.attempts + 1 as attempt, f.place
    )
    select q.id, q.collector, q.attempt from queued q order by q.place;
end
$$;
`;

export const webhooks: SqlMigration = { id: '0002-webhooks', sql };
