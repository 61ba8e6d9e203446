import type { SqlMigration } from '../migrate.ts';

/**
 * One clock, sessions, faults of our own, and a breaker that counts bursts.
 *
 * Processes of the version before may go on working beside those of this one: nothing that they use is changed or taken away, columns
 * are added with defaults that need no rewrite of a table, and the check of `state` is not run over what is there.
 */
const sql = `
-- The time of everything that is compared with a time. A function, so that tests replace it; the clock's and not 'now()', which
-- stands still in a transaction of the application. Milliseconds, as JavaScript has them.
create function scanwire.now()
returns timestamptz
language sql
volatile
as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

-- Processes that claim, for as long as they say that they are alive.
create table scanwire.worker_sessions (
    id uuid primary key,
    process text not null,
    -- how many attempts it can make at once, by collector
    slots json not null,
    alive_until timestamptz not null
);

alter table scanwire.deliveries
    add column session uuid,
    -- faults of ours in a row, and claims that ran out in a row
    add column faults integer not null default 0,
    add column expired_claims integer not null default 0,
    drop constraint deliveries_state_check,
    add constraint deliveries_state_check
        check (state in ('pending', 'queued', 'sending', 'delivered', 'exhausted', 'poisoned', 'cancelled')) not valid;

alter table scanwire.exporters
    -- when the last failure was counted: those of attempts that began before belong to it
    add column failed_at timestamptz,
    -- when the first failure since the last success was counted
    add column failing_since timestamptz,
    -- until when the receiver wants to be left alone; not null until it has taken a probe
    add column paused_until timestamptz,
    -- when it took the first delivery after its breaker was open
    add column recovered_at timestamptz,
    -- the window while it grows
    add column slow_start integer,
    -- whether its last attempts took long: then it has a share of half the slots
    add column answers_slowly boolean not null default true,
    -- what the receiver did last; successes are noted once a second
    add column last_outcome json,
    add column last_outcome_at timestamptz;

-- How long a delivery waits after so many faults of ours in a row.
create function scanwire.fault_delay(faults integer)
returns interval
language sql
immutable
as $$ select interval '1 second' * least(60, 2 ^ least(faults - 1, 30)) $$;

-- Marks due deliveries queued, as DeliveryStore.dispatch says. What is said of its namesake with four parameters holds here too.
create function scanwire.dispatch_deliveries(
    max_in_flight integer, breaker_after integer, max_rows integer, default_slots integer, slow_after double precision
)
returns table (delivery_id uuid, collector text, attempt integer, single boolean)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    at timestamptz;
    -- the eighth of the time in which a window that is too small for it has a place for retries
    eighth integer;
    turn bigint;
begin
    perform pg_advisory_xact_lock(hashtextextended('scanwire.dispatch_deliveries', 0));
    at := scanwire.now();
    turn := floor(extract(epoch from at) * 1000);
    eighth := turn / 100 % 8;

    return query
    with due_classes as materialized (
        select w.exporter_id, w.priority, x.recovered_at
        from scanwire.earliest_due w
        join scanwire.exporters x on x.id = w.exporter_id
        where w.due_at <= at or x.recovered_at is not null
    ),
    flying as materialized (
        select
            d.exporter_id,
            count(*)::integer as count,
            (count(*) filter (where d.priority = 0))::integer as singles,
            (count(*) filter (where d.priority = 2))::integer as retries,
            coalesce(bool_or(d.state = 'sending' and d.claimed_at < at - slow_after * interval '1 millisecond'), false) as late
        from scanwire.deliveries d
        where d.stage = 'in flight' and exists (select from due_classes)
        group by d.exporter_id
    ),
    slots as materialized (
        select s.key as collector, sum(s.value::integer)::integer as count
        from scanwire.worker_sessions w
        cross join lateral json_each_text(w.slots) s
        where w.alive_until > at and exists (select from due_classes)
        group by s.key
    ),
    sharers as (
        select
            e.id,
            e.collector,
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
        from (select c.exporter_id from due_classes c union select f.exporter_id from flying f) x
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
    ),
    shares as (
        select p.*, least(p.own_window, greatest(1, p.capacity / greatest(1, p.pool_size)))::integer as share from pools p
    ),
    rooms as materialized (
        select
            s.*,
            max_in_flight - s.singles as single_room,
            s.share - s.flying as ordinary_room,
            (s.share + eighth) / 8 - s.retries as retry_room
        from shares s
    ),
    waiting as (
        select
            r.id as exporter_id, r.collector, r.slow, r.capacity - r.pool_flying as pool_room, r.retry_room,
            case d.priority when 0 then r.single_room else r.ordinary_room end as room,
            d.*,
            row_number() over (partition by r.id, d.priority order by d.due_at, d.seq) as class_rank
        from rooms r
        join due_classes c on c.exporter_id = r.id
        cross join lateral (
            select d.id, d.priority, d.due_at, d.seq from scanwire.deliveries d
            where
                d.stage = 'waiting' and d.exporter_id = r.id and d.priority = c.priority
                and d.due_at <= case when c.recovered_at is null then at else 'infinity' end
                -- what was tried before the exporter recovered waits no longer
                and (d.due_at <= at or d.queued_at < c.recovered_at)
            order by d.due_at, d.seq
            limit greatest(0, least(max_rows, case c.priority when 0 then r.single_room else r.ordinary_room end))
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
        returning d.id, f.collector, d.attempts + 1 as attempt, d.priority = 0 as single, f.place
    )
    select q.id, q.collector, q.attempt, q.single from queued q order by q.place;
end
$$;

-- Applies outcomes to the health of their exporters, one after the other, as the deliveries were recorded. Only exporters whose health
-- they may change are read and written, and those whose last outcome was noted a second ago.
create function scanwire.apply_health(outcomes json, at timestamptz, rules json)
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    after integer := rules->>'after';
    first_probe interval := (rules->>'firstProbe')::double precision * interval '1 millisecond';
    max_probe interval := (rules->>'maxProbe')::double precision * interval '1 millisecond';
    stop_after interval := (rules->>'stopAfter')::double precision * interval '1 millisecond';
    full_window integer := rules->>'window';
    slow_after double precision := rules->>'slowAfter';
    quick_within double precision := rules->>'quickWithin';
    e scanwire.exporters%rowtype;
    o record;
    ends_pause boolean;
    recovers boolean;
    reason text;
begin
    for e in
        select x.* from scanwire.exporters x
        join (
            select
                i.exporter_id,
                bool_or(i.health <> 'success' or i.stop_reason is not null) as other,
                bool_or(i.health = 'success' and i.took <= quick_within) as quick,
                bool_or(i.health <> 'none' and i.took >= slow_after) as slow
            from json_to_recordset(outcomes) as i (exporter_id uuid, health text, took double precision, stop_reason text)
            group by i.exporter_id
        ) i on i.exporter_id = x.id
        where
            i.other or x.consecutive_failures > 0 or x.failing_since is not null or x.slow_start is not null or x.paused_until is not null
            or case when x.answers_slowly then i.quick else i.slow end
            or x.last_outcome_at > at - interval '1 second' is not true
        order by x.id
        for no key update of x
    loop
        for o in
            select i.* from json_to_recordset(outcomes) as i (
                index integer, exporter_id uuid, health text, took double precision, claimed_at timestamptz, pause double precision,
                stop_reason text, last_outcome text
            )
            where i.exporter_id = e.id
            order by i.index
        loop
            e.answers_slowly := case
                when o.health <> 'none' and o.took >= slow_after then true
                when o.health = 'success' and o.took <= quick_within then false
                else e.answers_slowly
            end;
            e.last_outcome := o.last_outcome;
            e.last_outcome_at := at;

            -- not by an attempt that began before: a receiver that limits its rate takes some and refuses others
            ends_pause := coalesce(o.claimed_at >= e.paused_until, false);
            if o.health = 'success' then
                recovers := ends_pause or e.consecutive_failures >= after;
                e.slow_start := case when recovers then 2 else e.slow_start + 1 end;
                e.slow_start := case when e.slow_start < full_window then e.slow_start end;
                e.recovered_at := case when recovers then at else e.recovered_at end;
                e.consecutive_failures := 0;
                e.probe_at := null;
                e.paused_until := case when not ends_pause then e.paused_until end;
                e.failing_since := null;
            elsif
                o.health = 'failure'
                and (e.failed_at is null or o.claimed_at > e.failed_at)
                -- what was in the queue when the breaker opened is no probe
                and (e.probe_at is null or e.consecutive_failures < after or o.claimed_at >= e.probe_at)
            then
                e.consecutive_failures := case
                    when ends_pause or e.slow_start is not null then greatest(e.consecutive_failures + 1, after)
                    else e.consecutive_failures + 1
                end;
                e.paused_until := case when not ends_pause then e.paused_until end;
                e.failed_at := at;
                e.failing_since := coalesce(e.failing_since, at);
                if e.consecutive_failures >= after then
                    e.probe_at := at + least(max_probe, first_probe * 2 ^ least(e.consecutive_failures - after, 30));
                    e.slow_start := null;
                    e.recovered_at := null;
                end if;
            end if;

            if o.pause is not null then
                e.paused_until := greatest(e.paused_until, at + o.pause * interval '1 millisecond');
                e.failing_since := coalesce(e.failing_since, at);
            end if;

            reason := coalesce(o.stop_reason, case when o.health <> 'none' and at - e.failing_since >= stop_after then rules->>'stopReason' end);
            if reason is not null and e.state = 'running' then
                e.state := 'stopped';
                e.stop_reason := reason;
                e.updated_at := at;
            end if;
        end loop;

        update scanwire.exporters x
        set
            consecutive_failures = e.consecutive_failures,
            probe_at = e.probe_at,
            failed_at = e.failed_at,
            failing_since = e.failing_since,
            paused_until = e.paused_until,
            recovered_at = e.recovered_at,
            slow_start = e.slow_start,
            answers_slowly = e.answers_slowly,
            last_outcome = e.last_outcome,
            last_outcome_at = e.last_outcome_at,
            state = e.state,
            stop_reason = e.stop_reason,
            updated_at = e.updated_at
        where x.id = e.id;
    end loop;
end
$$;

-- Records outcomes, as DeliveryStore.recordOutcomes says, and returns the indexes of those who still held their claims. 'outcome' is the
-- text of its JSON, which may hold what 'jsonb' refuses. A function, because it needs several snapshots in one round trip: what is late
-- must see what took its claim away. Its plans are kept, perhaps from a time when the tables were empty and one walk through an index
-- seemed cheaper than a look-up for each row: only bitmap scans cannot walk through all of it (measured: 0.8 ms in place of 6.4).
create function scanwire.record_outcomes(outcomes json, rules json, interruption jsonb)
returns setof integer
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
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

    with input as (
        select distinct on (i.id, i.token) i.*
        from json_to_recordset(outcomes) as i (
            index integer, id uuid, exporter_id uuid, token text, code text, outcome text, last_outcome text,
            state text, delay double precision, fault boolean, health text, took double precision, pause double precision, stop_reason text
        )
        order by i.id, i.token, i.index
    ),
    holders as materialized (
        select i.*, d.attempts, d.claimed_at
        from input i
        join scanwire.deliveries d on d.id = i.id
        where d.state = 'sending' and d.token = i.token
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
            -- a fault of ours uses up no try
            round = d.round - h.fault::integer,
            faults = case when h.fault then d.faults + 1 else 0 end,
            expired_claims = 0,
            priority = case when h.state = 'pending' and not h.fault and d.priority > 0 then 2 else d.priority end,
            finished_at = case when h.state <> 'pending' then at end,
            last_code = h.code,
            token = null,
            session = null,
            claim_expires_at = null
        from holders h
        where d.id = h.id
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select h.id, h.attempts, h.claimed_at, at, h.token, false, h.outcome::json
        from holders h
    )
    select
        array_agg(h.index),
        json_agg(json_build_object(
            'index', h.index, 'exporter_id', h.exporter_id, 'health', h.health, 'took', h.took, 'claimed_at', h.claimed_at,
            'pause', h.pause, 'stop_reason', h.stop_reason, 'last_outcome', h.last_outcome
        )) filter (where h.health <> 'none' or h.pause is not null or h.stop_reason is not null)
    from holders h
    into held, noted;

    if noted is not null then
        perform scanwire.apply_health(noted, at, rules);
    end if;

    -- Completes the attempts whose claims were taken away before. One that was delivered ends its delivery; who is sending it
    -- once more loses the claim. The deliveries are locked first and in their order, as everywhere: two who are late with the same
    -- attempts would wait for each other.
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
        ended as materialized (
            select m.*, m.state = 'sending' as claimed
            from missed m
            where
                m.id in (select l.delivery_id from late l where l.code = 'delivered')
                and m.state in ('pending', 'queued', 'sending', 'poisoned')
        ),
        interrupted as (
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
            select x.id, x.attempts, x.claimed_at, at, x.token, true, scanwire.interruption(interruption, at - x.claimed_at)
            from ended x
            where x.claimed
        )
        update scanwire.deliveries d
        set state = 'delivered', finished_at = at, last_code = 'delivered', token = null, session = null, claim_expires_at = null
        from ended x
        where d.id = x.id;
    end if;

    return query select unnest(held);
end
$$;

-- Takes claims away that ran out or whose session is silent or was ended ('ended_only': was ended), and renews and returns jobs that
-- were queued too long ago, as DeliveryStore.sweep says. Rows that somebody else is changing now need no sweeping.
create function scanwire.sweep_deliveries(
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
begin
    if not ended_only then
        delete from scanwire.worker_sessions s where s.alive_until < at - interval '1 hour';
    end if;

    return query
    with expired as materialized (
        select d.id, d.token, d.claimed_at, d.attempts, d.priority, d.faults, d.expired_claims + 1 as expired_claims
        from scanwire.deliveries d
        where
            d.stage = 'in flight' and d.state = 'sending'
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
        where d.stage = 'in flight' and d.state = 'queued' and d.queued_at < at - requeue_after
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
`;

export const engine: SqlMigration = { id: '0004-engine', sql };
