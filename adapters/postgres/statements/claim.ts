/**
 * Claims attempts. `$1` is a JSON array of {@link ClaimRow}. Rows are locked in the order of their ids, here and wherever several
 * are locked with waiting, so that two callers never wait for each other. A delivery asked for twice goes to the first.
 */
export const CLAIM = `
with asked as (
    select distinct on (a.id) a.*
    from json_to_recordset($1::json) as a (place integer, id uuid, token text, at timestamptz, expires_at timestamptz)
    order by a.id, a.place
),
found as materialized (
    select d.id, d.priority = 0 as single, a.place, a.token, a.at, a.expires_at
    from asked a
    join scanwire.deliveries d on d.id = a.id
    where d.state = 'queued'
    order by d.id
    for update of d
),
moved as (
    update scanwire.deliveries d
    set
        state = case when go.ahead then 'sending' else 'pending' end,
        attempts = d.attempts + go.ahead::integer,
        round = d.round + go.ahead::integer,
        token = case when go.ahead then f.token end,
        claimed_at = case when go.ahead then f.at end,
        claim_expires_at = case when go.ahead then f.expires_at end
    from found f
    join scanwire.deliveries same on same.id = f.id
    join scanwire.exporters e on e.id = same.exporter_id
    cross join lateral (select f.single or e.state = 'running' as ahead) go
    where d.id = f.id
    returning d.id, d.event_id, d.exporter_id, d.attempts, d.round, d.state, f.place, f.single
)
select m.place, m.id as delivery_id, m.attempts, m.round, m.single, v.id as event_id, v.kind, v.body, v.created_at as event_created_at, e.*
from moved m
join scanwire.events v on v.id = m.event_id
join scanwire.exporters e on e.id = m.exporter_id
where m.state = 'sending'`;
