import type { SqlMigration } from '../migrate.ts';

/**
 * Finishes attempts that were all delivered, and quickly, by exporters who go on faring well. As finish_attempts, which is called once a second for
 * each exporter, and for all others: most of what is there to decide is decided already.
 */
const sql = `
create function scanwire.finish_delivered(outcomes json, rules json, interruption jsonb, exporters uuid[])
returns setof integer
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    at timestamptz := scanwire.now();
    second_ago timestamptz := at - interval '1 second';
    faring_well boolean;
    held integer[];
begin
    select
        bool_and(
            e.consecutive_failures = 0 and e.failing_since is null and e.slow_start is null and e.paused_until is null
            and not e.answers_slowly and (not e.unwell or e.last_outcome_at > second_ago) and s.at > second_ago
        )
    into faring_well
    from scanwire.exporters e
    left join scanwire.last_successes s on s.exporter_id = e.id
    where e.id = any (exporters);

    if faring_well is not true then
        return query select f from scanwire.finish_attempts(outcomes, rules, interruption) f;
        return;
    end if;

    with input as (
        select distinct on (i.id, i.token) i.*
        from json_to_recordset(outcomes) as i (index integer, id uuid, token text, claimed_at timestamptz, code text, outcome text)
        order by i.id, i.token, i.index
    ),
    holders as materialized (
        select
            i.*,
            d.state = 'queued' as unnamed,
            d.attempts + (d.state = 'queued')::integer as number,
            case when d.state = 'queued' then least(i.claimed_at, at) else d.claimed_at end as began
        from input i
        join scanwire.deliveries d on d.id = i.id
        where d.token = i.token and (d.state = 'sending' or (d.state = 'queued' and i.claimed_at is not null))
        order by d.id
        for update of d
    ),
    moved as (
        update scanwire.deliveries d
        set
            state = 'delivered',
            attempts = h.number,
            round = d.round + h.unnamed::integer,
            faults = 0,
            expired_claims = 0,
            claimed_at = h.began,
            finished_at = at,
            last_code = h.code,
            token = null,
            begin_by = null,
            session = null,
            claim_expires_at = null
        from holders h
        where d.id = h.id
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select h.id, h.number, h.began, at, h.token, false, h.outcome::json
        from holders h
    )
    select coalesce(array_agg(h.index), '{}') into held
    from holders h;

    return query select unnest(held);

    -- Those whose claims were taken away before.
    if cardinality(held) < json_array_length(outcomes) then
        return query
        select f from scanwire.finish_attempts(
            (select json_agg(o) from json_array_elements(outcomes) o where not (o->>'index')::integer = any (held)), rules, interruption
        ) f;
    end if;
end
$$;
`;

export const finishDelivered: SqlMigration = { id: '0048-finish-delivered', sql };
