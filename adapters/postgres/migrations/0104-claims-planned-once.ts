import type { SqlMigration } from '../migrate.ts';

/*
 * What a worker claims, or reads of what was handed out, is planned once on each connection. The statement joined tables that grow by itself, and was planned
 * anew for each message that another process had accepted: two thirds of what it took.
 */

const sql = `
-- As claim_attempts, with what is to be sent: the body of the event is left out where the message has another one.
create function scanwire.claimed_messages(requests json, claiming uuid, max_bytes bigint)
returns table (
    index integer, "end" integer, delivery_id uuid, token text, claimed_at timestamptz, attempt integer, round integer, single boolean,
    event_id uuid, kind text, body text, event_created_at timestamptz, message json, exporter scanwire.exporters
)
language plpgsql
rows 1
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query
    select
        m.index, m."end", m.delivery_id, m.token, m.claimed_at, m.attempt, m.round, m.single, v.id, v.kind,
        case when f.delivery_id is null then v.body else '' end,
        v.created_at,
        case when f.delivery_id is not null then
            json_build_object('contentType', f.content_type, 'headers', f.headers, 'body', f.body, 'failure', f.failure)
        end,
        e
    from scanwire.claim_attempts(requests, claiming, max_bytes) m
    join scanwire.events v on v.id = any (array[m.event_id])
    join scanwire.exporters e on e.id = any (array[m.exporter_id])
    left join scanwire.delivery_messages f on f.delivery_id = any (array[m.delivery_id]);
end
$$;
`;

export const claimsPlannedOnce: SqlMigration = { id: '0104-claims-planned-once', sql };
