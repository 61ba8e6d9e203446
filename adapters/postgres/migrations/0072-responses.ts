import type { Migration } from '../migrate.ts';
import { keepingPlan } from './0046-kept-plans.ts';

/**
 * What receivers answered to attempts in vain. A table of its own, found by the claim of the attempt and written by a statement of its own: nothing that
 * a delivered message runs or writes is another than before, and processes of the version before go on beside it.
 */
const sql = `
create table scanwire.attempt_responses (
    delivery_id uuid not null,
    -- of the claim that the attempt is made under: its number may not be settled yet
    token text not null,
    event_id uuid not null,
    -- null for what is no text
    text text,
    bytes integer not null,
    truncated boolean not null,
    primary key (delivery_id, token)
);

create index attempt_responses_event on scanwire.attempt_responses (event_id);

-- As ResponseStore.keep says. Events are locked against being erased meanwhile, which waits for this or is waited for.
create function scanwire.keep_responses(responses json)
returns void
language plpgsql
set enable_seqscan = off
set enable_indexscan = off
set enable_indexonlyscan = off
set jit = off
as $$
begin
    with given as materialized (
        select * from json_to_recordset(responses) as g (delivery_id uuid, token text, text text, bytes integer, truncated boolean)
    ),
    whole as materialized (
        select d.id, d.event_id
        from scanwire.deliveries d
        join scanwire.events v on v.id = d.event_id
        where d.id in (select g.delivery_id from given g) and v.erased_at is null
        order by v.id
        for share of v
    )
    insert into scanwire.attempt_responses (delivery_id, token, event_id, text, bytes, truncated)
    select w.id, g.token, w.event_id, g.text, g.bytes, g.truncated
    from given g
    join whole w on w.id = g.delivery_id
    on conflict do nothing;
end
$$;
${keepingPlan('keep_responses')}
-- What was made of a body that is erased, and what receivers said of it.
create or replace function scanwire.erase_messages()
returns trigger
language plpgsql
as $$
begin
    delete from scanwire.delivery_messages m where m.event_id = new.id;
    delete from scanwire.attempt_responses r where r.event_id = new.id;
    return null;
end
$$;

-- As before, with their responses.
create or replace function scanwire.remove_deliveries(ids uuid[], before timestamptz)
returns setof uuid
language sql
set enable_seqscan = off
set jit = off
as $$
    with expired as materialized (
        select d.id
        from scanwire.deliveries d
        where
            d.id = any (ids) and (d.state = 'held' or d.finished_at < before)
            and case when d.order_key is null then true else not scanwire.has_place(d.exporter_id, d.order_key, d.seq) end
        for update skip locked
    ),
    attempts as (
        delete from scanwire.attempts a using expired x where a.delivery_id = x.id
    ),
    responses as (
        delete from scanwire.attempt_responses r using expired x where r.delivery_id = x.id
    ),
    messages as (
        delete from scanwire.delivery_messages m using expired x where m.delivery_id = x.id
    ),
    gone as (
        delete from scanwire.deliveries d using expired x where d.id = x.id
    )
    select x.id from expired x
$$;
`;

export const responses: Migration = { id: '0072-responses', sql };
