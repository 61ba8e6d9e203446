import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * Most of what a turn of retention took was to read what stays: a quarter of all events, and the event of each delivery for its time, which the
 * delivery has itself since it has a kind.
 *
 * Of each part of the table of events it is noted how old the oldest is that has stayed. Who comes later is younger, so that the part need not be read
 * until that one may go. A note is believed only in the file for which it was made, since pages are in other places once a table was written anew;
 * and not if it is of the future, as it is where a clock was set back.
 */
const notes = `
create table scanwire.event_pages (
    -- the first of the pages
    page bigint primary key,
    file oid not null,
    oldest_at timestamptz not null
);

alter table scanwire.retention drop column page;
`;

const deliveries = rewritten('expire_deliveries', [
    ['walked json;', 'ids uuid[];\n    seqs bigint[];\n    events uuid[];'],
    ['select d.id, d.seq, d.event_id\n', 'select d.id, d.seq, d.event_id, d.accepted_at\n'],
    [
        'select r.*, coalesce(e.created_at >= before, false) as young from read r left join scanwire.events e on e.id = r.event_id',
        `select
            r.*,
            coalesce(
                case when r.accepted_at is null then (select e.created_at from scanwire.events e where e.id = r.event_id) else r.accepted_at end
                >= before,
                false
            ) as young
        from read r`,
    ],
    [
        `json_agg(json_build_object('id', a.id, 'seq', a.seq, 'event_id', a.event_id))`,
        'array_agg(a.id),\n        array_agg(a.seq),\n        array_agg(a.event_id)',
    ],
    ['into walked, last, next', 'into ids, seqs, events, last, next'],
    [
        `array(select scanwire.remove_deliveries(array(select (w->>'id')::uuid from json_array_elements(walked) w), before))`,
        'array(select scanwire.remove_deliveries(ids, before))',
    ],
    [
        `    from json_to_recordset(walked) as w (seq bigint, id uuid, event_id uuid)
    where not w.id = any (gone)
`,
        `    from unnest(seqs, ids, events) as w (seq, id, event_id)
    where not w.id = any (gone)
`,
    ],
]);

const events = `
-- Goes on with the first of the pages from done on that may have what is old enough; next is with which the next step goes on, null after the last.
-- PostgreSQL 13 cannot begin in the middle of a table, so that all pages are one part there.
create or replace function scanwire.expire_events(done bigint, before timestamptz, pages integer, max_rows integer)
returns table (next bigint, removed integer)
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    all_pages bigint := pg_catalog.pg_relation_size('scanwire.events') / pg_catalog.current_setting('block_size')::bigint;
    its_file oid := pg_catalog.pg_relation_filenode('scanwire.events');
    part bigint := case when pg_catalog.current_setting('server_version_num')::integer < 140000 then greatest(all_pages, 1) else pages end;
    first_page bigint;
    last_page bigint;
    cut_at bigint;
begin
    select min(g.page) into first_page
    from pg_catalog.generate_series(done / part * part, all_pages - 1, part) g (page)
    left join scanwire.event_pages p on p.page = g.page and p.file = its_file
    where p.page is null or p.oldest_at < before or p.oldest_at > scanwire.now();

    if first_page is null then
        removed := 0;
        return next;
        return;
    end if;

    last_page := first_page + part;
    with expired as materialized (
        select e.id, e.ctid as at
        from scanwire.events e
        where
            e.ctid >= format('(%s,0)', greatest(done, first_page))::tid and e.ctid < format('(%s,0)', last_page)::tid
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

    if cut_at is null then
        insert into scanwire.event_pages (page, file, oldest_at)
        select first_page, its_file, least(min(e.created_at), scanwire.now())
        from scanwire.events e
        where e.ctid >= format('(%s,0)', first_page)::tid and e.ctid < format('(%s,0)', last_page)::tid
        on conflict (page) do update set file = excluded.file, oldest_at = excluded.oldest_at;
    end if;

    next := coalesce(cut_at, case when last_page < all_pages then last_page end);
    return next;
end
$$;
`;

export const retentionReadsLess: Migration = { id: '0091-retention-reads-less', sql: [notes, deliveries, events].join('\n') };
