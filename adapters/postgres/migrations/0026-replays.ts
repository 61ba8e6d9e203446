import type { SqlMigration } from '../migrate.ts';

/** Replays of many deliveries, which go on in slices, whichever processes come and go. */
const sql = `
create table scanwire.replays (
    id uuid primary key,
    seq bigint generated always as identity,
    exporter_id uuid not null,
    -- null for what is held
    failed_since timestamptz,
    -- deliveries a second
    rate integer not null,
    total integer not null,
    done integer not null default 0,
    state text not null default 'running' check (state in ('running', 'done', 'cancelled')),
    created_at timestamptz not null,
    finished_at timestamptz,
    -- what was accepted after these is none of it
    last_seq bigint not null,
    -- those that had ended are done up to these
    after_seq bigint not null default 0,
    -- its rate is used up until then
    paid_until timestamptz not null
);

create index replays_running on scanwire.replays (seq) where state = 'running';

-- What an exporter was sent in vain since a time, and what of it waits to be sent once more: from then on it is due, and no retry any more, so that it is not found
-- again. Without a time, what is held. What has ended is found after a number. What is tried in vain after 'planned' is none of it.
create function scanwire.replayable_deliveries(
    of_exporter uuid, since timestamptz, planned timestamptz, after_seq bigint, last_seq bigint, max_rows integer
)
returns table (id uuid, event_id uuid, seq bigint, ended boolean)
language sql
stable
as $$
    (select d.id, d.event_id, d.seq, true
    from scanwire.deliveries d
    join scanwire.events v on v.id = d.event_id
    where
        d.stage = 'failed' and d.seq > after_seq and d.seq <= last_seq and d.exporter_id = of_exporter and d.priority > 0
        and case when since is null then d.state = 'held' else d.state in ('exhausted', 'poisoned') and d.finished_at >= since end
        and v.erased_at is null
    order by d.seq
    limit max_rows)
    union all
    (select d.id, d.event_id, d.seq, false
    from scanwire.deliveries d
    where
        d.stage = 'waiting' and d.exporter_id = of_exporter and d.priority = 2 and d.seq <= last_seq
        and d.queued_at >= since and d.queued_at < planned
    limit max_rows)
$$;

create function scanwire.plan_replay(replay_id uuid, of_exporter uuid, since timestamptz, its_rate integer)
returns setof scanwire.replays
language plpgsql
as $$
declare
    at timestamptz := scanwire.now();
    last bigint := coalesce((select max(d.seq) from scanwire.deliveries d), 0);
begin
    perform from scanwire.exporters e where e.id = of_exporter for key share;
    if not found then
        return;
    end if;

    return query
    insert into scanwire.replays (id, exporter_id, failed_since, rate, total, created_at, last_seq, paid_until)
    select replay_id, of_exporter, since, its_rate, count(*), at, last, at - interval '1 second'
    from scanwire.replayable_deliveries(of_exporter, since, at, 0, last, null)
    returning *;
end
$$;

-- Replays what the rates of those that are open allow by now, of each so many at most and no more than a second's worth, and tells whether any is left open. Whatever somebody else
-- is changing now is left out; who advances the same replay is not waited for.
create function scanwire.advance_replays(max_rows integer)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    replay scanwire.replays;
    room integer;
    found_count integer;
    replayed_count integer;
    last_ended bigint;
begin
    for replay in select r.* from scanwire.replays r where r.state = 'running' order by r.seq for update skip locked loop
        room := least(max_rows, floor(replay.rate * least(1, extract(epoch from at - replay.paid_until))));
        continue when room < 1;

        -- against its removal, which cancels what waits
        perform from scanwire.exporters e where e.id = replay.exporter_id for key share;
        if not found then
            update scanwire.replays r set state = 'cancelled', finished_at = at where r.id = replay.id;
            continue;
        end if;

        with chosen as materialized (
            select f.*
            from scanwire.replayable_deliveries(
                replay.exporter_id, replay.failed_since, replay.created_at, replay.after_seq, replay.last_seq, room
            ) f
            order by not f.ended, f.seq
            limit room
        ),
        free as materialized (
            select d.id
            from scanwire.deliveries d
            join scanwire.events v on v.id = d.event_id
            where
                d.id = any (array(select c.id from chosen c)) and d.state in ('exhausted', 'poisoned', 'pending', 'held') and v.erased_at is null
            for update of d skip locked
            for share of v skip locked
        ),
        replayed as (
            update scanwire.deliveries d
            set state = 'pending', priority = 1, round = 0, faults = 0, expired_claims = 0, due_at = at, finished_at = null
            from free f
            where d.id = f.id
            returning d.id
        )
        select
            (select count(*) from chosen), (select max(c.seq) from chosen c where c.ended), (select count(*) from replayed)
        into found_count, last_ended, replayed_count;

        update scanwire.replays r
        set
            done = r.done + replayed_count,
            after_seq = coalesce(last_ended, r.after_seq),
            paid_until = greatest(r.paid_until, at - interval '1 second') + found_count * interval '1 second' / r.rate,
            state = case when found_count < room then 'done' else r.state end,
            finished_at = case when found_count < room then at end
        where r.id = replay.id;
    end loop;

    return exists (select from scanwire.replays r where r.state = 'running');
end
$$;
`;

export const replays: SqlMigration = { id: '0026-replays', sql };
