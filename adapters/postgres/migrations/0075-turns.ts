import type { Migration } from '../migrate.ts';
import { handOutThatTellsEnds } from './0037-rates.ts';
import { keepingPlan } from './0046-kept-plans.ts';
import { changed } from './0065-listed.ts';

/** Where more slow exporters want places than there are, those come first that had one longest ago. By lots, one of them could lose for minutes. */
const tables = `
-- A table of its own, which only who hands out writes: exporters are locked before deliveries elsewhere. Who never had a turn has no row.
create table scanwire.exporter_turns (
    exporter_id uuid primary key,
    taken bigint not null
) with (fillfactor = 50);

-- Not a time, which may be set back.
create sequence scanwire.turns_taken;
grant usage on sequence scanwire.turns_taken to public;

-- Whoever hands out may write here too: else nothing would be handed out from now on until somebody says so again.
do $$
declare
    who text;
begin
    for who in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class c
        cross join lateral aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        where c.oid = 'scanwire.waiting_marks'::regclass and a.privilege_type = 'INSERT' and pg_get_userbyid(a.grantee) <> current_user
    loop
        execute format('grant select, insert, update, delete on scanwire.exporter_turns to %s', who);
    end loop;
end
$$;

create function scanwire.forget_turn()
returns trigger
language plpgsql
as $$
begin
    delete from scanwire.exporter_turns t where t.exporter_id = old.id;
    return null;
end
$$;

create trigger exporters_turn
after delete on scanwire.exporters
for each row
execute function scanwire.forget_turn();

-- In functions of their own, so that handing out neither plans nor opens this table where no exporter is slow.
create function scanwire.turns_of(exporters uuid[])
returns table (exporter_id uuid, taken bigint)
language plpgsql
stable
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
begin
    return query select t.exporter_id, t.taken from scanwire.exporter_turns t where t.exporter_id = any (exporters);
end
$$;

create function scanwire.take_turn(exporter uuid)
returns void
language plpgsql
as $$
begin
    insert into scanwire.exporter_turns as t (exporter_id, taken)
    values (exporter, nextval('scanwire.turns_taken'))
    on conflict (exporter_id) do update set taken = excluded.taken;
end
$$;
`;

const handOut = changed(
    handOutThatTellsEnds,
    ['create function', 'create or replace function'],
    [
        '    waiting as materialized (\n        select\n',
        `    turns as materialized (
        select t.exporter_id, t.taken
        from scanwire.turns_of((select array_agg(r.exporter_id) from rooms r where r.slow)) t
        where exists (select from rooms r where r.slow)
    ),
    waiting as materialized (
        select
`,
    ],
    ['            -- in no order of time: those with old deliveries would always be the first\n', ''],
    ['    pooled as (\n', '    pooled as materialized (\n'],
    [
        'order by r.rank, hashtextextended(r.exporter_id::text, turn)',
        'order by r.rank, t.taken nulls first, hashtextextended(r.exporter_id::text, turn)',
    ],
    [
        '        from ranked r\n        where r.rank',
        '        from ranked r\n        left join turns t on t.exporter_id = r.exporter_id\n        where r.rank',
    ],
    [
        '        ) u\n    )\n    (\n',
        `        ) u
    ),
    turned as (
        select count(scanwire.take_turn(u.exporter_id)) as count
        from (
            -- in the order in which they are picked, so that those of one hand-out keep it
            select p.exporter_id
            from queued q
            join pooled p on p.id = q.id
            where
                p.slow and p.priority > 0
                and p.collector in (select c.collector from pooled c where c.slow and c.priority > 0 and c.pool_rank > c.pool_room)
            group by p.exporter_id
            order by max(p.pool_rank)
        ) u
    )
    (
`,
    ],
    ['        from paid\n', '        from paid, turned\n'],
);

export const turns: Migration = { id: '0075-turns', sql: `${tables}${handOut}${keepingPlan('hand_out_due_deliveries')}` };
