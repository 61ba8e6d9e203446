/**
 * The hosts of a batch in their order. Each is looked up as the next in the order of the unique index: for equality the planner, as long as
 * it has not heard of new rows, takes the index of listings as well and reads all hosts for each (measured: 0.5 s for a batch). Here and below
 * `offset 0` keeps an expression over JSON from being written out, and parsed, wherever its name stands.
 */
export const INPUT: string = `input as materialized (
    select given.*, host.id as host_id, host.generation, host.updated_at
    from (
        select host, (host ->> 'address')::inet as address, coalesce((host ->> 'if_known')::boolean, false) as if_known, index
        from scanwire.import_batches, json_array_elements(hosts) with ordinality as element (host, index)
        where import_id = $1 and seq = $2 and index > $4 and index <= $6 offset 0
    ) given
    left join lateral (
        select id, workspace_id, address, generation, updated_at from scanwire.hosts
        where (workspace_id, address) >= ($3, given.address) order by workspace_id, address limit 1
    ) host on host.workspace_id = $3 and host.address = given.address
    where host.id is not null or not given.if_known
)`;

/** The services that `input` gives, one by one (`told`), perhaps with name and info (`named`), and those that it says are closed with others. */
export const GIVEN_SERVICES: string = `(
    select true as told, element.name is not null as named, element.*
    from rows from (json_to_recordset(coalesce(input.host -> 'services', '[]')) as (port integer, proto text, state text, name text, info text))
        with ordinality as element (port, proto, state, name, info, index)
    union all
    select false, false, services.port, services.proto, 'closed', null, null, 0
    from (select proto, bounds::integer[] as bounds from json_each_text(input.host -> 'closed') as element (proto, bounds) offset 0) closed
    join scanwire.services on services.host_id = input.host_id and services.proto = closed.proto
        and width_bucket(services.port, closed.bounds) % 2 = 1
) element`;

/** Notes which of the hosts and services that are shown a batch names, whatever it says of them. Has the first parameters of the batch. */
export const NAME: string = `with ${INPUT}, named as (
    insert into scanwire.import_named (workspace_id, host_id, service_id)
    select $3, host_id, 0 from input where generation < $5
    union
    select $3, services.host_id, services.id
    from input cross join lateral ${GIVEN_SERVICES}
    join scanwire.services on services.host_id = input.host_id and services.port = element.port and services.proto = element.proto
    where input.generation < $5 and services.generation < $5
    on conflict do nothing returning service_id
)
select (count(*) filter (where service_id = 0))::integer as named from named`;
