/** The settlements of `$1`; `outcome` is the text of its JSON, which may hold what `jsonb` refuses. */
const TOLD = `
    select t.* from json_to_recordset($1::json) as t (
        place integer, id uuid, exporter_id uuid, token text, finished_at timestamptz, code text, outcome text,
        state text, due_at timestamptz, health text, probe_at timestamptz, stop_reason text
    )`;

/**
 * Records the outcomes of those who still hold their claims, and answers with their places.
 *
 * An exporter is written only when its health changes; it is locked before the deliveries, in the order in which a removal
 * locks them. `held` is what a claim's holder may change: the lock makes sure that it still is the holder.
 */
export const SETTLE: string = `
with told as materialized (${TOLD}
),
exporters_first as materialized (
    select e.id
    from scanwire.exporters e
    join (
        select
            t.exporter_id,
            bool_or(t.health = 'failure' or t.stop_reason is not null) as failed,
            bool_or(t.health = 'success') as succeeded
        from told t
        group by t.exporter_id
    ) t on t.exporter_id = e.id
    where t.failed or (t.succeeded and e.consecutive_failures > 0)
    order by e.id
    for no key update of e
),
held as materialized (
    select t.*, d.attempts, d.claimed_at
    from (select distinct on (t.id, t.token) t.* from told t order by t.id, t.token, t.place) t
    join scanwire.deliveries d on d.id = t.id
    where d.state = 'sending' and d.token = t.token and (select count(*) from exporters_first) >= 0
    order by d.id
    for update of d
),
moved as (
    update scanwire.deliveries d
    set
        state = h.state,
        due_at = coalesce(h.due_at, d.due_at),
        priority = case when h.state = 'pending' and d.priority > 0 then 2 else d.priority end,
        finished_at = case when h.state <> 'pending' then h.finished_at end,
        last_code = h.code,
        token = null,
        claim_expires_at = null
    from held h
    where d.id = h.id
),
recorded as (
    insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
    select h.id, h.attempts, h.claimed_at, h.finished_at, h.token, false, h.outcome::json
    from held h
),
health as (
    select
        h.exporter_id,
        max(h.last_success) is not null as recovered,
        (count(*) filter (where h.failed))::integer as failures,
        (array_agg(h.probe_at order by h.place desc) filter (where h.failed and h.probe_at is not null))[1] as probe_at
    from (
        select s.*, s.health = 'failure' and s.place > coalesce(s.last_success, -1) as failed
        from (
            select h.*, max(h.place) filter (where h.health = 'success') over (partition by h.exporter_id) as last_success
            from held h
        ) s
    ) h
    group by h.exporter_id
),
stops as (
    select distinct on (h.exporter_id) h.exporter_id, h.stop_reason, h.finished_at
    from held h
    where h.stop_reason is not null
    order by h.exporter_id, h.place
),
exporters_after as (
    update scanwire.exporters e
    set
        consecutive_failures = h.failures + case when h.recovered then 0 else e.consecutive_failures end,
        probe_at = coalesce(h.probe_at, case when not h.recovered then e.probe_at end),
        state = case when s.exporter_id is null then e.state else 'stopped' end,
        stop_reason = case when e.state = 'running' and s.exporter_id is not null then s.stop_reason else e.stop_reason end,
        updated_at = case when e.state = 'running' and s.exporter_id is not null then s.finished_at else e.updated_at end
    from health h
    left join stops s on s.exporter_id = h.exporter_id
    where e.id = h.exporter_id and (h.failures > 0 or s.exporter_id is not null or (h.recovered and e.consecutive_failures > 0))
)
select h.place from held h`;

/**
 * Completes attempts whose claims were taken away before. A statement of its own, so that it sees what the one that took the
 * claim away has committed in the meantime.
 */
export const SETTLE_LATE: string = `
update scanwire.attempts a
set finished_at = t.finished_at, outcome = t.outcome::json, late = true
from (${TOLD}
) t
where a.delivery_id = t.id and a.token = t.token and a.lost and not a.late`;
