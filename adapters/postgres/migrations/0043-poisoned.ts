import type { Migration } from '../migrate.ts';

/** Which deliveries a sweep sets aside is told to who sweeps. Processes of the version before go on with the function that they know. */
const sql = `
-- Takes claims away that ran out or whose session is silent or was ended ('ended_only': was ended), and renews and returns jobs that
-- were queued too long ago, as DeliveryStore.sweep says, with the ids of those that are set aside for good. Rows that somebody else is
-- changing now need no sweeping.
create function scanwire.sweep_and_tell(
    requeue_after interval, max_rows integer, poisoned_after integer, interruption jsonb, ended_only boolean
)
returns table (delivery_id uuid, exporter_id uuid, collector text, attempt integer, single boolean, poisoned boolean)
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    mark bigint := (select l.last_value from scanwire.landed_flights l);
begin
    if not ended_only then
        delete from scanwire.worker_sessions s where s.alive_until < at - interval '1 hour';
    end if;

    return query
    with expired as materialized (
        select d.id, d.token, d.claimed_at, d.attempts, d.priority, d.faults, d.expired_claims + 1 as expired_claims
        from scanwire.deliveries d
        where
            d.stage = 'in flight' and d.flight >= mark and d.state = 'sending'
            and (
                (d.claim_expires_at <= at and not ended_only)
                or (
                    d.session is not null
                    and not exists (
                        select from scanwire.worker_sessions s where s.id = d.session and (s.alive_until > at or ended_only)
                    )
                )
            )
        order by d.claim_expires_at
        limit max_rows
        for update skip locked
    ),
    judged as (
        select x.*, case when x.priority = 0 then 'exhausted' when x.expired_claims >= poisoned_after then 'poisoned' else 'pending' end as next
        from expired x
    ),
    interrupted as (
        update scanwire.deliveries d
        set
            state = j.next,
            due_at = case when j.next = 'pending' then at + scanwire.fault_delay(j.faults + 1) else d.due_at end,
            round = d.round - 1,
            faults = j.faults + 1,
            expired_claims = j.expired_claims,
            finished_at = case when j.next <> 'pending' then at end,
            last_code = interruption->>'code',
            token = null,
            session = null,
            claim_expires_at = null
        from judged j
        where d.id = j.id
        returning d.id, d.state
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select x.id, x.attempts, x.claimed_at, at, x.token, true, scanwire.interruption(interruption, at - x.claimed_at)
        from expired x
    ),
    lost as materialized (
        select d.id from scanwire.deliveries d
        where d.stage = 'in flight' and d.flight >= mark and d.state = 'queued' and d.queued_at < at - requeue_after
        order by d.queued_at
        limit max_rows
        for update skip locked
    ),
    renewed as (
        update scanwire.deliveries d
        set queued_at = at
        from lost l
        where d.id = l.id
        returning d.id, d.exporter_id, d.collector, d.attempts + 1 as attempt, d.priority = 0 as single
    )
    select r.id, r.exporter_id, coalesce(e.collector, r.collector), r.attempt, r.single, false
    from renewed r
    left join scanwire.exporters e on e.id = r.exporter_id
    union all
    select i.id, null, null, null, null, true
    from interrupted i
    where i.state = 'poisoned';
end
$$;
`;

export const poisoned: Migration = { id: '0043-poisoned', sql };
