import type { Migration } from '../migrate.ts';

/**
 * Removes what was kept long enough. Nothing on the way of an event pays for it: no index of times is kept. Deliveries are walked in the order
 * in which they were stored, once each, up to the first of a young event; those that stay are remembered. Events are read page by page.
 */
const sql = `
-- When a turn began last, up to which delivery all were walked, and from which page of events on the next are read: one row.
create table scanwire.retention (
    id integer primary key default 1 check (id = 1),
    begun_at timestamptz not null,
    passed bigint not null default 0,
    page bigint not null default 0
);

insert into scanwire.retention (begun_at) values ('-infinity');

-- Deliveries that were old enough when they were walked, and stayed since they had not ended by then.
create table scanwire.retained_deliveries (
    seq bigint primary key,
    delivery_id uuid not null,
    event_id uuid not null
);

create index retained_deliveries_event on scanwire.retained_deliveries (event_id);
create index idempotency_keys_event on scanwire.idempotency_keys (event_id);

-- Of these deliveries those that ended before, with what belongs to them. Who holds one is doing something with it, so it stays.
create function scanwire.remove_deliveries(ids uuid[], before timestamptz)
returns setof uuid
language sql
set enable_seqscan = off
set jit = off
as $$
    with expired as materialized (
        select d.id
        from scanwire.deliveries d
        where d.id = any (ids) and (d.state = 'held' or d.finished_at < before)
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

-- Of those that stayed before. The next step begins after the delivery next, null when the last was made.
create function scanwire.expire_retained_deliveries(after bigint, before timestamptz, max_rows integer)
returns table (next bigint, removed integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    ids uuid[];
    gone uuid[];
begin
    select array_agg(r.delivery_id), case when count(*) = max_rows then max(r.seq) end into ids, next
    from (select * from scanwire.retained_deliveries r where r.seq > after order by r.seq limit max_rows) r;
    gone := array(select scanwire.remove_deliveries(ids, before));
    delete from scanwire.retained_deliveries r where r.seq > after and r.seq <= coalesce(next, 9223372036854775807) and r.delivery_id = any (gone);
    removed := cardinality(gone);
    return next;
end
$$;

-- Of those that were not walked before; next is null when the last step was made.
create function scanwire.expire_deliveries(before timestamptz, max_rows integer)
returns table (next bigint, removed integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    walked json;
    gone uuid[];
    last bigint;
begin
    with read as materialized (
        select d.id, d.seq, d.event_id
        from scanwire.deliveries d
        where d.seq > (select r.passed from scanwire.retention r)
        order by d.seq
        limit max_rows
    ),
    aged as materialized (
        select r.*, coalesce(e.created_at >= before, false) as young from read r left join scanwire.events e on e.id = r.event_id
    )
    select
        json_agg(json_build_object('id', a.id, 'seq', a.seq, 'event_id', a.event_id)),
        max(a.seq),
        case when count(*) = max_rows then max(a.seq) end
    into walked, last, next
    from aged a
    where a.seq < coalesce((select min(y.seq) from aged y where y.young), 9223372036854775807);

    gone := array(select scanwire.remove_deliveries(array(select (w->>'id')::uuid from json_array_elements(walked) w), before));
    insert into scanwire.retained_deliveries (seq, delivery_id, event_id)
    select w.seq, w.id, w.event_id
    from json_to_recordset(walked) as w (seq bigint, id uuid, event_id uuid)
    where not w.id = any (gone)
    on conflict do nothing;
    update scanwire.retention r set passed = greatest(r.passed, last) where last is not null;
    removed := cardinality(gone);
    return next;
end
$$;

-- Goes on where the last step has ended, after the last page with the first. A turn reads all of a small table and a quarter of a large one; next is
-- how much it has read, null when that is enough. PostgreSQL 13 cannot begin in the middle of a table, so that there a step goes to its end.
create function scanwire.expire_events(done bigint, before timestamptz, pages integer, max_rows integer)
returns table (next bigint, removed integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    all_pages bigint := pg_catalog.pg_relation_size('scanwire.events') / pg_catalog.current_setting('block_size')::bigint;
    enough bigint := least(all_pages, greatest(4 * pages, all_pages / 4));
    first_page bigint := (select case when r.page < all_pages then r.page else 0 end from scanwire.retention r);
    last_page bigint := least(all_pages, first_page + pages);
    cut_at bigint;
begin
    if pg_catalog.current_setting('server_version_num')::integer < 140000 then
        last_page := all_pages;
    end if;

    with expired as materialized (
        select e.id, e.ctid as at
        from scanwire.events e
        where
            e.ctid >= format('(%s,0)', first_page)::tid and e.ctid < format('(%s,0)', last_page)::tid
            and e.created_at < before
            and not exists (select from scanwire.retained_deliveries r where r.event_id = e.id)
        limit max_rows
    ),
    keys as (
        delete from scanwire.idempotency_keys k using expired x where k.event_id = x.id
    ),
    gone as (
        delete from scanwire.events e using expired x where e.id = x.id
    )
    select count(*), case when count(*) = max_rows then (max(x.at)::text::point)[0]::bigint end
    into removed, cut_at
    from expired x;

    last_page := coalesce(cut_at, last_page);
    update scanwire.retention set page = last_page;
    next := done + last_page - first_page;
    next := case when cut_at is not null or next < enough then next end;
    return next;
end
$$;
`;

export const retention: Migration = { id: '0038-retention', sql };
