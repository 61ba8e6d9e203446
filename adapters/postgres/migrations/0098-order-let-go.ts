import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * Once an exporter is not ordered any more, or holds nothing any more, what waits behind others is let go in pieces. All at once, a hundred thousand deliveries
 * kept the embedded database from everybody for minutes, and elsewhere nothing ordered was handed out or ended meanwhile.
 */

/** How many places the change itself looks at: so many go with it, by whatever process it is made. */
const AT_ONCE = 100;

const tables = `
-- Changes after which places are left to be let go. A row is written, and read by who hands out, only then.
create table scanwire.order_releases (
    -- of those that were taken before, by order_steps
    number bigint primary key,
    exporter_id uuid not null,
    -- whether all places go, or those alone that hold their keys
    entirely boolean not null,
    -- the last place that was looked at
    after_key text not null default '',
    after_seq bigint not null default -1,
    -- the first one that somebody else had locked
    left_key text,
    left_seq bigint
) with (fillfactor = 50);

-- Numbers places and changes, so that a change lets go what was there before it, whatever is changed next.
create sequence scanwire.order_steps;
grant usage on sequence scanwire.order_steps to public;

-- Null for those of before: of any change they are earlier. 'held' is when it began to hold its key.
alter table scanwire.order_places add column taken bigint, add column held bigint;
alter table scanwire.order_places alter column taken set default nextval('scanwire.order_steps');

-- Whoever hands out may go on with changes too, and whoever makes them.
do $$
declare
    who text;
begin
    for who in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class c
        cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        where c.oid = 'scanwire.order_places'::regclass and a.privilege_type = 'DELETE' and pg_get_userbyid(a.grantee) <> current_user
    loop
        execute format('grant select, insert, update, delete on scanwire.order_releases to %s', who);
    end loop;
end
$$;

-- Gives these keys' firsts their turns as give_turns does, where somebody has their locks of turns, but waits for no row. Returns the first that was locked.
create function scanwire.give_free_turns(exporter uuid, keys text[], at timestamptz)
returns table (order_key text, seq bigint)
language sql
set enable_seqscan = off
set jit = off
as $$
    with wanted as materialized (
        select first.order_key, first.seq, first.delivery_id
        from (select distinct k as order_key from unnest(keys) k) k
        cross join lateral (
            select p.order_key, p.seq, p.delivery_id from scanwire.order_places p
            where p.exporter_id = exporter and p.order_key = k.order_key
            order by p.seq
            limit 1
        ) first
        join scanwire.deliveries d on d.id = any (array[first.delivery_id])
        where
            d.priority = 3 and d.state = 'pending'
            and not exists (
                select from scanwire.order_places p
                where p.flying and p.exporter_id = exporter and p.order_key = k.order_key
            )
    ),
    free as materialized (
        select d.id from wanted w
        join scanwire.deliveries d on d.id = any (array[w.delivery_id])
        where d.priority = 3 and d.state = 'pending'
        for update of d skip locked
    ),
    given as (
        update scanwire.deliveries d
        set priority = case when d.round > 0 then 2 else 1 end, due_at = greatest(d.due_at, at)
        from free f
        where d.id = any (array[f.id])
    )
    select w.order_key, w.seq from wanted w
    where not exists (select from free f where f.id = w.delivery_id)
    order by w.order_key, w.seq
    limit 1
$$;

-- Lets go what it may of the next 'most' places of one change: the one with this number, or the first that nobody else is at. Returns whether it did any.
-- It waits for no row of a delivery or place. What is locked is left for the end, and looked at again then.
create function scanwire.let_order_go(its_number bigint, most integer)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
    release scanwire.order_releases;
    at timestamptz;
    seen_count integer;
    last_key text;
    last_seq bigint;
    keys text[];
    locked record;
begin
    select r.* into release
    from scanwire.order_releases r
    where its_number is null or r.number = its_number
    order by r.number
    limit 1
    for update skip locked;
    if not found then
        return false;
    end if;

    -- against its removal, with which all places go
    perform from scanwire.exporters e where e.id = release.exporter_id for key share;
    if not found then
        delete from scanwire.order_releases r where r.number = release.number;
        return true;
    end if;

    perform pg_advisory_xact_lock(hashtext('scanwire.turns'), 0);
    at := scanwire.now();
    with seen as materialized (
        select p.order_key, p.seq, p.delivery_id, p.taken, p.held,
            row_number() over (order by p.exporter_id, p.order_key, p.seq) as position
        from scanwire.order_places p
        where p.exporter_id = release.exporter_id and (p.order_key, p.seq) > (release.after_key, release.after_seq)
        order by p.exporter_id, p.order_key, p.seq
        limit most
    ),
    going as materialized (
        select s.order_key, s.seq, s.delivery_id, s.position from seen s
        join scanwire.deliveries d on d.id = any (array[s.delivery_id])
        where
            case
                when release.entirely then coalesce(s.taken, 0) < release.number
                else d.state in ('exhausted', 'poisoned') and coalesce(s.held, 0) < release.number
            end
    ),
    free as materialized (
        select g.order_key, g.seq, d.id from going g
        join scanwire.deliveries d on d.id = any (array[g.delivery_id])
        where release.entirely or d.state in ('exhausted', 'poisoned')
        for update of d skip locked
    ),
    gone as (
        delete from scanwire.order_places p
        using free f
        where p.exporter_id = release.exporter_id and p.order_key = any (array[f.order_key]) and p.seq = any (array[f.seq])
    ),
    due as (
        update scanwire.deliveries d
        set priority = case when d.round > 0 then 2 else 1 end, due_at = greatest(d.due_at, at)
        from free f
        where release.entirely and d.id = any (array[f.id]) and d.priority = 3
    ),
    passed as materialized (
        select g.order_key, g.seq from going g
        where not exists (select from free f where f.id = g.delivery_id)
        order by g.position
        limit 1
    )
    select
        (select count(*) from seen), l.order_key, l.seq,
        array(select distinct s.order_key from seen s),
        coalesce(release.left_key, (select p.order_key from passed p)), coalesce(release.left_seq, (select p.seq from passed p))
    into seen_count, last_key, last_seq, keys, release.left_key, release.left_seq
    from (values (1)) one
    left join (select s.order_key, s.seq from seen s order by s.position desc limit 1) l on true;

    -- What is left of a key, and was accepted since or comes next, may be the first of it now. Also where it was so the last time, but locked.
    select g.order_key, g.seq into locked from scanwire.give_free_turns(release.exporter_id, keys, at) g;
    if locked.seq is not null and (release.left_seq is null or (locked.order_key, locked.seq) < (release.left_key, release.left_seq)) then
        release.left_key := locked.order_key;
        release.left_seq := locked.seq;
    end if;

    if seen_count = most then
        update scanwire.order_releases r
        set after_key = last_key, after_seq = last_seq, left_key = release.left_key, left_seq = release.left_seq
        where r.number = release.number;
    elsif release.left_key is not null then
        update scanwire.order_releases r
        set after_key = release.left_key, after_seq = release.left_seq - 1, left_key = null, left_seq = null
        where r.number = release.number;
    else
        delete from scanwire.order_releases r where r.number = release.number;
    end if;
    return true;
end
$$;
`;

