/**
 * When a host was seen last: what an import has noted counts from the moment that it is shown.
 *
 * @param table What the row of the host is called.
 * @param generation Of the workspace.
 */
export function lastSeen(table: string, generation: string): string {
    return `(
        select case when noted.host_id is null then ${table}.updated_at when noted.generation <= ${generation} then noted.seen_at
            else noted.seen_before end
        from (select) nothing left join scanwire.sightings noted on noted.host_id = ${table}.id
    )`;
}

/**
 * Notes the hosts that are `judged` and those that were `created`, but for those that are down: they were seen before, or never. Where the import `$1` is going to be
 * remembered, which these are too.
 */
export const SEE = `named as (
    select host_id as id, coalesce(fields ->> 'state' = 'down', false) as is_down, updated_at as before from judged where host_id is not null
    union all
    select id, state = 'down', null from created
), seen as (
    insert into scanwire.sightings as noted (host_id, seen_at, generation, seen_before)
    select id, case when is_down then before else $7 end, $5, before
    from named where not is_down or not exists (select from scanwire.sightings where host_id = id)
    on conflict (host_id) do update set seen_at = excluded.seen_at, generation = excluded.generation,
        seen_before = case when noted.generation < excluded.generation then noted.seen_at else noted.seen_before end
    where noted.generation < excluded.generation
), remembered as (
    insert into scanwire.remembered_hosts (import_id, hosts)
    select $1, array_agg(id) from named where not is_down and exists (select from scanwire.remembered_imports where import_id = $1)
    having count(*) > 0
)`;

/** Notes some hosts, $1, as seen at $2 by an import of the generation $3; not as seen before they were. */
export const SEE_AGAIN = `update scanwire.sightings noted set seen_at = greatest(noted.seen_at, $2::timestamptz), generation = $3,
        seen_before = case when noted.generation < $3 then noted.seen_at else noted.seen_before end
    where host_id = any ($1::integer[]) and noted.generation < $3`;

/** Takes back what an import has noted that is not shown, slice by slice as `everySlice` asks for it. */
export const UNSEE = `with slice as (
    select id, (select greatest(generation, 0) from scanwire.workspaces where id = $1) as shown
    from scanwire.hosts where workspace_id = $1 and id > $2 order by id limit $3
), taken_back as (
    update scanwire.sightings set seen_at = seen_before, generation = shown from slice where host_id = slice.id and generation > shown
)
select max(id) as last, count(*)::integer as count from slice`;
