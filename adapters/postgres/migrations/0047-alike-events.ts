import type { SqlMigration } from '../migrate.ts';

/**
 * Acceptance of events that are all for the same exporters: those that have not chosen, which is what most are. As accept_events, which goes on
 * for all others, in smaller statements: to set up the plan of that one costs more than all the work that there is for a single event.
 *
 * An event that is there already is an error of its key. So this is not for transactions of the application, which an error would end.
 */
const sql = `
create function scanwire.accept_alike_events(
    ids uuid[], events json, wanted text[], revision bigint, begin_within interval,
    max_in_flight integer, breaker_after integer, default_slots integer, slow_after double precision
)
returns table (outdated boolean, event_id uuid, deliveries json)
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    -- before anything is waited for, so that a claim never holds for longer after what was read with it
    at timestamptz := scanwire.now();
    is_outdated boolean;
    receiving uuid[];
    collectors text[];
    holding boolean[];
    roomy uuid[];
    generations integer[];
    places integer[];
begin
    -- One snapshot: who has begun to choose meanwhile has changed the revision.
    select
        revision <> (select s.revision from scanwire.subscriptions s) is true,
        array_agg(x.id order by x.seq), array_agg(x.collector order by x.seq), array_agg(x.holds order by x.seq)
    into is_outdated, receiving, collectors, holding
    from (
        select e.id, e.seq, e.collector, e.state <> 'running' as holds from scanwire.exporters e
        where (e.state = 'running' or e.stop_reason is not null) and not e.selective and e.type = any (wanted)
        order by e.id
        for key share
    ) x;

    if is_outdated then
        outdated := true;
        return next;
        return;
    end if;

    if begin_within is not null and receiving is not null then
        select array_agg(r.exporter_id), array_agg(r.generation), array_agg(least(r.share - r.flying, r.pool_room))
        into roomy, generations, places
        from scanwire.rooms_of(receiving, at, max_in_flight, breaker_after, default_slots, slow_after) r
        where
            r.steady and r.share > r.flying and r.pool_room > 0
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
            );
    end if;

    insert into scanwire.events (id, kind, body, owner, created_at)
    select i.id, i.kind, i.body, i.owner, at
    from json_to_recordset(events) as i (id uuid, kind text, body text, owner text);

    return query
    with new_deliveries as (
        insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state, queued_at, token, begin_by)
        select
            i.id, e.id, at, 1, e.collector,
            case when e.holds then 'held' when g.granted then 'queued' else 'pending' end,
            case when g.granted then at end,
            case when g.granted then gen_random_uuid()::text end,
            case when g.granted then at + begin_within end
        from unnest(ids) with ordinality i (id, index)
        cross join unnest(receiving, collectors, holding) with ordinality e (id, collector, holds, index)
        left join unnest(roomy, places) r (exporter_id, places) on r.exporter_id = e.id
        cross join lateral (select not e.holds and i.index <= coalesce(r.places, 0) as granted) g
        order by i.index, e.index
        returning id, seq, event_id, exporter_id, collector, token, begin_by
    )
    select
        false,
        i.id,
        coalesce(
            json_agg(
                json_build_object(
                    'id', d.id, 'exporterId', d.exporter_id, 'collector', d.collector, 'token', d.token,
                    'beginBy', extract(epoch from d.begin_by) * 1000,
                    'generation', generations[array_position(roomy, d.exporter_id)],
                    'settings', coalesce((select p.generation from scanwire.deployment p), 0)
                )
                order by d.seq
            ) filter (where d.id is not null),
            '[]'
        )
    from unnest(ids) with ordinality i (id, index)
    left join new_deliveries d on d.event_id = i.id
    group by i.index, i.id
    order by i.index;
end
$$;
`;

export const alikeEvents: SqlMigration = { id: '0047-alike-events', sql };
