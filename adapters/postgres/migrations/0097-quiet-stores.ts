import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * While nothing happens, each process looked for due deliveries, lost ones, replays and notices again and again, and read the settings. Its heartbeat tells of
 * all but the first, and the hand-out says when the next delivery will be due.
 */

/** Beside the heartbeat of earlier releases, which may still run. What may be in flight begins at the mark that sweeps raise. */
const HEARTBEAT = `
grant select on sequence scanwire.deliveries_seq_seq to public;
create function scanwire.heartbeat(
    session_id uuid, its_process text, its_slots json, duration double precision, its_generation integer, spoken timestamptz, begun json,
    opens boolean
)
returns table (
    now timestamptz, settings integer, accepted double precision, in_flight boolean, replays boolean, notices boolean
)
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    mark bigint := (select l.last_value from scanwire.landed_flights l);
begin
    now := scanwire.keep_alive(session_id, its_process, its_slots, duration, its_generation, spoken, begun, opens);
    select
        coalesce((select p.generation from scanwire.deployment p), 0),
        (select s.last_value from scanwire.deliveries_seq_seq s),
        exists (select from scanwire.deliveries d where d.stage = 'in flight' and d.flight >= mark),
        exists (select from scanwire.replays r where r.state = 'running'),
        exists (select from scanwire.exporter_notices n)
    into settings, accepted, in_flight, replays, notices;
    return next;
end
$$;
`;

/** Where nothing is due, \`single\` of the first row is true, and \`attempt\` says in how many milliseconds something will be: null for never. */
const handOut = rewritten('hand_out_due_deliveries', [
    ['    recoveries timestamptz[];\n', '    recoveries timestamptz[];\n    next_due timestamptz;\n'],
    [
        `    due_classes as (
        select w.exporter_id, w.priority, w.due_at, x.recovered_at
`,
        `    first_classes as (
        select w.exporter_id, w.priority, w.due_at, x.recovered_at, w.due_at <= at or x.recovered_at is not null as is_due
`,
    ],
    [
        `        where w.due_at <= at or x.recovered_at is not null
    )
    select array_agg(c.exporter_id), array_agg(c.priority), array_agg(c.due_at), array_agg(c.recovered_at)
    into due_exporters, due_priorities, due_first, recoveries
    from due_classes c;
    if due_exporters is null then
        waits_for := '{}';
`,
        `    )
    select
        array_agg(c.exporter_id) filter (where c.is_due), array_agg(c.priority) filter (where c.is_due),
        array_agg(c.due_at) filter (where c.is_due), array_agg(c.recovered_at) filter (where c.is_due), min(c.due_at)
    into due_exporters, due_priorities, due_first, recoveries, next_due
    from first_classes c;
    if due_exporters is null then
        waits_for := '{}';
        single := true;
        attempt := case when next_due is not null then least(ceil(extract(epoch from next_due - at) * 1000), 2000000000) end;
`,
    ],
]);

export const quietStores: Migration = {
    id: '0097-quiet-stores',
    sql: [HEARTBEAT, handOut].join('\n'),
};
