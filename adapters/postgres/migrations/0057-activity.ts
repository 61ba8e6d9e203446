import type { SqlMigration } from '../migrate.ts';

/**
 * What became of the deliveries of slices of time. No index of times is kept: where a slice begins is looked for among the numbers of deliveries,
 * each step of which halves what is left, and of a slice no more than its newest are read, by their numbers.
 */
const sql = `
-- The number from which on deliveries are not older, as close as the order in which they were stored is that of their events.
create function scanwire.first_delivery_since(since timestamptz)
returns bigint
language sql
stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
    with recursive look (low, high) as (
        select min(d.seq), max(d.seq) + 1 from scanwire.deliveries d
        union all
        select
            case when p.earlier then p.seq + 1 else l.low end,
            case when p.earlier then l.high else (l.low + l.high) / 2 end
        from look l
        left join lateral (
            select d.seq, v.created_at < first_delivery_since.since as earlier
            from scanwire.deliveries d
            join scanwire.events v on v.id = d.event_id
            where d.seq >= (l.low + l.high) / 2 and d.seq < l.high
            order by d.seq
            limit 1
        ) p on true
        where l.low < l.high
    )
    select l.low from look l where l.low >= l.high
$$;

-- A slice for each two times, in their order; of some exporters where they are not null. A percentile is the least time that so many did not exceed.
create function scanwire.activity(bounds timestamptz[], of_exporters uuid[], max_rows integer)
returns table (slice bigint, deliveries integer, delivered integer, failed integer, p50 double precision, p95 double precision)
language plpgsql
stable
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
begin
    return query
    with numbered as materialized (
        select b.slice, scanwire.first_delivery_since(b.at) as seq from unnest(bounds) with ordinality as b (at, slice)
    ),
    slices as materialized (
        select n.slice, n.seq as first, lead(n.seq) over (order by n.slice) as "end" from numbered n
    ),
    looked_at as materialized (
        select s.slice, d.state = 'delivered' as delivered, d.last_code <> 'delivered' as failed, d.finished_at, d.event_id
        from slices s
        cross join lateral (
            (
                select o.* from scanwire.deliveries o
                where of_exporters is null and o.seq >= s.first and o.seq < s."end"
                order by o.seq desc limit max_rows
            )
            union all
            (
                select o.*
                from unnest(of_exporters) as x (id)
                cross join lateral (
                    select * from scanwire.deliveries p
                    where p.exporter_id = x.id and p.seq >= s.first and p.seq < s."end"
                    order by p.seq desc limit max_rows
                ) o
                order by o.seq desc limit max_rows
            )
        ) d
    ),
    timed as (
        select l.*, case when l.delivered then extract(epoch from l.finished_at - v.created_at)::double precision * 1000 end as took
        from looked_at l
        join scanwire.events v on v.id = l.event_id
    ),
    counted as (
        select
            t.slice,
            count(*)::integer as deliveries,
            (count(*) filter (where t.delivered))::integer as delivered,
            (count(*) filter (where t.failed))::integer as failed,
            (percentile_disc(array[0.5, 0.95]) within group (order by t.took) filter (where t.delivered)) as took
        from timed t
        group by t.slice
    )
    select
        s.slice, coalesce(c.deliveries, 0), coalesce(c.delivered, 0), coalesce(c.failed, 0),
        round(c.took[1])::double precision, round(c.took[2])::double precision
    from slices s
    left join counted c on c.slice = s.slice
    where s.slice < cardinality(bounds)
    order by s.slice;
end
$$;
`;

export const activity: SqlMigration = { id: '0057-activity', sql };
