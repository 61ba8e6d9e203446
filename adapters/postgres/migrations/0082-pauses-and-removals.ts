import type { Migration } from '../migrate.ts';
import { COLUMNS, countingAll } from './0076-counting-functions.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/** Who only asks to be left alone takes nothing: an exporter is stopped after that time of answers that are pauses, too. */
const applyHealth = rewritten('apply_health', [
    [
        "case when o.health <> 'none' and at - e.failing_since",
        "case when (o.health <> 'none' or o.pause is not null) and at - e.failing_since",
    ],
]);

/**
 * An exporter with much that waits is removed in steps, none of which holds others up: these cancel some of its deliveries, before it is removed
 * with the rest. Those that wait for others of their order key come first, so that no turn is given on the way.
 */
const cancelling = `
create function scanwire.cancel_some_waiting(exporter uuid, most integer)
returns integer
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    cancelled integer;
begin
    perform set_config('scanwire.counted', 'yes', true);
    with chosen as materialized (
        select w.id from scanwire.deliveries w
        where w.stage = 'waiting' and w.exporter_id = exporter
        order by w.exporter_id desc, w.priority desc, w.due_at desc, w.seq desc
        limit most
    ),
    locked as materialized (
        select s.id from chosen s
        join scanwire.deliveries d on d.id = any (array[s.id])
        where d.state = 'pending'
        order by s.id
        for update of d
    ),
    ended as (
        update scanwire.deliveries d
        set state = 'cancelled', finished_at = scanwire.now(), token = null, collector = e.collector
        from locked l
        cross join scanwire.exporters e
        where d.id = any (array[l.id]) and e.id = exporter
        returning ${COLUMNS}
    ),
    counted as (
        ${countingAll('ended')}
    )
    select count(*) into cancelled from ended;
    perform set_config('scanwire.counted', '', true);
    return cancelled;
end
$$;

-- Returns the number of the last one, behind which the next step goes on; null when there was none.
create function scanwire.cancel_some_held(exporter uuid, before bigint, most integer)
returns bigint
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    last bigint;
begin
    perform set_config('scanwire.counted', 'yes', true);
    with chosen as materialized (
        select h.id, h.seq from scanwire.deliveries h
        where h.stage = 'failed' and h.exporter_id = exporter and h.state = 'held' and h.seq < before
        order by h.exporter_id desc, h.seq desc
        limit most
    ),
    ended as (
        update scanwire.deliveries d
        set state = 'cancelled', finished_at = scanwire.now(), collector = e.collector
        from chosen s
        cross join scanwire.exporters e
        where d.id = any (array[s.id]) and d.state = 'held' and e.id = exporter
        returning ${COLUMNS}
    ),
    counted as (
        ${countingAll('ended')}
    )
    select min(s.seq) into last from chosen s;
    perform set_config('scanwire.counted', '', true);
    return last;
end
$$;
`;

export const pausesAndRemovals: Migration = { id: '0082-pauses-and-removals', sql: `${applyHealth}\n${cancelling}` };
