import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * What PostgreSQL keeps of a table as text, the conditions of its triggers, its checks and how it generates columns, it reads and plans anew in each
 * statement that writes it. For one delivery that was an eighth of all that accepting and finishing it took.
 */

/** As a function that the trigger calls. */
const keepsOrder = rewritten('keep_order', [
    ['FUNCTION scanwire.keep_order()', 'FUNCTION scanwire.keeps_order(old scanwire.deliveries, new scanwire.deliveries)'],
    ['RETURNS trigger', 'RETURNS boolean'],
    ['return new;', 'return true;'],
    ['return null;', 'return false;'],
]);

const table = `
-- In this order: whoever comes between waits for the table, and finds either all of it or nothing.
drop trigger deliveries_inserted_ended_as on scanwire.deliveries;
drop trigger deliveries_inserted_flight on scanwire.deliveries;
drop trigger deliveries_inserted_waiting on scanwire.deliveries;
drop trigger deliveries_ended_as on scanwire.deliveries;
drop trigger deliveries_flight on scanwire.deliveries;
drop trigger deliveries_order on scanwire.deliveries;
drop trigger deliveries_turns on scanwire.deliveries;
drop function scanwire.set_ended_as();
drop function scanwire.number_flight();
drop function scanwire.hold_waiting_marks();
drop function scanwire.keep_order();

-- The trigger knows the states, and gives a stage to no other, which no row may lack.
alter table scanwire.deliveries
    drop constraint deliveries_state_check,
    alter column stage drop expression;

-- In one expression, so that no statement is made of it where it is called. The lock comes before the number: see the mark of flights.
create or replace function scanwire.next_flight(reached bigint)
returns bigint
language sql
as $$
    select case
        when pg_advisory_xact_lock_shared(hashtext('scanwire.flights'), (reached >> 8)::integer) is null then null
        else nextval('scanwire.flights')
    end
$$;

create function scanwire.store_delivery()
returns trigger
language plpgsql
as $$
begin
    new.stage := case new.state
        when 'queued' then 'in flight'
        when 'delivered' then 'delivered'
        when 'sending' then 'in flight'
        when 'pending' then 'waiting'
        when 'held' then 'failed'
        when 'exhausted' then 'failed'
        when 'poisoned' then 'failed'
        when 'cancelled' then 'failed'
        when 'erased' then 'failed'
    end;

    if new.ended_as is not null or new.stage = 'failed' then
        new.ended_as := case when new.stage = 'failed' then new.state end;
        if current_setting('scanwire.counted', true) is distinct from 'yes' and new.state <> old.state then
            perform scanwire.count_delivery(new.exporter_id, new.kind, new.seq, old.state, old.last_code, new.state, new.last_code);
        end if;
    end if;

    if new.state = 'queued' and old.state is distinct from 'queued' then
        new.flight := scanwire.next_flight(coalesce(pg_sequence_last_value('scanwire.flights'), 1));
    elsif new.state = 'pending' and tg_op = 'INSERT' then
        -- What the transactions of the application have accepted and not committed yet keeps the marks below it.
        perform pg_advisory_xact_lock_shared(hashtext('scanwire.waiting_marks'), floor(extract(epoch from new.due_at))::integer);
    end if;

    if old.order_key is not null and new.state <> old.state and new.state <> 'sending' and not scanwire.keeps_order(old, new) then
        return null;
    end if;
    return new;
end
$$;

create trigger deliveries_stored
before insert or update of state, stage on scanwire.deliveries
for each row
execute function scanwire.store_delivery();

-- Its condition would be read after each statement, which takes longer than the call.
create or replace function scanwire.give_told_turns()
returns trigger
language plpgsql
as $$
declare
    told text := current_setting('scanwire.turns', true);
begin
    if told <> '' then
        perform set_config('scanwire.turns', '', true);
        perform scanwire.give_turns(('[' || rtrim(told, ',') || ']')::json);
    end if;
    return null;
end
$$;

create trigger deliveries_turns
after update on scanwire.deliveries
for each statement
execute function scanwire.give_told_turns();
`;

/** Whether first tries of the exporter `e.id` wait, and whether retries do, as acceptance told it within the statement that stores deliveries. */
const RETRIES_WAIT = `exists (
        select from scanwire.deliveries w
        where
            w.stage = 'waiting' and w.exporter_id = e.id and w.priority = 2 and w.due_at <= at
            and w.due_at >= coalesce(
                (select m.due_from from scanwire.waiting_marks m where m.exporter_id = e.id and m.priority = 2), '-infinity'
            )
    )`;
