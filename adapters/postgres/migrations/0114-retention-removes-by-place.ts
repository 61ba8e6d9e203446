import type { Migration } from '../migrate.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Most of what retention took was to look up by their keys, in indexes that are read all over, rows that it had just read: to lock them, and again to remove
 * them. They are removed by their places; only attempts are looked up, all of a step at once. Of a table where nothing is kept no row is looked up.
 *
 * A place is that of a row in a snapshot. Where another version of the row is put elsewhere meanwhile, or another row there, it is judged by what it is
 * then: either may go, or stays and is looked at again. What belongs to a delivery is removed with what was removed, not with what was found.
 */
const removing = `
drop function scanwire.remove_deliveries(uuid[], timestamptz);

-- Of the deliveries in these places those that ended before, with what belongs to them. Who holds one is doing something with it, so it stays.
create function scanwire.remove_deliveries(places tid[], before timestamptz)
returns setof uuid
language plpgsql
set enable_seqscan = off
set jit = off
as $$
begin
    return query
    with expired as materialized (
        select d.ctid as place
        from scanwire.deliveries d
        where
            d.ctid = any (places) and (d.state = 'held' or d.finished_at < before)
            and case when d.order_key is null then true else not scanwire.has_place(d.exporter_id, d.order_key, d.seq) end
        for update skip locked
    ),
    gone as (
        delete from scanwire.deliveries d where d.ctid = any (array(select x.place from expired x)) returning d.id
    ),
    attempts as (
        delete from scanwire.attempts a where a.delivery_id = any (array(select x.id from gone x))
    ),
    responses as (
        delete from scanwire.attempt_responses r
        where r.delivery_id = any (array(select x.id from gone x where exists (select from scanwire.attempt_responses)))
    ),
    messages as (
        delete from scanwire.delivery_messages m
        where m.delivery_id = any (array(select x.id from gone x where exists (select from scanwire.delivery_messages)))
    )
    select x.id from gone x;
end
$$;
${keepingPlan('remove_deliveries')}`;

const retained = rewritten('expire_retained_deliveries', [
    [
        '    gone := array(select scanwire.remove_deliveries(ids, before));\n',
        `    if ids is null then
        removed := 0;
        return next;
        return;
    end if;

    gone := array(select scanwire.remove_deliveries(array(select d.ctid from scanwire.deliveries d where d.id = any (ids)), before));
`,
    ],
]);

const walked = rewritten('expire_deliveries', [
    ['    ids uuid[];\n', '    places tid[];\n    ids uuid[];\n'],
    ['select d.id, d.seq, d.event_id, d.accepted_at\n', 'select d.ctid as place, d.id, d.seq, d.event_id, d.accepted_at\n'],
    ['        array_agg(a.id),\n', '        array_agg(a.place),\n        array_agg(a.id),\n'],
    ['into ids, seqs,', 'into places, ids, seqs,'],
    ['scanwire.remove_deliveries(ids, before)', 'scanwire.remove_deliveries(places, before)'],
    [
        `    insert into scanwire.retained_deliveries (seq, delivery_id, event_id)
    select w.seq, w.id, w.event_id
    from unnest(seqs, ids, events) as w (seq, id, event_id)
    where not w.id = any (gone)
    on conflict do nothing;
`,
        `    if cardinality(gone) < cardinality(ids) then
        insert into scanwire.retained_deliveries (seq, delivery_id, event_id)
        select w.seq, w.id, w.event_id
        from unnest(seqs, ids, events) as w (seq, id, event_id)
        where not w.id = any (gone)
        on conflict do nothing;
    end if;
`,
    ],
]);

/** A part that is not read to its end yet is gone on with, and not looked for among all parts. */
const events = rewritten('expire_events', [
    ['    first_page bigint;\n', '    first_page bigint := case when done < all_pages and done % part > 0 then done - done % part end;\n'],
    [
        `    select min(g.page) into first_page
    from pg_catalog.generate_series(done / part * part, all_pages - 1, part) g (page)
    left join scanwire.event_pages p on p.page = g.page and p.file = its_file
    where p.page is null or p.oldest_at < before or p.oldest_at > scanwire.now();
`,
        `    if first_page is null then
        select min(g.page) into first_page
        from pg_catalog.generate_series(done / part * part, all_pages - 1, part) g (page)
        left join scanwire.event_pages p on p.page = g.page and p.file = its_file
        where p.page is null or p.oldest_at < before or p.oldest_at > scanwire.now();
    end if;
`,
    ],
    ['select e.id, e.ctid as at\n', 'select e.ctid as place\n'],
    [
        'and not exists (select from scanwire.retained_deliveries r where r.event_id = e.id)',
        'and (select r.seq from scanwire.retained_deliveries r where r.event_id = e.id limit 1) is null',
    ],
    [
        `    keys as (
        delete from scanwire.idempotency_keys k using expired x where k.event_id = x.id
    ),
    gone as (
        delete from scanwire.events e using expired x where e.id = x.id
    )
    select count(*), case when count(*) = max_rows then (max(x.at)::text::point)[0]::bigint end
`,
        `    gone as (
        delete from scanwire.events e where e.ctid = any (array(select x.place from expired x)) returning e.id
    ),
    keys as (
        delete from scanwire.idempotency_keys k
        where k.event_id = any (array(select x.id from gone x where exists (select from scanwire.idempotency_keys)))
    )
    select (select count(*) from gone), case when count(*) = max_rows then (max(x.place)::text::point)[0]::bigint end
`,
    ],
]);

const sql = [removing, retained, walked, keepingPlan('expire_deliveries'), events, keepingPlan('expire_events')].join('\n');

export const retentionRemovesByPlace: Migration = { id: '0114-retention-removes-by-place', sql };
