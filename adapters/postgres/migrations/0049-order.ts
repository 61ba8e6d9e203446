import type { Migration } from '../migrate.ts';
import { orderedAcceptance } from './0012-subscriptions.ts';
import { orderedHandOut } from './0037-rates.ts';
import { keepingPlan } from './0046-kept-plans.ts';

/**
 * Exporters that get the events of an order key one after another. Who has none pays for nothing: a delivery without a key is passed by, and what
 * is kept of those with one has a table of its own.
 *
 * A delivery with a key has a place there from its acceptance until it has ended, and beyond where it holds the others. The first of a key, by
 * `seq`, may be handed out. The others have the priority 3, which nothing looks for: when one leaves or comes back, the statement that does it
 * gives the first that is left its turn.
 *
 * Two kinds of locks. Who accepts events of a key waits until others who do so have committed, so that `seq` is the order in which they
 * become visible. Turns are decided under short ones, which no transaction of the application ever has: what is decided by one is seen by the next.
 */
const sql = `
alter table scanwire.exporters
    add column ordered boolean not null default false,
    add column after_exhausted text not null default 'skip' check (after_exhausted in ('skip', 'hold'));

alter table scanwire.deliveries add column order_key text;

create table scanwire.order_places (
    exporter_id uuid not null,
    order_key text not null,
    -- of the delivery
    seq bigint not null,
    delivery_id uuid not null,
    -- whether it is queued or being sent
    flying boolean not null,
    primary key (exporter_id, order_key, seq)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

create index order_places_flying on scanwire.order_places (exporter_id, order_key) where flying;

-- Waits for nobody but those who are deciding turns of the same keys, or, of all, handing out ordered deliveries.
create function scanwire.take_turns(keys text[])
returns void
language plpgsql
as $$
declare
    bucket integer;
begin
    perform pg_advisory_xact_lock_shared(hashtext('scanwire.turns'), 0);
    -- in the same order for all, and not as many as there are keys
    for bucket in select distinct 1 + (hashtext(k) & 1023) from unnest(keys) k where k is not null order by 1 loop
        perform pg_advisory_xact_lock(hashtext('scanwire.turns'), bucket);
    end loop;
end
$$;

-- Waits for those who have accepted events of these keys and not committed yet. Who brings many keys waits for all, and all for him: locks are
-- kept in a memory that is small.
create function scanwire.enter_order(keys text[], deciding boolean)
returns void
language plpgsql
as $$
declare
    places integer[] := array(select distinct hashtext(k) from unnest(keys) k where k is not null order by 1);
    place integer;
begin
    if cardinality(places) > 100 then
        perform pg_advisory_xact_lock(hashtext('scanwire.all_order_keys'), 0);
    else
        perform pg_advisory_xact_lock_shared(hashtext('scanwire.all_order_keys'), 0);
        foreach place in array places loop
            perform pg_advisory_xact_lock(hashtext('scanwire.order_keys'), place);
        end loop;
    end if;
    if deciding then
        perform scanwire.take_turns(keys);
    end if;
end
$$;

-- The first of each key, unless one of it is in flight, is due from now on, or when it is to be tried again. 'turns' is a JSON array of
-- exporter and key each.
create function scanwire.give_turns(turns json)
returns void
language plpgsql
set enable_seqscan = off
set enable_indexscan = on
set enable_bitmapscan = on
set jit = off
as $$
declare
    at timestamptz := scanwire.now();
begin
    perform scanwire.take_turns(array(select t->>1 from json_array_elements(turns) t));

    update scanwire.deliveries d
    set priority = case when d.round > 0 then 2 else 1 end, due_at = greatest(d.due_at, at)
    where
        d.id = any (array(
            select first.delivery_id
            from (select distinct (t->>0)::uuid as exporter_id, t->>1 as order_key from json_array_elements(turns) t) k
            cross join lateral (
                select p.delivery_id from scanwire.order_places p
                where p.exporter_id = k.exporter_id and p.order_key = k.order_key
                order by p.seq
                limit 1
            ) first
            where not exists (
                select from scanwire.order_places p
                where p.flying and p.exporter_id = k.exporter_id and p.order_key = k.order_key
            )
        ))
        and d.priority = 3 and d.state = 'pending';
end
$$;

-- Whether a delivery that would be handed out has no place, or the first and none of its key is in flight. From then on it is itself.
create function scanwire.takes_turn(exporter uuid, key text, place bigint)
returns boolean
language plpgsql
as $$
declare
    first bigint;
begin
    perform pg_advisory_xact_lock(hashtext('scanwire.turns'), 0);
    if not exists (select from scanwire.order_places p where p.exporter_id = exporter and p.order_key = key and p.seq = place) then
        return true;
    end if;

    select p.seq into first from scanwire.order_places p where p.exporter_id = exporter and p.order_key = key order by p.seq limit 1;
    if first <> place or exists (select from scanwire.order_places p where p.flying and p.exporter_id = exporter and p.order_key = key) then
        return false;
    end if;

    update scanwire.order_places p set flying = true where p.exporter_id = exporter and p.order_key = key and p.seq = place;
    return true;
end
$$;

-- What a delivery with a key becomes, and whose turn it may be by that: told once the statement has changed all that it changes.
create function scanwire.keep_order()
returns trigger
language plpgsql
set enable_seqscan = off
set enable_indexscan = on
set enable_bitmapscan = on
set jit = off
as $$
declare
    ordered boolean;
    holds boolean;
begin
    if new.state = 'queued' then
        if scanwire.takes_turn(new.exporter_id, new.order_key, new.seq) then
            return new;
        end if;

        update scanwire.deliveries d set priority = 3 where d.id = new.id;
        perform set_config('scanwire.passed_by', 'yes', true);
        return null;
    end if;

    select e.ordered, e.ordered and e.after_exhausted = 'hold' into ordered, holds from scanwire.exporters e where e.id = new.exporter_id;
    if new.state = 'pending' and old.stage <> 'in flight' and ordered then
        -- once more, if it was over
        insert into scanwire.order_places (exporter_id, order_key, seq, delivery_id, flying)
        values (new.exporter_id, new.order_key, new.seq, new.id, false)
        on conflict do nothing;
    elsif new.state = 'pending' or (new.state in ('exhausted', 'poisoned') and holds) then
        update scanwire.order_places p set flying = false
        where p.exporter_id = new.exporter_id and p.order_key = new.order_key and p.seq = new.seq and p.flying;
    else
        delete from scanwire.order_places p
        where p.exporter_id = new.exporter_id and p.order_key = new.order_key and p.seq = new.seq;
    end if;

    -- of an exporter that was removed all are cancelled
    if new.state <> 'cancelled' then
        perform set_config(
            'scanwire.turns',
            coalesce(current_setting('scanwire.turns', true), '') || json_build_array(new.exporter_id, new.order_key)::text || ',', true
        );
    end if;
    return new;
end
$$;

create trigger deliveries_order
before update of state on scanwire.deliveries
for each row
when (old.order_key is not null and new.state <> old.state and new.state <> 'sending')
execute function scanwire.keep_order();

create function scanwire.give_told_turns()
returns trigger
language plpgsql
as $$
declare
    told text := current_setting('scanwire.turns', true);
begin
    perform set_config('scanwire.turns', '', true);
    perform scanwire.give_turns(('[' || rtrim(told, ',') || ']')::json);
    return null;
end
$$;

create trigger deliveries_turns
after update on scanwire.deliveries
for each statement
when (current_setting('scanwire.turns', true) <> '')
execute function scanwire.give_told_turns();

-- Once nothing is to be held any more what holds a key lets it go. Once it is not ordered any more, all go that wait.
create function scanwire.release_order()
returns trigger
language plpgsql
set enable_seqscan = off
as $$
declare
    released json;
begin
    if tg_op = 'DELETE' then
        delete from scanwire.order_places p where p.exporter_id = old.id;
        return null;
    end if;

    perform pg_advisory_xact_lock(hashtext('scanwire.turns'), 0);
    if not new.ordered then
        with released as (
            delete from scanwire.order_places p where p.exporter_id = old.id returning p.delivery_id
        )
        update scanwire.deliveries d
        set priority = case when d.round > 0 then 2 else 1 end, due_at = greatest(d.due_at, scanwire.now())
        from released r
        where d.id = r.delivery_id and d.priority = 3;
        return null;
    end if;

    with released as (
        delete from scanwire.order_places p
        using scanwire.deliveries d
        where p.exporter_id = old.id and d.id = p.delivery_id and d.state in ('exhausted', 'poisoned')
        returning p.order_key
    )
    select json_agg(distinct jsonb_build_array(old.id, r.order_key)) into released from released r;
    if released is not null then
        perform scanwire.give_turns(released);
    end if;
    return null;
end
$$;

create trigger exporters_order_released
after update on scanwire.exporters
for each row
when (old.ordered and (not new.ordered or (old.after_exhausted = 'hold' and new.after_exhausted <> 'hold')))
execute function scanwire.release_order();

create trigger exporters_order_removed
after delete on scanwire.exporters
for each row
when (old.ordered)
execute function scanwire.release_order();

-- Whether a delivery has a place: it has not ended, or holds its key.
create function scanwire.has_place(exporter uuid, key text, place bigint)
returns boolean
language plpgsql
stable
as $$
begin
    return exists (select from scanwire.order_places p where p.exporter_id = exporter and p.order_key = key and p.seq = place);
end
$$;

-- Of these deliveries those that ended before and hold nothing, with what belongs to them. Who holds one is doing something with it, so it stays.
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
    messages as (
        delete from scanwire.delivery_messages m using expired x where m.delivery_id = x.id
    ),
    gone as (
        delete from scanwire.deliveries d using expired x where d.id = x.id
    )
    select x.id from expired x
$$;
${orderedHandOut}${keepingPlan('hand_out_deliveries')}${orderedAcceptance}${keepingPlan('accept_ordered_events')}`;

export const order: Migration = { id: '0049-order', sql };
