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

/** How many rows of `judged` came to each verdict. */
export const COUNTED: string = ['new', 'changed', 'unchanged', 'gone']
    .map((name) => `(count(*) filter (where verdict = '${name}'))::integer as "${name}"`)
    .join(', ');

/**
 * Parts of a statement that has `judged` what is below hosts, which are told what they have more of: those that are shown aside. Hosts from
 * `$8` on are new, and have their number of each. Every host that is shown and has something staged is in `staged_hosts`, by which it is
 * found; it has changed itself where it has more.
 *
 * @param kind `service`, `note` or `vuln`.
 * @param isFinding Whether it is among what is told there as `findings`.
 */
export function noteTouched(kind: string, isFinding: boolean): string {
    const added = `${kind}s_added`;
    return `touched as materialized (
    select host_id, host_generation, host_updated_at, (count(*) filter (where verdict = 'new'))::integer as added
    from judged where verdict <> 'unchanged' and host_id < $8 group by host_id, host_generation, host_updated_at
), counted as (
    update scanwire.hosts set ${kind}_count = ${kind}_count + added from touched where hosts.id = host_id and host_generation = $5 and added > 0
), noted as (
    insert into scanwire.staged_hosts as staged (workspace_id, host_id, updated_at, fields, ${added}, findings)
    select $3, host_id, case when added > 0 then $7 else host_updated_at end, '{}', added, ${isFinding} from touched where host_generation < $5
    on conflict (workspace_id, host_id) do update set ${added} = staged.${added} + excluded.${added},
        findings = staged.findings or excluded.findings,
        updated_at = case when excluded.${added} > 0 then excluded.updated_at else staged.updated_at end
)`;
}
