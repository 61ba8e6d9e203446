/**
 * Claims attempts. The open attempt is the delivery row itself, so that a claim writes one row, and no index.
 *
 * `$1` is a JSON array of `{ place, id, token, at, expires_at }`. Here and wherever several deliveries are locked with waiting,
 * this happens in the order of their ids, so that two callers never wait for each other.
 */
export const CLAIM = `
with asked as (
    select distinct on (a.id) a.*
    from json_to_recordset($1::json) as a (place integer, id uuid, token text, at timestamptz, expires_at timestamptz)
    order by a.id, a.place
),
found as materialized (
    select a.*, d.priority = 0 as single, d.priority = 0 or e.state = 'running' as go
    from asked a
    join scanwire.deliveries d on d.id = a.id
    join scanwire.exporters e on e.id = d.exporter_id
    where d.state = 'queued'
    order by d.id
    for update of d
),
moved as (
    update scanwire.deliveries d
    set
        state = case when f.go then 'sending' else 'pending' end,
        attempts = d.attempts + f.go::integer,
        round = d.round + f.go::integer,
        token = case when f.go then f.token end,
        claimed_at = case when f.go then f.at end,
        claim_expires_at = case when f.go then f.expires_at end
    from found f
    where d.id = f.id
    returning f.place, f.go, f.token, f.single, d.id, d.event_id, d.exporter_id, d.attempts, d.round
)
select
    m.place,
    m.id as delivery_id,
    m.token as claim_token,
    m.attempts as attempt,
    m.round,
    m.single,
    v.id as event_id,
    v.kind,
    v.body,
    v.created_at as event_created_at,
    e.*
from moved m
join scanwire.events v on v.id = m.event_id
join scanwire.exporters e on e.id = m.exporter_id
where m.go`;
