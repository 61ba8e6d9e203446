import type { Migration } from '../migrate.ts';
import { COLUMNS, countingAll, countingFunctions, ENDED, UNSURE } from './0076-counting-functions.ts';

/**
 * How many deliveries have ended, by exporter, state, outcome and kind, so that a number of them is read, whatever is kept.
 *
 * Whoever ends deliveries, or removes or replays ended ones, adds what this changes: a row for all of a statement that have the same in common, in a
 * table without an index. Maintenance folds these rows into the numbers, so that nobody waits for the row of a number.
 *
 * What is delivered is added by the functions that deliver: a trigger would cost each delivery more than the rest of this, since its condition is
 * read anew by every statement. What ends otherwise has a trigger anyway, which adds each by itself, but for those of a function that adds all that
 * it ends and says so by a setting.
 *
 * Deliveries from before are counted by maintenance, step by step. Of a change of one of these nobody can say whether the step that counts it will
 * see it; so the change has the delivery's number, and the step in whose snapshot it is found knows: it counts if the delivery was counted before.
 * Those that are so old that they have no kind are no part of the numbers.
 */
const tables = `
create table scanwire.delivery_counts (
    exporter_id uuid,
    state text,
    -- of the last outcome, or empty
    code text,
    kind text collate "C",
    count bigint not null,
    primary key (exporter_id, state, code, kind)
) with (fillfactor = 50);

create table scanwire.delivery_count_changes (
    exporter_id uuid not null,
    count integer not null,
    -- of a delivery from before, which the numbers may not have yet
    seq bigint,
    state text not null,
    code text,
    kind text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- One row.
create table scanwire.delivery_counting (
    id integer primary key default 1 check (id = 1),
    -- of those from before, the last that is counted
    through bigint not null default 0,
    whole boolean not null
);

-- Where tables are replicated, rows that are removed must be told apart, and these have no key.
alter table scanwire.delivery_count_changes replica identity full;

-- Whoever ends deliveries writes here too, or nothing would end from now on until somebody says so again; who changes or removes them by hand adds to the
-- changes; and who reads them reads how many there are.
do $do$
declare
    given record;
begin
    for given in
        select
            case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as who,
            bool_or(c.oid = 'scanwire.waiting_marks'::regclass and a.privilege_type = 'INSERT') as sends,
            bool_or(c.oid = 'scanwire.deliveries'::regclass and a.privilege_type in ('UPDATE', 'DELETE')) as changes,
            bool_or(c.oid = 'scanwire.deliveries'::regclass and a.privilege_type = 'SELECT') as reads
        from pg_class c
        cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        where c.oid in ('scanwire.waiting_marks'::regclass, 'scanwire.deliveries'::regclass) and pg_get_userbyid(a.grantee) <> current_user
        group by a.grantee
    loop
        if given.sends then
            execute format(
                'grant select, insert, update, delete on scanwire.delivery_counts, scanwire.delivery_count_changes, scanwire.delivery_counting to %s',
                given.who
            );
        end if;
        if given.changes then
            execute format('grant insert on scanwire.delivery_count_changes to %s', given.who);
        end if;
        if given.changes or given.reads then
            execute format(
                'grant select on scanwire.delivery_counts, scanwire.delivery_count_changes, scanwire.delivery_counting to %s', given.who
            );
        end if;
    end loop;
end
$do$;

-- Begins to count, and does so anew where rows were restored, or changed by hand, past the triggers: then all that is kept is from before.
create function scanwire.recount_deliveries()
returns void
language plpgsql
as $do$
declare
    last_old bigint;
begin
    perform pg_advisory_xact_lock(hashtext('scanwire.delivery_counts'), 0);
    -- As the triggers need it anyway, for a moment: so nobody is in between.
    lock table scanwire.deliveries in share row exclusive mode;
    delete from scanwire.delivery_counts;
    delete from scanwire.delivery_count_changes;
    delete from scanwire.delivery_counting;
    last_old := (select max(d.seq) from scanwire.deliveries d);
    insert into scanwire.delivery_counting (whole) values (last_old is null);
    execute format(
        'create or replace function scanwire.first_counted() returns bigint language sql immutable as $$ select %s::bigint $$',
        coalesce(last_old, 0) + 1
    );
end
$do$;

select scanwire.recount_deliveries();
`;