const OTHERS_WAIT = (from: string): string => `exists (
            select from ${from}
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
        )`;

const GRANTED = `not e.holds and e.places - case when ${RETRIES_WAIT} then (max_in_flight + 7) / 8 else 0 end > 0 and not ${OTHERS_WAIT('(values (1::smallint)) c (priority)')}`;

/**
 * What an event that comes alone needs to know is asked in two statements, and not in six: of exporters, and of what is in flight and waits. Where nothing
 * waits, and there are places for all, there is nothing more to ask of each of them.
 */
const IN_FEWER_STATEMENTS = [
    [
        '    settings_generation integer := coalesce((select p.generation from scanwire.deployment p), 0);\n',
        '    settings_generation integer;\n    anything_waits boolean;\n    granted boolean[];\n',
    ],
    ['    flying bigint;\n    flying_own bigint;\n    flying_beside bigint;\n    late boolean;\n', ''],
    [
        '(select s.revision from scanwire.subscriptions s) is true,\n        array_agg',
        `(select s.revision from scanwire.subscriptions s) is true,
        coalesce((select p.generation from scanwire.deployment p), 0),
        array_agg`,
    ],
    ['into is_outdated, receiving,', 'into is_outdated, settings_generation, receiving,'],
    [
        `        select count(*), count(*) filter (where f.own), count(*) filter (where not f.own and not f.late), bool_or(f.own and f.late)
        into flying, flying_own, flying_beside, late
        from (
            select
`,
        `        select
            least(
                least(max_in_flight, greatest(1, (s.slots - f.flying) / (cardinality(receiving) + f.beside))) - f.own,
                s.slots - f.flying
            ),
            ${OTHERS_WAIT('unnest(receiving) e (id)\n            cross join (values (1::smallint), (2::smallint)) c (priority)')}
        into least_places, anything_waits
        from (
            select
                count(*) as flying, count(*) filter (where f.own) as own, count(*) filter (where not f.own and not f.late) as beside,
                bool_or(f.own and f.late) as late
            from (
            select
`,
    ],
    [
        `            limit 100
        ) f;
        if late is not true and flying < 100 then
            select least(least(max_in_flight, greatest(1, r.room / (cardinality(receiving) + flying_beside))) - flying_own, r.room)
            into least_places
            from (
                select 2 * coalesce(sum((w.slots->>collectors[1])::integer), default_slots) - flying as room
                from scanwire.worker_sessions w
                where w.alive_until > at
            ) r;
        end if;
`,
        `            limit 100
            ) f
        ) f
        cross join (
            select 2 * coalesce(sum((w.slots->>collectors[1])::integer), default_slots) as slots
            from scanwire.worker_sessions w
            where w.alive_until > at
        ) s
        where f.late is not true and f.flying < 100;
`,
    ],
    [
        '    if least_places between',
        '    -- A statement of its own, even where the first part says no.\n    if anything_waits then if least_places between',
    ],
    ['        least_places := null;\n    end if;\n', '        least_places := null;\n    end if; end if;\n'],
    [
        `    insert into scanwire.events (`,
        `    if least_places > 0 and not anything_waits then
        granted := array_fill(true, array[cardinality(receiving)]);
    elsif places is not null then
        select array_agg(
            ${GRANTED}
            order by e.index
        ) into granted
        from unnest(receiving, holding, places) with ordinality e (id, holds, places, index);
    end if;

    insert into scanwire.events (`,
    ],
    ['holding, places) e (', 'holding, granted) e ('],
    ['collector, holds, places)\n', 'collector, holds, granted)\n'],
    [
        `    cross join lateral (
        select ${GRANTED} as granted
        offset 0
    ) g
`,
        '',
    ],
    ['g.granted', 'e.granted'],
] as const;

/** The event and its deliveries. One with a key of the caller's has to know in between whether it is there already. */
const STORED_AT_ONCE = [
    [
        '    insert into scanwire.events (id, kind, body, owner, created_at) values (event_id, event_kind, event_body, event_owner, at);\n\n',
        '',
    ],
    [
        '    return query\n    insert into',
        `    return query
    with stored as (
        insert into scanwire.events (id, kind, body, owner, created_at) values (event_id, event_kind, event_body, event_owner, at)
    )
    insert into`,
    ],
] as const;

const acceptance = `
${rewritten('accept_single_event', [...IN_FEWER_STATEMENTS, ...STORED_AT_ONCE])}
${rewritten('accept_single_chosen_event', IN_FEWER_STATEMENTS)}`;

export const acceptedForLess: Migration = { id: '0095-accepted-for-less', sql: `${keepsOrder}${table}${acceptance}` };
