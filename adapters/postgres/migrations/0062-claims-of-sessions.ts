import type { Migration } from '../migrate.ts';
import { keepingPlan } from './0046-kept-plans.ts';

/**
 * A session that is not known claims nothing. It was forgotten since its process stood still for more than an hour, so that nobody knows which
 * settings that sends with; with its next sign of life it is known again.
 */
const sql = `
-- As before, but for a session that is not there.
create or replace function scanwire.claim_attempts(requests json, claiming uuid, max_bytes bigint)
returns table (
    index integer, "end" integer, delivery_id uuid, token text, claimed_at timestamptz, attempt integer, round integer, single boolean,
    event_id uuid, exporter_id uuid
)
language plpgsql
rows 1
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at timestamptz := scanwire.now();
    current boolean := claiming is null or exists (
        select from scanwire.worker_sessions s
        where s.id = claiming and not exists (select from scanwire.deployment p where p.generation <> s.generation)
    );
begin
    return query
    with asked as materialized (
        select distinct on (r.id) r.*
        from json_to_recordset(requests) as r (index integer, id uuid, token text, duration double precision, "grant" text, holds boolean)
        order by r.id, r.index
    ),
    queued as materialized (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where not a.holds and d.state = 'queued' and (d.token is null or d.token = a."grant")
        order by d.id
        for update of d
    ),
    held as (
        select a.*, d.priority, d.attempts, d.round, d.event_id, d.exporter_id
        from asked a
        join scanwire.deliveries d on d.id = a.id
        where a.holds and d.state = 'queued' and d.token = a."grant"
    ),
    found as materialized (
        select
            a.*, a.priority = 0 as single, octet_length(coalesce(m.body, v.body)) as bytes,
            current and (a.priority = 0 or (e.state = 'running' and e.paused_at is null)) as claimed
        from (select q.* from queued q union all select h.* from held h) a
        join scanwire.events v on v.id = a.event_id
        join scanwire.exporters e on e.id = a.exporter_id
        left join scanwire.delivery_messages m on m.delivery_id = a.id
    ),
    first_beyond as materialized (
        select min(s.index) as index
        from (select f.index, f.bytes, sum(f.bytes) over (order by f.index) as total from found f where f.claimed) s
        where s.total > max_bytes and s.total > s.bytes
    ),
    moved as (
        update scanwire.deliveries d
        set
            state = case when f.claimed then 'sending' else 'pending' end,
            attempts = d.attempts + f.claimed::integer,
            round = d.round + f.claimed::integer,
            token = case when f.claimed then f.token end,
            -- what was taken back and goes back again has still not been claimed
            begin_by = case when not f.claimed and d.token is null then d.begin_by end,
            session = case when f.claimed then claiming end,
            claimed_at = case when f.claimed then at end,
            claim_expires_at = case when f.claimed then at + f.duration * interval '1 millisecond' end
        from found f
        join first_beyond b on b.index is null or f.index < b.index
        where d.id = f.id and not f.holds
    )
    select f.index, b.index, f.id, case when f.holds then f."grant" else f.token end, at, f.attempts + 1, f.round + 1, f.single, f.event_id, f.exporter_id
    from found f
    join first_beyond b on b.index is null or f.index < b.index
    where f.claimed;
end
$$;
${keepingPlan('claim_attempts')}`;

export const claimsOfSessions: Migration = { id: '0062-claims-of-sessions', sql };
