import { DELIVERY_COLUMNS } from '../webhook-rows.ts';

/** `$1` now, `$2` window, `$3` failures from which an exporter is probed only, `$4` limit. */
export const DISPATCH = 'select delivery_id, collector, attempt from scanwire.dispatch_deliveries($1, $2, $3, $4)';

export const GET: string = `
select ${DELIVERY_COLUMNS}
from scanwire.deliveries d
join scanwire.events v on v.id = d.event_id
left join scanwire.exporters e on e.id = d.exporter_id
where d.id = $1`;

/** An open attempt is part of its delivery; the settled ones have rows. */
export const ATTEMPTS = `
select a.number, a.started_at, a.finished_at, a.outcome, a.late
from scanwire.attempts a
where a.delivery_id = $1
union all
select d.attempts, d.claimed_at, null, null, false
from scanwire.deliveries d
where d.id = $1 and d.state = 'sending'
order by number`;

/** The exporter is locked against removal, as in `accept`. */
export const REPLAY: string = `
with exporter as materialized (
    select e.id, e.collector from scanwire.exporters e
    where e.id = (select d.exporter_id from scanwire.deliveries d where d.id = $1)
    for key share
),
replayed as (
    update scanwire.deliveries d
    set state = 'pending', priority = least(d.priority, 1), round = 0, due_at = $2, finished_at = null
    from exporter e
    where d.id = $1 and d.exporter_id = e.id and d.state in ('delivered', 'exhausted')
    returning d.*
)
select ${DELIVERY_COLUMNS}
from replayed d
join exporter e on e.id = d.exporter_id
join scanwire.events v on v.id = d.event_id`;

/** Which of the partial indexes holds the deliveries of a state. */
export const STAGES = {
    pending: 'waiting',
    queued: 'in flight',
    sending: 'in flight',
    delivered: 'delivered',
    exhausted: 'failed',
    cancelled: 'failed',
} as const;
