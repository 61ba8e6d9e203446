import type { SqlMigration } from '../migrate.ts';

/**
 * One event, as accept_alike_events accepts several, and one delivery, as finish_delivered finishes several: at the rates of most deployments
 * nearly all come alone, and for one row the setting up of joins and aggregates costs as much as the work.
 *
 * What there is room for is told without rooms_of as long as little is in flight, fewer than a hundred. Let f be that, and c the exporters of the
 * event, none of them slow, slowed down or limited. Then at most c + f share their places, of which at most f are taken, and what rooms_of would
 * give each is at least (2 × slots - f) / (c + f) - f.
 */
/** @param whose Whose late attempts count. */
const acceptSingle = (create: string, whose = ''): string => `${create} scanwire.accept_single_event(
    event_id uuid, event_kind text, event_body text, event_owner text, wanted text[], revision bigint, begin_within interval,
    max_in_flight integer, breaker_after integer, default_slots integer, slow_after double precision
)
returns table (
    outdated boolean, delivery_id uuid, exporter_id uuid, collector text, token text, begin_by timestamptz, generation integer, settings integer
)
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
    generations integer[];
    places bigint[];
    faring_well boolean;
    flying bigint;
    late boolean;
    least_places bigint;
    settings_generation integer := coalesce((select p.generation from scanwire.deployment p), 0);
begin
    -- One snapshot: who has begun to choose meanwhile has changed the revision.
    select
        revision <> (select s.revision from scanwire.subscriptions s) is true,
        array_agg(x.id), array_agg(x.collector), array_agg(x.holds), array_agg(x.generation),
        bool_and(x.well) and min(x.collector) = max(x.collector)
    into is_outdated, receiving, collectors, holding, generations, faring_well
    from (
        select
            e.id, e.collector, e.generation, e.state <> 'running' as holds,
            e.state = 'running' and e.paused_at is null and e.paused_until is null and e.consecutive_failures < breaker_after
                and e.slow_start is null and e.rate is null and not e.answers_slowly as well
        from scanwire.exporters e
        where (e.state = 'running' or e.stop_reason is not null) and not e.selective and e.type = any (wanted)
        order by e.seq
        for key share
    ) x;

    if is_outdated then
        outdated := true;
        return next;
        return;
    end if;

    if begin_within is not null and faring_well then
        select count(*), bool_or(f.late) into flying, late
        from (
            select ${whose}d.state = 'sending' and d.claimed_at < at - slow_after * interval '1 millisecond' as late
            from scanwire.deliveries d
            where d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
            limit 100
        ) f;
        if late is not true and flying < 100 then
            select
                least(
                    max_in_flight,
                    (2 * coalesce(sum((w.slots->>collectors[1])::integer), default_slots) - flying) / (cardinality(receiving) + flying)
                ) - flying
            into least_places
            from scanwire.worker_sessions w
            where w.alive_until > at;
        end if;
    end if;

    if least_places > 0 then
        places := array_fill(least_places, array[cardinality(receiving)]);
    elsif begin_within is not null and receiving is not null then
        select array_agg(least(r.share - r.flying, r.pool_room) order by x.index) into places
        from unnest(receiving) with ordinality x (id, index)
        left join (
            select * from scanwire.rooms_of(receiving, at, max_in_flight, breaker_after, default_slots, slow_after) where steady
        ) r on r.exporter_id = x.id;
    end if;

    insert into scanwire.events (id, kind, body, owner, created_at) values (event_id, event_kind, event_body, event_owner, at);

    return query
    insert into scanwire.deliveries as d (event_id, exporter_id, due_at, priority, collector, state, queued_at, token, begin_by)
    select
        event_id, e.id, at, 1, e.collector,
        case when e.holds then 'held' when g.granted then 'queued' else 'pending' end,
        case when g.granted then at end,
        case when g.granted then gen_random_uuid()::text end,
        case when g.granted then at + begin_within end
    from unnest(receiving, collectors, holding, places) e (id, collector, holds, places)
    cross join lateral (
        select not e.holds and e.places > 0 and not exists (
            select from (values (1::smallint), (2::smallint)) c (priority)
            cross join lateral (
                select from scanwire.deliveries w
                where
                    w.stage = 'waiting' and w.exporter_id = e.id and w.priority = c.priority and w.due_at <= at
                    and w.due_at >= coalesce(
                        (select m.due_from from scanwire.waiting_marks m where m.exporter_id = e.id and m.priority = c.priority),
                        '-infinity'
                    )
                limit 1
            ) w
        ) as granted
        offset 0
    ) g
    returning
        false, d.id, d.exporter_id, d.collector, d.token, d.begin_by,
        generations[array_position(receiving, d.exporter_id)], settings_generation;
end
$$;

`;

/** What is late of exporters that do not get the event makes none of those slow that do. For a later migration. */
export const acceptSingleBesideLate: string = acceptSingle('create or replace function', 'd.exporter_id = any (receiving) and ');

const sql = `
${acceptSingle('create function')}create function scanwire.finish_single_delivered(
    outcomes text, rules text, interruption text, exporter uuid, delivery uuid, held_token text, begun timestamptz, outcome_code text, outcome text
)
returns setof integer
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    at timestamptz := scanwire.now();
    second_ago timestamptz := at - interval '1 second';
    faring_well boolean;
    attempt integer;
    began timestamptz;
begin
    select
        e.consecutive_failures = 0 and e.failing_since is null and e.slow_start is null and e.paused_until is null
        and not e.answers_slowly and (not e.unwell or e.last_outcome_at > second_ago) and s.at > second_ago
    into faring_well
    from scanwire.exporters e
    left join scanwire.last_successes s on s.exporter_id = e.id
    where e.id = exporter;

    if faring_well then
        update scanwire.deliveries d
        set
            state = 'delivered',
            attempts = d.attempts + (d.state = 'queued')::integer,
            round = d.round + (d.state = 'queued')::integer,
            faults = 0,
            expired_claims = 0,
            claimed_at = case when d.state = 'queued' then least(begun, at) else d.claimed_at end,
            finished_at = at,
            last_code = outcome_code,
            token = null,
            begin_by = null,
            session = null,
            claim_expires_at = null
        where d.id = delivery and d.token = held_token and (d.state = 'sending' or (d.state = 'queued' and begun is not null))
        returning d.attempts, d.claimed_at into attempt, began;

        if found then
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
            values (delivery, attempt, began, at, held_token, false, outcome::json);
            return next 0;
            return;
        end if;
    end if;

    return query select f from scanwire.finish_attempts(outcomes::json, rules::json, interruption::jsonb) f;
end
$$;
`;

export const single: SqlMigration = { id: '0060-single', sql };
