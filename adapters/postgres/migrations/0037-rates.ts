import type { Migration } from '../migrate.ts';

/**
 * Exporters with a rate: no more of their deliveries are handed out in a second, by whichever dispatcher. Tests are not counted.
 *
 * Processes of the version before heed it too: what is handed out is decided by these functions.
 */
interface HandOutForm {
    readonly create?: string;
    /** Which of the priorities are handed out. */
    readonly taken?: string;
    /** What is told beside the deliveries, in the first row: its columns, what they are made from, their values there and in all other rows. */
    readonly told?: { readonly columns: string; readonly from: string; readonly first: string; readonly others: string };
}

const MORE = {
    columns: 'more boolean',
    from: '',
    first: '(select count(*) from waiting w where w.priority = 0 or w.own_window > 0) > (select count(*) from picked)',
    others: 'null::boolean',
};

const handOut = ({
    create = 'create or replace function scanwire.hand_out_deliveries',
    taken = '',
    told = MORE,
}: HandOutForm = {}): string => `${create}(
    max_in_flight integer, breaker_after integer, max_rows integer, default_slots integer, slow_after double precision, begin_within interval
)
returns table (
    delivery_id uuid, collector text, attempt integer, single boolean,
    exporter_id uuid, token text, begin_by timestamptz, generation integer, settings integer, round integer, ${told.columns}
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
        select u.exporter_id, u.priority, u.due_at from unmarked u${taken}
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
${told.from}    -- A row that somebody is changing now is being cancelled with its exporter. It is found by its key, so 'state' and not
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
    ),
    paid as (
        select count(scanwire.pay_rate(u.exporter_id, u.rate, at, u.handed_out)) as count
        from (
            select r.exporter_id, r.rate, count(*) as handed_out
            from rooms r
            join queued q on q.exporter_id = r.exporter_id
            where r.rate is not null and q.priority > 0
            group by r.exporter_id, r.rate
        ) u
    )
    (
        select null::uuid, null::text, null::integer, null::boolean, null::uuid, null::text, null::timestamptz, null::integer, null::integer,
            null::integer, ${told.first}
        -- named, or it would not be done
        from paid
    )
    union all
    (
        select q.id, q.collector, q.attempts + 1, q.priority = 0, q.exporter_id, q.token, q.begin_by, r.generation,
            coalesce((select p.generation from scanwire.deployment p), 0), q.round + 1, ${told.others}
        from queued q
        join rooms r on r.exporter_id = q.exporter_id
        order by q.place
    );
end
$$;
`;

const ORDERED = ' where u.priority < 3';

/** As before, but what is behind another of its order key is passed by. For a later migration. */
export const orderedHandOut: string = handOut({ taken: ORDERED });

/**
 * The same by a name of its own, and it tells the end of whose deliveries may let go what is left over: of its own exporter where that has as many
 * in flight as it may by itself, else of all that share its places. Slow exporters take places from quick ones, and quick ones none from slow ones.
 */
export const handOutThatTellsEnds: string = handOut({
    create: 'create function scanwire.hand_out_due_deliveries',
    taken: ORDERED,
    told: {
        columns: 'waits_for uuid[]',
        from: `    left_over as materialized (
        select distinct k.exporter_id, k.collector, k.slow, k.rank > k.room and (k.priority = 0 or r.share >= r.own_window) as by_itself
        from ranked k
        join rooms r on r.exporter_id = k.exporter_id
        where (k.priority = 0 or k.own_window > 0) and not exists (select from picked p where p.id = k.id)
    ),
`,
        first: `array(
                select r.exporter_id from rooms r
                where exists (
                    select from left_over l
                    where l.exporter_id = r.exporter_id or (not l.by_itself and l.collector = r.collector and (l.slow = r.slow or r.slow))
                )
            )`,
        others: 'null::uuid[]',
    },
});

