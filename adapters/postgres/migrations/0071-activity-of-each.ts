import type { Migration } from '../migrate.ts';

/**
 * What became of the deliveries of slices of time to each of some exporters. As of all of them together, no more than the newest of a slice
 * are read; the index of an exporter's deliveries has them side by side.
 */
const sql = `
-- For each exporter a row with a JSON array of its slices, one for each two times, in their order.
create function scanwire.activity_of_each(bounds timestamptz[], of_exporters uuid[], max_rows integer)
returns table (id uuid, slices json)
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
    )
    select
        x.id,
        (
            select json_agg(c order by s.slice)
            from slices s
            cross join lateral (
                select
                    count(*) as deliveries,
                    count(*) filter (where d.delivered) as delivered,
                    count(*) filter (where d.failed) as failed
                from (
                    select p.state = 'delivered' as delivered, p.last_code <> 'delivered' as failed
                    from scanwire.deliveries p
                    where p.exporter_id = x.id and p.seq >= s.first and p.seq < s."end"
                    order by p.seq desc limit max_rows
                ) d
            ) c
            where s.slice < cardinality(bounds)
        )
    from unnest(of_exporters) as x (id);
end
$$;
`;

export const activityOfEach: Migration = { id: '0071-activity-of-each', sql };