/** What was to be let go by an earlier change is by this one. Not where somebody is at it just now: nobody who changes an exporter waits for that. */
const release = `
create or replace function scanwire.release_order()
returns trigger
language plpgsql
set enable_seqscan = off
as $$
declare
    its_number bigint;
begin
    if tg_op = 'DELETE' then
        delete from scanwire.order_places p where p.exporter_id = old.id;
        return null;
    end if;

    its_number := nextval('scanwire.order_steps');
    delete from scanwire.order_releases r
    where r.number in (
        select o.number from scanwire.order_releases o
        where o.exporter_id = old.id and (not new.ordered or not o.entirely)
        for update skip locked
    );
    insert into scanwire.order_releases (number, exporter_id, entirely) values (its_number, old.id, not new.ordered);
    perform scanwire.let_order_go(its_number, ${AT_ONCE});
    return null;
end
$$;

-- One that is not ordered any more may have places too.
drop trigger exporters_order_removed on scanwire.exporters;
create trigger exporters_order_removed
after delete on scanwire.exporters
for each row
execute function scanwire.release_order();
`;

/** What comes back into the order, or begins to hold its key, does so now. */
const keepsOrder = rewritten('keeps_order', [
    ['        on conflict do nothing;', '        on conflict (exporter_id, order_key, seq) do update set taken = excluded.taken;'],
    [
        '        update scanwire.order_places p set flying = false\n',
        `        if new.state <> 'pending' then
            perform set_config('scanwire.holds', 'yes', true);
        end if;
        update scanwire.order_places p
        set flying = false, held = case when new.state <> 'pending' then nextval('scanwire.order_steps') end
`,
    ],
]);

/**
 * Who ends a delivery may have read that it holds its key just before that was changed. Under the lock of the turns, it is asked again: from then on
 * whoever lets go what is held waits for this transaction, and sees it.
 */
const giveToldTurns = rewritten('give_told_turns', [
    [
        "    perform set_config('scanwire.turns', '', true);\n",
        `    perform set_config('scanwire.turns', '', true);
    if current_setting('scanwire.holds', true) = 'yes' then
        perform set_config('scanwire.holds', '', true);
        perform scanwire.hold_no_more(('[' || rtrim(told, ',') || ']')::json);
    end if;
`,
    ],
]);

const holdNoMore = `
create function scanwire.hold_no_more(turns json)
returns void
language plpgsql
set enable_seqscan = off
set jit = off
as $$
begin
    perform scanwire.take_turns(array(select t->>1 from json_array_elements(turns) t));
    delete from scanwire.order_places p
    using (
        -- none, but where the change came just before: the places of a key may be many
        select k.exporter_id, k.order_key
        from (select distinct (t->>0)::uuid as exporter_id, t->>1 as order_key from json_array_elements(turns) t) k
        join scanwire.exporters e on e.id = any (array[k.exporter_id])
        where not (e.ordered and e.after_exhausted = 'hold')
        offset 0
    ) k
    where
        p.exporter_id = any (array[k.exporter_id]) and p.order_key = any (array[k.order_key]) and p.held is not null
        and exists (select from scanwire.deliveries d where d.id = p.delivery_id and d.state in ('exhausted', 'poisoned'));
end
$$;
`;

export const orderLetGo: Migration = { id: '0098-order-let-go', sql: [tables, release, holdNoMore, keepsOrder, giveToldTurns].join('\n') };
