/**
 * Takes claims away that ran out and renews jobs that were queued too long ago. Rows that somebody else is changing now need
 * no sweeping. `$1` is now, `$2` the time before which a job counts as lost, `$3` how many of each kind, `$4` the outcome of an
 * interrupted attempt.
 */
export const SWEEP = `
with expired as materialized (
    select d.id, d.token, d.claimed_at, d.attempts from scanwire.deliveries d
    where d.stage = 'in flight' and d.state = 'sending' and d.claim_expires_at <= $1::timestamptz
    order by d.claim_expires_at
    limit $3::integer
    for update skip locked
),
interrupted as (
    update scanwire.deliveries d
    set
        state = case when d.priority = 0 then 'exhausted' else 'pending' end,
        due_at = $1::timestamptz,
        priority = case when d.priority = 0 then 0 else 2 end,
        finished_at = case when d.priority = 0 then $1::timestamptz end,
        last_code = $4::jsonb->>'code',
        token = null,
        claim_expires_at = null
    from expired x
    where d.id = x.id
    returning d.state
),
recorded as (
    insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
    select x.id, x.attempts, x.claimed_at, $1::timestamptz, x.token, true, scanwire.interruption($4::jsonb, $1::timestamptz - x.claimed_at)
    from expired x
),
forgotten as materialized (
    select d.id from scanwire.deliveries d
    where d.stage = 'in flight' and d.state = 'queued' and d.queued_at < $2::timestamptz
    order by d.queued_at
    limit $3::integer
    for update skip locked
),
renewed as (
    update scanwire.deliveries d
    set queued_at = $1::timestamptz
    from forgotten f
    where d.id = f.id
    returning d.id, d.exporter_id, d.collector, d.attempts + 1 as attempt
)
select
    (select count(*)::integer from interrupted) as interrupted,
    (select count(*)::integer from interrupted i where i.state = 'exhausted') as exhausted,
    (
        select coalesce(
            json_agg(json_build_object('deliveryId', r.id, 'collector', coalesce(e.collector, r.collector), 'attempt', r.attempt)),
            '[]'
        )
        from renewed r
        left join scanwire.exporters e on e.id = r.exporter_id
    ) as requeue`;
