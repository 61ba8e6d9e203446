import type { Migration } from '../migrate.ts';

/*
 * What a replay of many has is counted in pieces: in one statement a hundred thousand deliveries kept the embedded database from everybody for a third of a
 * second. The pieces look at rows, not at what they count, so that none takes longer for what it passes over. `plan_replay` is for processes of before.
 */

const sql = `
-- Counts what a replay that is planned at that time has among the next 'max_rows' that have not been delivered, in the order of 'seq'.
create function scanwire.count_failed(
    of_exporter uuid, since timestamptz, planned timestamptz, last_seq bigint, after_seq bigint, max_rows integer
)
returns table (seen integer, counted integer, reached bigint)
language sql
stable
set enable_seqscan = off
set jit = off
as $$
    with looked_at as materialized (
        select d.seq, d.event_id, d.stage, d.state, d.priority, d.finished_at
        from scanwire.deliveries d
        where
            (d.last_code <> 'delivered' or d.stage = 'failed') and d.exporter_id = of_exporter and d.seq > after_seq and d.seq <= last_seq
        order by d.seq
        limit max_rows
    )
    select
        count(*)::integer,
        (count(*) filter (where
            l.stage = 'failed' and l.priority > 0
            and case
                when since is null then l.state = 'held'
                else l.state in ('exhausted', 'poisoned') and l.finished_at >= since and l.finished_at <= planned
            end
            and exists (select from scanwire.events v where v.id = l.event_id and v.erased_at is null)
        ))::integer,
        max(l.seq)
    from looked_at l
$$;

-- The same of those that wait for another try, in the order in which they are due.
create function scanwire.count_waiting(
    of_exporter uuid, since timestamptz, planned timestamptz, last_seq bigint, after_due timestamptz, after_seq bigint, max_rows integer
)
returns table (seen integer, counted integer, reached_due timestamptz, reached bigint)
language sql
stable
set enable_seqscan = off
set jit = off
as $$
    with looked_at as materialized (
        select d.seq, d.due_at, d.queued_at
        from scanwire.deliveries d
        where d.stage = 'waiting' and d.exporter_id = of_exporter and d.priority = 2 and (d.due_at, d.seq) > (after_due, after_seq)
        order by d.due_at, d.seq
        limit max_rows
    ),
    last as (select l.due_at, l.seq from looked_at l order by l.due_at desc, l.seq desc limit 1)
    select
        count(*)::integer,
        (count(*) filter (where l.seq <= last_seq and l.queued_at >= since and l.queued_at < planned))::integer,
        (select x.due_at from last x),
        (select x.seq from last x)
    from looked_at l
$$;

-- Begins a replay of as many, as counted at the time that it was planned. No row where the exporter is not known.
create function scanwire.begin_replay(
    replay_id uuid, of_exporter uuid, since timestamptz, its_rate integer, its_total integer, planned timestamptz, last bigint
)
returns setof scanwire.replays
language plpgsql
as $$
begin
    perform from scanwire.exporters e where e.id = of_exporter for key share;
    if not found then
        return;
    end if;

    return query
    insert into scanwire.replays (id, exporter_id, failed_since, rate, total, created_at, last_seq, paid_until)
    values (
        replay_id, of_exporter, since, its_rate, its_total, planned, last,
        scanwire.now() - greatest(interval '100 ms', interval '1 second' / its_rate + interval '1 microsecond')
    )
    returning *;
end
$$;
`;

export const replaysCounted: Migration = { id: '0100-replays-counted', sql };
