import type { SqlMigration } from '../migrate.ts';

/**
 * The last success of an exporter, noted once a second, in a table of its own: the exporter's row is read several times on the way of each
 * delivery, and beside somebody who reads an old snapshot all its versions are. Processes of the version before heed it too; what they show
 * as an exporter's last outcome may be older.
 */
const sql = `
create table scanwire.last_successes (
    exporter_id uuid primary key,
    outcome json not null,
    at timestamptz not null
) with (fillfactor = 50);

create function scanwire.forget_last_success()
returns trigger
language plpgsql
as $$
begin
    delete from scanwire.last_successes s where s.exporter_id = old.id;
    return null;
end
$$;

create trigger exporters_last_success
after delete on scanwire.exporters
for each row
execute function scanwire.forget_last_success();

-- Of those noted a second ago or never. An exporter that is being removed is left out, and not waited for.
create function scanwire.note_successes(outcomes json, at timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    second_ago timestamptz := at - interval '1 second';
begin
    with due as materialized (
        select distinct on (i.exporter_id) i.exporter_id, i.last_outcome
        from json_to_recordset(outcomes) as i (index integer, exporter_id uuid, health text, last_outcome text)
        where
            i.health = 'success'
            and not exists (select from scanwire.last_successes s where s.exporter_id = i.exporter_id and s.at > second_ago)
        order by i.exporter_id, i.index desc
    ),
    kept as materialized (
        select d.* from due d
        join scanwire.exporters e on e.id = d.exporter_id
        order by d.exporter_id
        for key share of e skip locked
    )
    insert into scanwire.last_successes as s (exporter_id, outcome, at)
    select k.exporter_id, k.last_outcome::json, note_successes.at from kept k
    on conflict (exporter_id) do update set outcome = excluded.outcome, at = excluded.at where s.at <= second_ago;
end
$$;

-- As before, but exporters who go on faring well are neither locked nor written.
create or replace function scanwire.finish_attempts(outcomes json, rules json, interruption jsonb)
returns setof integer
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
    changing uuid[];
    held integer[];
    noted json;
begin
    -- Exporters are locked before the deliveries, in the order in which a removal locks them.
    select array_agg(x.id) into changing
    from (
        select e.id from scanwire.exporters e
        join (
            select
                i.exporter_id,
                bool_or(i.health = 'failure' or i.pause is not null or i.stop_reason is not null) as changes,
                bool_or(i.health = 'success') as succeeded,
                bool_or(i.health = 'success' and i.took <= (rules->>'quickWithin')::double precision) as quick,
                bool_or(i.health <> 'none' and i.took >= (rules->>'slowAfter')::double precision) as slow
            from json_to_recordset(outcomes) as i (
                exporter_id uuid, health text, took double precision, pause double precision, stop_reason text
            )
            group by i.exporter_id
        ) i on i.exporter_id = e.id
        where
            i.changes
            or (
                i.succeeded and (
                    e.consecutive_failures > 0 or e.failing_since is not null or e.slow_start is not null or e.paused_until is not null
                    or (e.unwell and e.last_outcome_at > at - interval '1 second' is not true)
                )
            )
            or case when e.answers_slowly then i.quick else i.slow end
        order by e.id
        for no key update of e
    ) x;

    with input as (
        select distinct on (i.id, i.token) i.*
        from json_to_recordset(outcomes) as i (
            index integer, id uuid, exporter_id uuid, token text, claimed_at timestamptz, code text, outcome text, last_outcome text,
            state text, delay double precision, fault boolean, health text, took double precision, pause double precision, stop_reason text
        )
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
            state = h.state,
            due_at = case
                when h.state <> 'pending' then d.due_at
                when h.fault then at + scanwire.fault_delay(d.faults + 1)
                else at + h.delay * interval '1 millisecond'
            end,
            attempts = h.number,
            -- a fault of ours uses up no try
            round = d.round + h.unnamed::integer - h.fault::integer,
            faults = case when h.fault then d.faults + 1 else 0 end,
            expired_claims = 0,
            priority = case when h.state = 'pending' and not h.fault and d.priority > 0 then 2 else d.priority end,
            claimed_at = h.began,
            finished_at = case when h.state <> 'pending' then at end,
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
    select
        array_agg(h.index),
        json_agg(json_build_object(
            'index', h.index, 'exporter_id', h.exporter_id, 'health', h.health, 'took', h.took, 'claimed_at', h.began,
            'pause', h.pause, 'stop_reason', h.stop_reason, 'last_outcome', h.last_outcome
        )) filter (where h.health <> 'none' or h.pause is not null or h.stop_reason is not null)
    from holders h
    into held, noted;

    if changing is not null and noted is not null then
        perform scanwire.apply_health(
            (select json_agg(n) from json_array_elements(noted) n where (n->>'exporter_id')::uuid = any (changing)), at, rules
        );
    end if;

    -- Completes the attempts whose claims were taken away before; those that were taken back unbegun, as it seemed, have no rows yet. One
    -- that was delivered ends its delivery; who is sending it once more loses the claim. The deliveries are locked first and in their
    -- order, as everywhere: two who are late with the same attempts would wait for each other.
    if json_array_length(outcomes) > coalesce(cardinality(held), 0) then
        with missed as materialized (
            select d.id, d.state, d.attempts, d.claimed_at, d.token
            from scanwire.deliveries d
            where d.id in (
                select i.id from json_to_recordset(outcomes) as i (index integer, id uuid) where not i.index = any (coalesce(held, '{}'))
            )
            order by d.id
            for update
        ),
        late as (
            update scanwire.attempts a
            set finished_at = at, outcome = i.outcome::json, late = true
            from missed m
            join json_to_recordset(outcomes) as i (index integer, id uuid, token text, code text, outcome text) on i.id = m.id
            where
                a.delivery_id = m.id and a.token = i.token and a.lost and not a.late
                and not i.index = any (coalesce(held, '{}'))
            returning a.delivery_id, i.code
        ),
        unnamed as materialized (
            select
                u.id, u.token, u.code, u.outcome, u.began,
                u.attempts + (row_number() over (partition by u.id order by u.code <> 'delivered', u.index))::integer as number
            from (
                select distinct on (m.id, i.token)
                    m.id, m.attempts, i.index, i.token, i.code, i.outcome, least(i.claimed_at, at) as began
                from missed m
                join json_to_recordset(outcomes) as i (
                    index integer, id uuid, token text, claimed_at timestamptz, code text, outcome text
                ) on i.id = m.id
                where
                    i.claimed_at is not null
                    and not i.index = any (coalesce(held, '{}'))
                    -- its number is that of the attempt that is being made, unless this one ends that
                    and (m.state <> 'sending' or i.code = 'delivered')
                    and not exists (select from scanwire.attempts a where a.delivery_id = m.id and a.token = i.token)
                order by m.id, i.token, i.index
            ) u
        ),
        ended as materialized (
            select m.*, m.state = 'sending' as claimed
            from missed m
            where
                m.state in ('pending', 'queued', 'sending', 'poisoned')
                and (
                    m.id in (select l.delivery_id from late l where l.code = 'delivered')
                    or m.id in (select u.id from unnamed u where u.code = 'delivered')
                )
        ),
        interrupted as (
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
            select x.id, x.attempts, x.claimed_at, at, x.token, true, scanwire.interruption(interruption, at - x.claimed_at)
            from ended x
            where x.claimed
        ),
        completed as (
            insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, late, outcome)
            select u.id, u.number, u.began, at, u.token, true, true, u.outcome::json
            from unnamed u
        )
        update scanwire.deliveries d
        set
            attempts = coalesce(u.number, d.attempts),
            state = case when x.id is not null then 'delivered' else d.state end,
            finished_at = case when x.id is not null then at else d.finished_at end,
            last_code = case when x.id is not null then 'delivered' else d.last_code end,
            token = case when x.id is null then d.token end,
            begin_by = case when x.id is null then d.begin_by end,
            session = case when x.id is null then d.session end,
            claim_expires_at = case when x.id is null then d.claim_expires_at end
        from missed m
        left join ended x on x.id = m.id
        left join (select n.id, max(n.number) as number from unnamed n group by n.id) u on u.id = m.id
        where d.id = m.id and (x.id is not null or u.id is not null);
    end if;

    if noted is not null then
        perform scanwire.note_successes(noted, at);
    end if;

    return query select unnest(held);
end
$$;
`;

export const lastSuccesses: SqlMigration = { id: '0035-last-successes', sql };
