import type { SqlMigration } from '../migrate.ts';

/**
 * Sealed URLs of exporters, and events whose bodies can be erased.
 *
 * The URL stays in its column, sealed or as it is: SQL has no key ring, so that who has one seals what is there. As long as a session is
 * alive that does not say that its process can open a sealed URL, one of the version before, none is. Columns are added without a rewrite,
 * and the check of the states, which lets through all that the former one did, looks at no row that is there.
 */
const sql = `
alter table scanwire.worker_sessions add column opens_urls boolean not null default false;

-- When the body was erased; it is empty then.
alter table scanwire.events add column erased_at timestamptz;

alter table scanwire.deliveries
    drop constraint deliveries_state_check,
    add constraint deliveries_state_check
        check (state in ('pending', 'queued', 'sending', 'delivered', 'exhausted', 'poisoned', 'cancelled', 'erased')) not valid;

-- Since when no page of the table holds the body of an event that was erased before; null for never. Of use to the embedded database, whose
-- backups are copies of its pages.
alter table scanwire.deployment add column events_rewritten_at timestamptz;

-- As keep_session_alive, of a session that says whether its process can open sealed URLs.
create function scanwire.keep_alive(
    session_id uuid, its_process text, its_slots json, duration double precision, its_generation integer, spoken timestamptz, begun json,
    opens boolean
)
returns timestamptz
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    at timestamptz := scanwire.keep_session_alive(session_id, its_process, its_slots, duration, its_generation, spoken, begun);
begin
    update scanwire.worker_sessions s set opens_urls = opens where s.id = session_id and s.opens_urls <> opens;
    return at;
end
$$;

-- Erases the body of an event and ends its unfinished deliveries, as DeliveryStore.erase says; no row for an event that there is not. The
-- event is locked first: a replay, which locks it as well, has either been committed by then, so that the next statement sees it, or
-- finds the event erased. The index of all deliveries knows no events, so that all that is unfinished is looked through.
create function scanwire.erase_event(erased uuid, interruption jsonb)
returns table (id uuid, kind text, created_at timestamptz, erased_at timestamptz, ended integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
    at timestamptz := scanwire.now();
    count_of_ended integer;
begin
    update scanwire.events v set body = '', erased_at = at where v.id = erased and v.erased_at is null;

    with unfinished as materialized (
        select d.id, d.state = 'sending' as claimed, d.token, d.claimed_at, d.attempts from scanwire.deliveries d
        where d.state in ('pending', 'queued', 'sending') and d.id in (
            select w.id from scanwire.deliveries w where w.stage = 'waiting' and w.event_id = erased
            union all
            select f.id from scanwire.deliveries f where f.stage = 'in flight' and f.event_id = erased
        )
        order by d.id
        for update
    ),
    recorded as (
        insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
        select u.id, u.attempts, u.claimed_at, at, u.token, true, scanwire.interruption(interruption, at - u.claimed_at)
        from unfinished u
        where u.claimed
    ),
    ended as (
        update scanwire.deliveries d
        set
            state = 'erased',
            finished_at = at,
            token = null,
            begin_by = null,
            session = null,
            claim_expires_at = null,
            last_code = case when u.claimed then interruption->>'code' else d.last_code end
        from unfinished u
        where d.id = u.id
        returning d.id
    )
    select count(*) into count_of_ended from ended;

    return query
    select v.id, v.kind, v.created_at, v.erased_at, count_of_ended from scanwire.events v where v.id = erased;
end
$$;
`;

export const sealedUrls: SqlMigration = { id: '0011-sealed-urls', sql };