const sql = `
-- attempts a second
alter table scanwire.exporters add column rate integer;

-- Until when their rates are used up. A table of its own, which only who hands out writes: exporters are locked before deliveries elsewhere.
create table scanwire.exporter_rates (
    exporter_id uuid primary key,
    paid_until timestamptz not null
) with (fillfactor = 50);

create function scanwire.forget_rate()
returns trigger
language plpgsql
as $$
begin
    delete from scanwire.exporter_rates p where p.exporter_id = old.id;
    return null;
end
$$;

create trigger exporters_rate
after delete on scanwire.exporters
for each row
when (old.rate is not null)
execute function scanwire.forget_rate();

-- What concerns rates is in functions of their own, so that the statements below neither plan nor open this table for who uses none.

-- How many of an exporter may begin by now, a second's worth at most.
create function scanwire.unpaid_of(exporter uuid, rate integer, at timestamptz)
returns integer
language plpgsql
stable
as $$
begin
    return floor(rate * least(1, extract(epoch from at - coalesce(
        (select p.paid_until from scanwire.exporter_rates p where p.exporter_id = exporter), at - interval '1 second'
    ))));
end
$$;

create function scanwire.pay_rate(exporter uuid, rate integer, at timestamptz, handed_out bigint)
returns void
language plpgsql
as $$
declare
    second_ago timestamptz := at - interval '1 second';
    price interval := handed_out * interval '1 second' / rate;
begin
    insert into scanwire.exporter_rates as p (exporter_id, paid_until)
    values (exporter, second_ago + price)
    on conflict (exporter_id) do update set paid_until = greatest(p.paid_until, second_ago) + price;
end
$$;

drop function scanwire.rooms_of(uuid[], timestamptz, integer, integer, integer, double precision);

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
    pool_room integer,
    -- attempts a second, null for any
    rate integer
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
            e.state = 'running' and e.paused_at is null and e.paused_until is null and e.consecutive_failures < breaker_after and e.slow_start is null
                and e.rate is null as steady,
            e.answers_slowly or coalesce(f.late, false) as slow,
            coalesce(f.count, 0) as flying,
            coalesce(f.singles, 0) as singles,
            coalesce(f.retries, 0) as retries,
            coalesce(s.count, default_slots) as slots,
            e.rate,
            case when e.rate is not null then scanwire.unpaid_of(e.id, e.rate, at) end as unpaid,
            case
                when e.state <> 'running' or e.paused_at is not null then 0
                when e.paused_until > at then 0
                when e.paused_until is null and e.consecutive_failures < breaker_after
                    then least(max_in_flight, coalesce(e.slow_start, max_in_flight))
                when e.probe_at > at then 0
                else 1
            end as full_window
        from (select unnest(candidates) as exporter_id union select f.exporter_id from flying f) x
        join scanwire.exporters e on e.id = x.exporter_id
        left join flying f on f.exporter_id = e.id
        left join slots s on s.collector = e.collector
    ),
    rated as (
        select s.*, case when s.unpaid < 1 then 0 else least(s.full_window, s.flying + s.unpaid) end::integer as own_window
        from sharers s
    ),
    -- Slow exporters share half of the slots, quick ones what the slow ones do not hold, and as much again.
    pools as (
        select
            s.*,
            case when s.slow then greatest(1, s.slots / 2) else 2 * s.slots - coalesce(sum(s.flying) filter (where s.slow) over of_collector, 0) end as capacity,
            sum(s.flying) over of_pool as pool_flying,
            count(*) filter (where s.own_window > 0 or s.flying > 0) over of_pool as pool_size
        from rated s
        window of_collector as (partition by s.collector), of_pool as (partition by s.collector, s.slow)
    )
    select
        p.id, p.collector, p.generation, p.steady, p.slow, p.flying, p.singles, p.retries, p.own_window,
        least(p.own_window, greatest(1, p.capacity / greatest(1, p.pool_size)))::integer,
        (p.capacity - p.pool_flying)::integer,
        p.rate
    from pools p;
end
$$;

-- As before, and what is handed out uses up the rates of those exporters that have one.
${handOut()}`;

export const rates: Migration = { id: '0037-rates', sql };
