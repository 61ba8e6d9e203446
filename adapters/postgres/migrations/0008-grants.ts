import type { Migration } from '../migrate.ts';

/**
 * Claims that a delivery is handed out with, so that who begins it in time claims nothing.
 *
 * Processes of the version before may go on working beside those of this one: columns are added with defaults that need no rewrite of a
 * table, and functions have names of their own.
 */
const sql = `
-- Of a delivery that is queued with a token: the time by which it must have begun. Without a token: that its claim was taken back, and
-- that it has not been claimed since.
alter table scanwire.deliveries add column begin_by timestamptz;

-- What the process had begun by then, and had taken longer than half a second, it has named.
alter table scanwire.worker_sessions add column spoken_at timestamptz;

-- How often what is sent to the receiver, or whether, has been changed.
alter table scanwire.exporters add column generation integer not null default 0;

create function scanwire.next_generation()
returns trigger
language plpgsql
as $$
begin
    new.generation := old.generation + 1;
    return new;
end
$$;

create trigger exporters_generation
before update on scanwire.exporters
for each row
when (
    (old.name, old.url, old.collector, old.type, old.trust, old.signatures::text, old.schedule::text, old.header_names::text, old.state,
        old.sealed_secret, old.previous_secrets::text, old.sealed_headers)
    is distinct from
    (new.name, new.url, new.collector, new.type, new.trust, new.signatures::text, new.schedule::text, new.header_names::text, new.state,
        new.sealed_secret, new.previous_secrets::text, new.sealed_headers)
)
execute function scanwire.next_generation();

-- Deliveries in flight are found from a mark on that only rises, so that no look passes what has landed since the last vacuum, or since a
-- snapshot was taken that somebody still reads with. Each gets a number when it is queued; the mark is the lowest that any of them may
-- have. Both are sequences, since these leave nothing behind when they change.
alter table scanwire.deliveries add column flight bigint not null default 0;
create sequence scanwire.flights;
create sequence scanwire.landed_flights minvalue 0 start 0;
select setval('scanwire.flights', 1);
grant select, update on sequence scanwire.flights, scanwire.landed_flights to public;

drop index scanwire.deliveries_in_flight;
create index deliveries_flights on scanwire.deliveries (flight) where stage = 'in flight';

-- The lock comes before the number: as long as it is held, here is somebody whose number may not be seen yet. Nobody ever waits for it.
create function scanwire.next_flight(reached bigint)
returns bigint
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtext('scanwire.flights'), (reached >> 8)::integer);
    return nextval('scanwire.flights');
end
$$;

-- A trigger, so that the version before does it too.
create function scanwire.number_flight()
returns trigger
language plpgsql
as $$
begin
    new.flight := scanwire.next_flight((select f.last_value from scanwire.flights f));
    return new;
end
$$;

create trigger deliveries_inserted_flight
before insert on scanwire.deliveries
for each row
when (new.state = 'queued')
execute function scanwire.number_flight();

create trigger deliveries_flight
before update of state on scanwire.deliveries
for each row
when (new.state = 'queued' and old.state <> 'queued')
execute function scanwire.number_flight();

-- Raises the mark. Those that stay in flight while hundreds of others come and go get new numbers, or one receiver that is slow would
-- hold it. Whoever sees the mark already raised and not yet the new number misses one that is in flight, until the next look.
create function scanwire.raise_mark_of_flights()
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    reached bigint := (select f.last_value from scanwire.flights f);
    mark bigint := (select l.last_value from scanwire.landed_flights l);
    unseen bigint;
    lowest bigint;
begin
    if reached <= mark or current_setting('transaction_isolation') <> 'read committed' then
        return;
    end if;

    -- The order matters: who has had no lock by now gets a number beyond 'reached', and what others commit before the next statement is seen by it.
    select min(l.objid::bigint) << 8 into unseen
    from pg_locks l
    where
        l.locktype = 'advisory' and l.classid = hashtext('scanwire.flights')::oid and l.objsubid = 2
        and l.database = (select d.oid from pg_database d where d.datname = current_database());
    select min(d.flight) into lowest from scanwire.deliveries d where d.stage = 'in flight' and d.flight >= mark;
    perform setval('scanwire.landed_flights', greatest(mark, least(reached + 1, unseen, lowest)));

    with slow as materialized (
        select d.id from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= mark and d.flight < reached - 200
        limit 1000
        for update skip locked
    )
    update scanwire.deliveries d
    set flight = scanwire.next_flight(reached)
    where d.id = any (array(select s.id from slow s));
end
$$;

-- The same of those that wait, for each exporter and priority: looks begin at this due time. Only a hint: every five seconds one dispatch
-- looks through all, and finds what has come to wait with an older time.
create table scanwire.waiting_marks (
    exporter_id uuid not null,
    priority smallint not null,
    due_from timestamptz not null,
    -- how many had been queued when it was written
    flight bigint not null,
    primary key (exporter_id, priority)
) with (fillfactor = 50);

-- When this was last done, in milliseconds since 1970.
create sequence scanwire.marks_raised minvalue 0 start 0;
grant select, update on sequence scanwire.marks_raised to public;

-- What the transactions of the application have accepted and not committed yet keeps the marks below it.
create function scanwire.hold_waiting_marks()
returns trigger
language plpgsql
as $$
begin
    perform pg_advisory_xact_lock_shared(hashtext('scanwire.waiting_marks'), floor(extract(epoch from new.due_at))::integer);
    return new;
end
$$;

create trigger deliveries_inserted_waiting
before insert on scanwire.deliveries
for each row
when (new.state = 'pending')
execute function scanwire.hold_waiting_marks();

-- Raises the marks to what is due first, or to the last second: what is accepted without a transaction of the application is then seen.
-- With 'through' they are lowered as well.
create function scanwire.raise_waiting_marks(at timestamptz, through boolean)
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    reached bigint := (select f.last_value from scanwire.flights f);
    uncommitted integer;
begin
    if not exists (select from scanwire.waiting_marks m where through or m.flight < reached) then
        return;
    end if;

    -- Before the next statement, which sees what the others have committed.
    select min(l.objid::bigint) into uncommitted
    from pg_locks l
    where
        l.locktype = 'advisory' and l.classid = hashtext('scanwire.waiting_marks')::oid and l.objsubid = 2
        and l.database = (select d.oid from pg_database d where d.datname = current_database());

    with earliest as materialized (
        select
            m.exporter_id,
            m.priority,
            least(
                at - interval '1 second',
                to_timestamp(uncommitted),
                (
                    select d.due_at from scanwire.deliveries d
                    where
                        d.stage = 'waiting' and d.exporter_id = m.exporter_id and d.priority = m.priority
                        and d.due_at >= case when through then '-infinity' else m.due_from end
                    order by d.due_at
                    limit 1
                )
            ) as due_from
        from scanwire.waiting_marks m
    )
    update scanwire.waiting_marks m
    set flight = reached, due_from = e.due_from
    from earliest e
    where
        m.exporter_id = e.exporter_id and m.priority = e.priority
        and (e.due_from < m.due_from or (e.due_from > m.due_from and m.flight < reached));

    if through then
        delete from scanwire.waiting_marks m where not exists (select from scanwire.exporters e where e.id = m.exporter_id);
    end if;
end
$$;

-- How much room exporters have, as poolsOf and the breaker say: one rule for acceptance and dispatch. Besides the candidates, all that
-- have deliveries in flight take part in the shares.
create function scanwire.rooms_of(
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
            e.state = 'running' and e.paused_until is null and e.consecutive_failures < breaker_after and e.slow_start is null as steady,
            e.answers_slowly or coalesce(f.late, false) as slow,
            coalesce(f.count, 0) as flying,
            coalesce(f.singles, 0) as singles,
            coalesce(f.retries, 0) as retries,
            coalesce(s.count, default_slots) as slots,
            case
                when e.state <> 'running' then 0
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

-- Stores events with their deliveries, as DeliveryStore.accept says, or nothing when an exporter is missing or an event id was accepted
-- before: a refusal, unlike an error, leaves the application's transaction usable. The exporters stay locked against removal until the
-- deliveries are committed.
--
-- 'events' is an array of { index, id, kind, body, types, exporter_id }, one of the last two being null. 'begin_within' is null when
-- nothing is to be handed out; else the first tries of exporters that have room, and none that waits, are queued with their claim.
create function scanwire.accept_events(
    events json, begin_within interval, max_in_flight integer, breaker_after integer, default_slots integer, slow_after double precision
)
returns table (missing boolean, duplicate boolean, event_id uuid, deliveries json)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    -- before anything is waited for, so that a claim never holds for longer after what was read with it
    at timestamptz := scanwire.now();
begin
    return query
    with input as materialized (
        select i.* from json_to_recordset(events) as i (index integer, id uuid, kind text, body text, types text[], exporter_id uuid)
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
        select
            i.index, i.id as event_id, i.exporter_id is not null as single, e.id as exporter_id, e.seq, e.collector,
            row_number() over (partition by e.id, i.exporter_id is not null order by i.index) as rank
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
    rooms as materialized (
        select r.exporter_id, r.generation, least(r.share - r.flying, r.pool_room) as places
        from scanwire.rooms_of((select array_agg(a.id) from addressed a), at, max_in_flight, breaker_after, default_slots, slow_after) r
        where
            begin_within is not null and r.steady and r.share > r.flying and r.pool_room > 0
            and not exists (
                select from (values (1::smallint), (2::smallint)) c (priority)
                cross join lateral (
                    select from scanwire.deliveries w
                    where
                        w.stage = 'waiting' and w.exporter_id = r.exporter_id and w.priority = c.priority and w.due_at <= at
                        and w.due_at >= coalesce(
                            (select m.due_from from scanwire.waiting_marks m where m.exporter_id = r.exporter_id and m.priority = c.priority),
                            '-infinity'
                        )
                    limit 1
                ) w
            )
    ),
    new_events as (
        insert into scanwire.events (id, kind, body, created_at)
        select i.id, i.kind, i.body, at
        from input i
        join verdict on not missing and not duplicate
    ),
    new_deliveries as (
        insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state, queued_at, token, begin_by)
        select
            t.event_id, t.exporter_id, at, case when t.single then 0 else 1 end, t.collector,
            case when g.granted then 'queued' else 'pending' end,
            case when g.granted then at end,
            case when g.granted then gen_random_uuid()::text end,
            case when g.granted then at + begin_within end
        from targets t
        join verdict on not missing and not duplicate
        left join rooms r on r.exporter_id = t.exporter_id
        cross join lateral (select not t.single and t.rank <= coalesce(r.places, 0) as granted) g
        order by t.index, t.seq
        returning id, seq, event_id, exporter_id, collector, token, begin_by
    )
    select
        verdict.missing,
        verdict.duplicate,
        i.id,
        coalesce(
            json_agg(
                json_build_object(
                    'id', d.id, 'exporterId', d.exporter_id, 'collector', d.collector, 'token', d.token,
                    'beginBy', extract(epoch from d.begin_by) * 1000, 'generation', r.generation,
                    'settings', coalesce((select p.generation from scanwire.deployment p), 0)
                )
                order by d.seq
            ) filter (where d.id is not null),
            '[]'
        )
    from input i
    cross join verdict
    left join new_deliveries d on d.event_id = i.id
    left join rooms r on r.exporter_id = d.exporter_id
    group by i.index, i.id, verdict.missing, verdict.duplicate
    order by i.index;
end
$$;

-- Marks due deliveries queued, as DeliveryStore.dispatch says, each with its claim. A function, because it needs two snapshots in one
-- round trip: only one dispatcher at a time may count a window and fill it, and the statement after the lock sees what the one before has
-- committed. It waits rather than tries: whoever is turned away may be the only one who saw an event that was just accepted.
-- Its plans are kept, perhaps from a time when the tables were empty: hence indexes only. The first row, without an id, says whether
-- deliveries of exporters that take any are left.
create function scanwire.hand_out_deliveries(
    max_in_flight integer, breaker_after integer, max_rows integer, default_slots integer, slow_after double precision, begin_within interval
)
returns table (
    delivery_id uuid, collector text, attempt integer, single boolean,
    exporter_id uuid, token text, begin_by timestamptz, generation integer, settings integer, round integer, more boolean
)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at timestamptz;
    -- the eighth of the time in which a window that is too small for it has a place for retries
    eighth integer;
    turn bigint;
    raised bigint;
    looks_through boolean;
begin
    perform pg_advisory_xact_lock(hashtextextended('scanwire.dispatch_deliveries', 0));
    at := scanwire.now();
    turn := floor(extract(epoch from at) * 1000);
    eighth := turn / 100 % 8;
    select l.last_value into raised from scanwire.marks_raised l;
    looks_through := turn / 5000 <> raised / 5000;
    if turn / 1000 <> raised / 1000 then
        perform scanwire.raise_waiting_marks(at, looks_through);
        perform setval('scanwire.marks_raised', greatest(0, turn));
    end if;

    return query
    with recursive stored as materialized (
        select m.exporter_id, m.priority, m.due_from from scanwire.waiting_marks m
    ),
    marks as materialized (
        select x.exporter_id, p.priority, coalesce(m.due_from, '-infinity') as due_from
        from (select distinct m.exporter_id from stored m where not looks_through) x
        cross join (values (0::smallint), (1::smallint), (2::smallint)) p (priority)
        left join stored m on m.exporter_id = x.exporter_id and m.priority = p.priority
    ),
    -- From each exporter that has marks to the next one. Not of rows: a comparison of rows ends no walk through an index in the second column.
    ranges as (
        select b.exporter_id, coalesce(lead(b.exporter_id) over (order by b.exporter_id), 'ffffffff-ffff-ffff-ffff-ffffffffffff') as to_exporter_id
        from (
            select distinct m.exporter_id from marks m
            union all
            select '00000000-0000-0000-0000-000000000000'
        ) b
    ),
    -- One step in the index for each exporter and priority, however many wait.
    unmarked as (
        select d.exporter_id, d.priority, d.due_at, r.to_exporter_id
        from ranges r
        cross join lateral (
            select d.exporter_id, d.priority, d.due_at from scanwire.deliveries d
            where d.stage = 'waiting' and d.exporter_id > r.exporter_id and d.exporter_id < r.to_exporter_id
            order by d.exporter_id, d.priority, d.due_at
            limit 1
        ) d
        union all
        select d.exporter_id, d.priority, d.due_at, u.to_exporter_id
        from unmarked u
        cross join lateral (
            select d.exporter_id, d.priority, d.due_at from scanwire.deliveries d
            where d.stage = 'waiting' and (d.exporter_id, d.priority) > (u.exporter_id, u.priority) and d.exporter_id < u.to_exporter_id
            order by d.exporter_id, d.priority, d.due_at
            limit 1
        ) d
    ),
    earliest_due as (
        select u.exporter_id, u.priority, u.due_at from unmarked u
        union all
        select m.exporter_id, m.priority, d.due_at
        from marks m
        cross join lateral (
            select d.due_at from scanwire.deliveries d
            where d.stage = 'waiting' and d.exporter_id = m.exporter_id and d.priority = m.priority and d.due_at >= m.due_from
            order by d.due_at
            limit 1
        ) d
    ),
    due_classes as materialized (
        select w.exporter_id, w.priority, w.due_at, x.recovered_at
        from earliest_due w
        join scanwire.exporters x on x.id = w.exporter_id
        where w.due_at <= at or x.recovered_at is not null
    ),
    rooms as materialized (
        select
            r.*,
            max_in_flight - r.singles as single_room,
            r.share - r.flying as ordinary_room,
            (r.share + eighth) / 8 - r.retries as retry_room
        from scanwire.rooms_of(
            (select array_agg(c.exporter_id) from due_classes c), at, max_in_flight, breaker_after, default_slots, slow_after
        ) r
        where exists (select from due_classes)
    ),
    waiting as materialized (
        select
            r.exporter_id, r.collector, r.slow, r.pool_room, r.retry_room, r.own_window,
            case d.priority when 0 then r.single_room else r.ordinary_room end as room,
            d.id, d.priority, d.due_at, d.seq,
            row_number() over (partition by r.exporter_id, d.priority order by d.due_at, d.seq) as class_rank
        from rooms r
        join due_classes c on c.exporter_id = r.exporter_id
        cross join lateral (
            select d.id, d.priority, d.due_at, d.seq from scanwire.deliveries d
            where
                d.stage = 'waiting' and d.exporter_id = r.exporter_id and d.priority = c.priority
                and d.due_at >= c.due_at
                and d.due_at <= case when c.recovered_at is null then at else 'infinity' end
                -- what was tried before the exporter recovered waits no longer
                and (d.due_at <= at or d.queued_at < c.recovered_at)
            order by d.due_at, d.seq
            -- one more than there is room for, so that it is seen whether any are left
            limit 1 + greatest(0, least(max_rows, case c.priority when 0 then r.single_room else r.ordinary_room end))
        ) d
    ),
    ranked as (
        select
            w.*,
            row_number() over (
                partition by w.exporter_id
                order by w.priority > 0, w.priority = 1 or w.class_rank > w.retry_room, w.priority, w.due_at, w.seq
            ) as rank
        from waiting w
    ),
    pooled as (
        select
            r.*,
            -- in no order of time: those with old deliveries would always be the first
            row_number() over (
                partition by r.collector, r.slow, r.priority = 0
                order by r.rank, hashtextextended(r.exporter_id::text, turn)
            ) as pool_rank
        from ranked r
        where r.rank <= r.room
    ),
    picked as materialized (
        select p.id, p.collector, row_number() over (order by p.priority > 0, p.rank, p.priority, p.due_at, p.seq) as place
        from pooled p
        where p.priority = 0 or p.pool_rank <= p.pool_room
        order by place
        limit max_rows
    ),
    -- A row that somebody is changing now is being cancelled with its exporter. It is found by its key, so 'state' and not
    -- 'stage' here: after a quiet time the planner takes the index of waiting rows for empty, and would walk all of it per row. The keys
    -- are named as a list besides, since a join alone may walk the index of all keys that there are.
    free as materialized (
        select d.id, p.collector, p.place from picked p join scanwire.deliveries d on d.id = p.id
        where d.state = 'pending' and d.id = any (array(select p.id from picked p))
        for update of d skip locked
    ),
    queued as (
        update scanwire.deliveries d
        set
            state = 'queued',
            queued_at = at,
            -- what nobody was heard of who may have begun it has to be claimed, so that it is seen if it ends its processes
            token = case when begin_within is not null and d.begin_by is null and d.expired_claims = 0 then gen_random_uuid()::text end,
            begin_by = case when d.expired_claims = 0 then coalesce(d.begin_by, at + begin_within) end
        from free f
        where d.id = f.id and d.id = any (array(select f.id from free f))
        returning d.id, f.collector, d.attempts, d.priority, d.exporter_id, d.token, d.begin_by, d.round, f.place
    ),
    marked as (
        insert into scanwire.waiting_marks (exporter_id, priority, due_from, flight)
        select distinct q.exporter_id, q.priority, timestamptz '-infinity', (select f.last_value from scanwire.flights f) from queued q
        where not exists (select from stored m where m.exporter_id = q.exporter_id and m.priority = q.priority)
    )
    (
        select null::uuid, null::text, null::integer, null::boolean, null::uuid, null::text, null::timestamptz, null::integer, null::integer,
            null::integer, (select count(*) from waiting w where w.priority = 0 or w.own_window > 0) > (select count(*) from picked)
    )
    union all
    (
        select q.id, q.collector, q.attempts + 1, q.priority = 0, q.exporter_id, q.token, q.begin_by, r.generation,
            coalesce((select p.generation from scanwire.deployment p), 0), q.round + 1, null::boolean
        from queued q
        join rooms r on r.exporter_id = q.exporter_id
        order by q.place
    );
end
$$;

-- Claims attempts, as DeliveryStore.claim says. The open attempt is the delivery row itself, so that a claim writes one row, and no index.
--
-- 'requests' is an array of { index, id, token, duration, grant, holds }, 'claiming' the session, or null, 'max_bytes' what all bodies
-- together may have, or null. Here and wherever several deliveries are locked with waiting, this happens in the order of their ids, so
-- that two callers never wait for each other. What is only read, since its claim was handed out with it, is not locked.
create function scanwire.claim_attempts(requests json, claiming uuid, max_bytes bigint)
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
            a.*, a.priority = 0 as single, octet_length(v.body) as bytes,
            current and (a.priority = 0 or e.state = 'running') as claimed
        from (select q.* from queued q union all select h.* from held h) a
        join scanwire.events v on v.id = a.event_id
        join scanwire.exporters e on e.id = a.exporter_id
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

-- Says that a session is alive, as DeliveryStore.keepAlive says, and names what its process has begun under claims that were handed out:
-- 'begun' is an array of { id, token, claimed_at, duration }. From then on these are like those that were claimed.
create function scanwire.keep_session_alive(
    session_id uuid, its_process text, its_slots json, duration double precision, its_generation integer, spoken timestamptz, begun json
)
returns timestamptz
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
begin
    if json_array_length(begun) > 0 then
        with named as materialized (
            select b.id, b.token, b.claimed_at, b.duration
            from json_to_recordset(begun) as b (id uuid, token text, claimed_at timestamptz, duration double precision)
            join scanwire.deliveries d on d.id = b.id
            where d.state = 'queued' and d.token = b.token
            order by d.id
            for update of d
        )
        update scanwire.deliveries d
        set
            state = 'sending',
            attempts = d.attempts + 1,
            round = d.round + 1,
            begin_by = null,
            session = session_id,
            claimed_at = least(n.claimed_at, at),
            claim_expires_at = least(n.claimed_at, at) + n.duration * interval '1 millisecond'
        from named n
        where d.id = n.id;
    end if;

    insert into scanwire.worker_sessions as s (id, process, slots, alive_until, generation, spoken_at)
    values (session_id, its_process, its_slots, at + duration * interval '1 millisecond', its_generation, coalesce(spoken, at))
    on conflict (id) do update
    set slots = excluded.slots, alive_until = excluded.alive_until, generation = excluded.generation, spoken_at = excluded.spoken_at;
    return at;
end
$$;

-- Takes claims back that were handed out and that nobody has begun in time: every session that may hold them has said since then what it
-- has begun, or has ended. They are due at once, and no try is used up. With 'ended_only' a session that is silent has
-- not ended: its process may only not have reached the store.
create function scanwire.take_back_grants(max_rows integer, slack interval, ended_only boolean)
returns integer
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    spoken timestamptz;
    taken integer;
begin
    perform scanwire.raise_mark_of_flights();
    select min(s.spoken_at) into spoken from scanwire.worker_sessions s where s.alive_until > at or ended_only;

    with unbegun as materialized (
        select d.id from scanwire.deliveries d
        where
            d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
            and d.state = 'queued' and d.token is not null and d.begin_by + slack < least(at, spoken)
        limit max_rows
        for update skip locked
    ),
    taken_back as (
        update scanwire.deliveries d
        set state = 'pending', token = null
        where d.id = any (array(select u.id from unbegun u))
        returning d.exporter_id, d.priority, d.due_at
    ),
    lowered as (
        update scanwire.waiting_marks m
        set due_from = t.due_at
        from (select b.exporter_id, b.priority, min(b.due_at) as due_at from taken_back b group by b.exporter_id, b.priority) t
        where m.exporter_id = t.exporter_id and m.priority = t.priority and m.due_from > t.due_at
    )
    select count(*) into taken from taken_back;
    return taken;
end
$$;

-- Takes claims away that ran out or whose session is silent or was ended ('ended_only': was ended), and renews and returns jobs that
-- were queued too long ago, as DeliveryStore.sweep says. Rows that somebody else is changing now need no sweeping.
create function scanwire.sweep_flights(
    requeue_after interval, max_rows integer, poisoned_after integer, interruption jsonb, ended_only boolean
)
returns table (delivery_id uuid, collector text, attempt integer, single boolean)
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    mark bigint := (select l.last_value from scanwire.landed_flights l);
begin
    if not ended_only then
        delete from scanwire.worker_sessions s where s.alive_until < at - interval '1 hour';
    end if;

    return query
    with expired as materialized (
        select d.id, d.token, d.claimed_at, d.attempts, d.priority, d.faults, d.expired_claims + 1 as expired_claims
        from scanwire.deliveries d
        where
            d.stage = 'in flight' and d.flight >= mark and d.state = 'sending'
            and (
                (d.claim_expires_at <= at and not ended_only)
                or (
                    d.session is not null
                    and not exists (
                        select from scanwire.worker_sessions s where s.id = d.session and (s.alive_until > at or ended_only)
                    )
                )
            )
        order by d.claim_expires_at
        limit max_rows
        for update skip locked
    ),
    judged as (
        select x.*, case when x.priority = 0 then 'exhausted' when x.expired_claims >= poisoned_after then 'poisoned' else 'pending' end as next
        from expired x
    ),
    interrupted as (
        update scanwire.deliveries d
        set
            state = j.next,
            due_at = case when j.next = 'pending' then at + scanwire.fault_delay(j.faults + 1) else d.due_at end,
            round = d.round - 1,
            faults = j.faults + 1,
            expired_claims = j.expired_claims,
            finished_at = case when j.next <> 'pending' then at end,
            last_code = interruption->>'code',
            token = null,
            session = null,
            claim_expires_at = null
        from judged j
        where d.id = j.id
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select x.id, x.attempts, x.claimed_at, at, x.token, true, scanwire.interruption(interruption, at - x.claimed_at)
        from expired x
    ),
    lost as materialized (
        select d.id from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= mark and d.state = 'queued' and d.queued_at < at - requeue_after
        order by d.queued_at
        limit max_rows
        for update skip locked
    ),
    renewed as (
        update scanwire.deliveries d
        set queued_at = at
        from lost l
        where d.id = l.id
        returning d.id, d.exporter_id, d.collector, d.attempts + 1 as attempt, d.priority = 0 as single
    )
    select r.id, coalesce(e.collector, r.collector), r.attempt, r.single
    from renewed r
    left join scanwire.exporters e on e.id = r.exporter_id;
end
$$;

-- Records outcomes, as DeliveryStore.recordOutcomes says, and returns the indexes of those who still held their claims. 'outcome' is the
-- text of its JSON, which may hold what 'jsonb' refuses; 'claimed_at' is when it began, of one whose claim was handed out, else null. A
-- function, because it needs several snapshots in one round trip: what is late must see what took its claim away. Its plans are kept,
-- perhaps from a time when the tables were empty and one walk through an index seemed cheaper than a look-up for each row: only bitmap
-- scans cannot walk through all of it (measured: 0.8 ms in place of 6.4).
create function scanwire.finish_attempts(outcomes json, rules json, interruption jsonb)
returns setof integer
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    changes boolean;
    held integer[];
    noted json;
begin
    -- Exporters are locked before the deliveries, in the order in which a removal locks them.
    perform from scanwire.exporters e
    join (
        select
            i.exporter_id,
            bool_or(i.health = 'failure' or i.pause is not null or i.stop_reason is not null) as changes,
            bool_or(i.health = 'success') as succeeded,
            bool_or(i.health = 'success' and i.took <= (rules->>'quickWithin')::double precision) as quick,
            bool_or(i.health <> 'none' and i.took >= (rules->>'slowAfter')::double precision) as slow
        from json_to_recordset(outcomes) as i (
            exporter_id uuid, health text, took double precision, pause double precision, stop_reason text
        )
        group by i.exporter_id
    ) i on i.exporter_id = e.id
    where
        i.changes
        or (
            i.succeeded and (
                e.consecutive_failures > 0 or e.failing_since is not null or e.slow_start is not null or e.paused_until is not null
                or e.last_outcome_at > at - interval '1 second' is not true
            )
        )
        or case when e.answers_slowly then i.quick else i.slow end
    order by e.id
    for no key update of e;
    -- what another process tells from here on comes after what is told here
    changes := found;

    with input as (
        select distinct on (i.id, i.token) i.*
        from json_to_recordset(outcomes) as i (
            index integer, id uuid, exporter_id uuid, token text, claimed_at timestamptz, code text, outcome text, last_outcome text,
            state text, delay double precision, fault boolean, health text, took double precision, pause double precision, stop_reason text
        )
        order by i.id, i.token, i.index
    ),
    holders as materialized (
        select
            i.*,
            d.state = 'queued' as unnamed,
            d.attempts + (d.state = 'queued')::integer as number,
            case when d.state = 'queued' then least(i.claimed_at, at) else d.claimed_at end as began
        from input i
        join scanwire.deliveries d on d.id = i.id
        where d.token = i.token and (d.state = 'sending' or (d.state = 'queued' and i.claimed_at is not null))
        order by d.id
        for update of d
    ),
    moved as (
        update scanwire.deliveries d
        set
            state = h.state,
            due_at = case
                when h.state <> 'pending' then d.due_at
                when h.fault then at + scanwire.fault_delay(d.faults + 1)
                else at + h.delay * interval '1 millisecond'
            end,
            attempts = h.number,
            -- a fault of ours uses up no try
            round = d.round + h.unnamed::integer - h.fault::integer,
            faults = case when h.fault then d.faults + 1 else 0 end,
            expired_claims = 0,
            priority = case when h.state = 'pending' and not h.fault and d.priority > 0 then 2 else d.priority end,
            claimed_at = h.began,
            finished_at = case when h.state <> 'pending' then at end,
            last_code = h.code,
            token = null,
            begin_by = null,
            session = null,
            claim_expires_at = null
        from holders h
        where d.id = h.id
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select h.id, h.number, h.began, at, h.token, false, h.outcome::json
        from holders h
    )
    select
        array_agg(h.index),
        json_agg(json_build_object(
            'index', h.index, 'exporter_id', h.exporter_id, 'health', h.health, 'took', h.took, 'claimed_at', h.began,
            'pause', h.pause, 'stop_reason', h.stop_reason, 'last_outcome', h.last_outcome
        )) filter (where h.health <> 'none' or h.pause is not null or h.stop_reason is not null)
    from holders h
    into held, noted;

    if changes and noted is not null then
        perform scanwire.apply_health(noted, at, rules);
    end if;

    -- Completes the attempts whose claims were taken away before; those that were taken back unbegun, as it seemed, have no rows yet. One
    -- that was delivered ends its delivery; who is sending it once more loses the claim. The deliveries are locked first and in their
    -- order, as everywhere: two who are late with the same attempts would wait for each other.
    if json_array_length(outcomes) > coalesce(cardinality(held), 0) then
        with missed as materialized (
            select d.id, d.state, d.attempts, d.claimed_at, d.token
            from scanwire.deliveries d
            where d.id in (
                select i.id from json_to_recordset(outcomes) as i (index integer, id uuid) where not i.index = any (coalesce(held, '{}'))
            )
            order by d.id
            for update
        ),
        late as (
            update scanwire.attempts a
            set finished_at = at, outcome = i.outcome::json, late = true
            from missed m
            join json_to_recordset(outcomes) as i (index integer, id uuid, token text, code text, outcome text) on i.id = m.id
            where
                a.delivery_id = m.id and a.token = i.token and a.lost and not a.late
                and not i.index = any (coalesce(held, '{}'))
            returning a.delivery_id, i.code
        ),
        unnamed as materialized (
            select
                u.id, u.token, u.code, u.outcome, u.began,
                u.attempts + (row_number() over (partition by u.id order by u.code <> 'delivered', u.index))::integer as number
            from (
                select distinct on (m.id, i.token)
                    m.id, m.attempts, i.index, i.token, i.code, i.outcome, least(i.claimed_at, at) as began
                from missed m
                join json_to_recordset(outcomes) as i (
                    index integer, id uuid, token text, claimed_at timestamptz, code text, outcome text
                ) on i.id = m.id
                where
                    i.claimed_at is not null
                    and not i.index = any (coalesce(held, '{}'))
                    -- its number is that of the attempt that is being made, unless this one ends that
                    and (m.state <> 'sending' or i.code = 'delivered')
                    and not exists (select from scanwire.attempts a where a.delivery_id = m.id and a.token = i.token)
                order by m.id, i.token, i.index
            ) u
        ),
        ended as materialized (
            select m.*, m.state = 'sending' as claimed
            from missed m
            where
                m.state in ('pending', 'queued', 'sending', 'poisoned')
                and (
                    m.id in (select l.delivery_id from late l where l.code = 'delivered')
                    or m.id in (select u.id from unnamed u where u.code = 'delivered')
                )
        ),
        interrupted as (
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
            select x.id, x.attempts, x.claimed_at, at, x.token, true, scanwire.interruption(interruption, at - x.claimed_at)
            from ended x
            where x.claimed
        ),
        completed as (
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, late, outcome)
            select u.id, u.number, u.began, at, u.token, true, true, u.outcome::json
            from unnamed u
        )
        update scanwire.deliveries d
        set
            attempts = coalesce(u.number, d.attempts),
            state = case when x.id is not null then 'delivered' else d.state end,
            finished_at = case when x.id is not null then at else d.finished_at end,
            last_code = case when x.id is not null then 'delivered' else d.last_code end,
            token = case when x.id is null then d.token end,
            begin_by = case when x.id is null then d.begin_by end,
            session = case when x.id is null then d.session end,
            claim_expires_at = case when x.id is null then d.claim_expires_at end
        from missed m
        left join ended x on x.id = m.id
        left join (select n.id, max(n.number) as number from unnamed n group by n.id) u on u.id = m.id
        where d.id = m.id and (x.id is not null or u.id is not null);
    end if;

    return query select unnest(held);
end
$$;
`;

export const grants: Migration = { id: '0008-grants', sql };