const triggers = `
-- What becomes of each delivery by itself, but for those that are delivered.
create function scanwire.count_delivery(exporter uuid, its_kind text, its_seq bigint, old_state text, old_code text, new_state text, new_code text)
returns void
language sql
as $$
    insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, seq, count)
    select exporter, c.state, c.code, its_kind, ${UNSURE}, c.count
    from (select its_seq as seq) r
    cross join (values (old_state, old_code, -1), (nullif(new_state, 'delivered'), new_code, 1)) c (state, code, count)
    where its_kind is not null and c.state in ${ENDED}
$$;

create or replace function scanwire.set_ended_as() returns trigger language plpgsql as $$
begin
    new.ended_as := case when new.state not in ('pending', 'queued', 'sending', 'delivered') then new.state end;
    if current_setting('scanwire.counted', true) is distinct from 'yes' and tg_op = 'UPDATE' and new.state <> old.state then
        perform scanwire.count_delivery(new.exporter_id, new.kind, new.seq, old.state, old.last_code, new.state, new.last_code);
    end if;
    return new;
end
$$;

create function scanwire.count_replayed()
returns trigger
language plpgsql
as $$
begin
    perform scanwire.count_delivery(new.exporter_id, new.kind, new.seq, old.state, old.last_code, null, null);
    return new;
end
$$;

-- Whose time nobody sets who hands out, claims or delivers.
create trigger deliveries_replayed
before update of due_at on scanwire.deliveries
for each row
when (old.state = 'delivered' and new.state = 'pending')
execute function scanwire.count_replayed();

create function scanwire.count_removed_deliveries()
returns trigger
language plpgsql
as $$
declare
    all_counted boolean := (select c.whole from scanwire.delivery_counting c);
begin
    ${countingAll('removed', '-', 'case when r.seq < scanwire.first_counted() and not all_counted then r.seq end')};
    return null;
end
$$;

create trigger deliveries_removed
after delete on scanwire.deliveries
referencing old table as removed
for each statement
execute function scanwire.count_removed_deliveries();
`;

const fold = `
-- So many changes at most become part of the numbers, and as many deliveries from before are counted, by one at a time; who finds another at it leaves
-- it to that one. @returns Whether there is more.
create function scanwire.fold_delivery_counts(max_rows integer)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    folded integer;
    counted integer;
    last_counted bigint;
    all_counted boolean;
    emptied uuid[];
begin
    if not exists (select from scanwire.delivery_count_changes) and (select c.whole from scanwire.delivery_counting c) then
        return false;
    end if;
    if not pg_try_advisory_xact_lock(hashtext('scanwire.delivery_counts'), 0) then
        return false;
    end if;

    -- One snapshot. Of the changes of those from before all are taken that are seen, while some of those are to be counted.
    with counting as materialized (
        select c.* from scanwire.delivery_counting c
    ),
    taken as (
        delete from scanwire.delivery_count_changes c
        where c.ctid = any (array(
            select t.ctid from scanwire.delivery_count_changes t limit case when (select g.whole from counting g) then max_rows end
        ))
        returning *
    ),
    old as materialized (
        select ${COLUMNS}
        from scanwire.deliveries d
        where d.seq > (select g.through from counting g where not g.whole) and d.seq < scanwire.first_counted()
        order by d.seq
        limit max_rows
    ),
    summed as (
        select n.exporter_id, n.state, coalesce(n.code, '') as code, n.kind, sum(n.count) as count
        from (
            select t.exporter_id, t.state, t.code, t.kind, t.count
            from taken t
            cross join counting g
            where t.seq is null or g.whole or t.seq <= g.through
            union all
            select o.exporter_id, o.state, o.last_code, o.kind, 1 from old o where o.kind is not null and o.state in ${ENDED}
        ) n
        group by n.exporter_id, n.state, coalesce(n.code, ''), n.kind
    ),
    added as (
        insert into scanwire.delivery_counts as c (exporter_id, state, code, kind, count)
        select s.exporter_id, s.state, s.code, s.kind, s.count from summed s where s.count <> 0
        on conflict (exporter_id, state, code, kind) do update set count = c.count + excluded.count
        returning c.exporter_id, c.count
    )
    select (select count(*) from taken), (select count(*) from old), (select max(o.seq) from old o), (select g.whole from counting g),
        (select array_agg(a.exporter_id) from added a where a.count = 0)
    into folded, counted, last_counted, all_counted, emptied;
    delete from scanwire.delivery_counts c where c.exporter_id = any (emptied) and c.count = 0;

    if not all_counted then
        update scanwire.delivery_counting c set through = coalesce(last_counted, c.through), whole = counted < max_rows;
        return true;
    end if;

    return folded = max_rows;
end
$$;
`;

export const counts: Migration = { id: '0076-counts', sql: [tables, triggers, ...countingFunctions, fold].join('\n') };
