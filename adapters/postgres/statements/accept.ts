/**
 * Stores events with their deliveries, or nothing when an exporter is missing or an event id taken: a refusal, unlike an error,
 * leaves the host's transaction usable. The exporters stay locked against removal until the deliveries are committed.
 *
 * `$1` is a JSON array of `{ place, id, kind, body, created_at, types, exporter_id }`, one of the last two being null.
 */
export const ACCEPT = `
with given as materialized (
    select g.* from json_to_recordset($1::json) as g (
        place integer, id uuid, kind text, body text, created_at timestamptz, types text[], exporter_id uuid
    )
),
addressed as materialized (
    select e.id, e.seq, e.collector, e.type, e.state from scanwire.exporters e
    where
        (e.state = 'running' and e.type in (select unnest(g.types) from given g))
        or e.id in (select g.exporter_id from given g)
    order by e.id
    for key share
),
targets as materialized (
    select g.place, g.id as event_id, g.created_at, g.exporter_id is not null as single, e.id as exporter_id, e.seq, e.collector
    from given g
    join addressed e on e.id = g.exporter_id or (g.exporter_id is null and e.state = 'running' and e.type = any (g.types))
),
verdict as materialized (
    select
        exists (
            select from given g
            where g.exporter_id is not null and not exists (select from targets t where t.place = g.place)
        ) as missing,
        exists (select from scanwire.events v join given g on g.id = v.id)
            or (select count(*) > count(distinct g.id) from given g) as taken
),
new_events as (
    insert into scanwire.events (id, kind, body, created_at)
    select g.id, g.kind, g.body, g.created_at
    from given g
    join verdict on not missing and not taken
),
new_deliveries as (
    insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector)
    select t.event_id, t.exporter_id, t.created_at, case when t.single then 0 else 1 end, t.collector
    from targets t
    join verdict on not missing and not taken
    order by t.place, t.seq
    returning id, seq, event_id
)
select
    verdict.missing,
    verdict.taken,
    g.id as event_id,
    coalesce(json_agg(d.id order by d.seq) filter (where d.id is not null), '[]') as deliveries
from given g
cross join verdict
left join new_deliveries d on d.event_id = g.id
group by g.place, g.id, verdict.missing, verdict.taken
order by g.place`;

export interface AcceptedRow {
    readonly missing: boolean;
    readonly taken: boolean;
    readonly event_id: string;
    readonly deliveries: readonly string[];
}
