import { byHostField } from '../../lib/inventory/host.ts';
import type { Executor } from '../../lib/transaction.ts';
import { type PoolLike, patiently, transaction } from './database.ts';
import { LEASE, type Lease, type Pace, paceOf, slice } from './slices.ts';

/** How many rows were not there before, and how many were. */
export interface Tally {
    readonly created: number;
    readonly updated: number;
}

/** Each field of a host that an import gives, and how it is read from `source`, a JSON object. */
function givenFields(source: string): readonly (readonly [column: string, value: string])[] {
    const text = (field: string): string => `coalesce(${source} ->> '${field}', '')`;
    return Object.entries(
        byHostField({
            name: text,
            text,
            nullableText: (field) => `${source} ->> '${field}'`,
            state: (field) => `coalesce(${source} ->> '${field}', 'alive')`,
            foreignId: (field) => `(${source} ->> '${field}')::integer`,
        }),
    );
}

/** The columns of a host with what a JSON object of fields lays over them. */
export function overlaid(source: string, table: string): ReadonlyMap<string, string> {
    const lay = (column: string, value: string): string =>
        `case when ${source} -> '${column}' is null then ${table}.${column} else ${value} end`;
    return new Map(givenFields(source).map(([column, value]) => [column, lay(column, value)]));
}

function assignments(source: string): string {
    return [...overlaid(source, 'hosts')].map(([column, value]) => `${column} = ${value}`).join(', ');
}

/**
 * The hosts of a batch in their order. Each is looked up as the next in the order of the unique index: for equality the planner, as long as
 * it has not heard of new rows, takes the index of listings as well and reads all hosts for each (measured: 0.5 s for a batch).
 */
const INPUT = `input as materialized (
    select given.*, host.id as host_id, host.generation
    from (
        select host, (host ->> 'address')::inet as address, index
        from scanwire.import_batches, json_array_elements(hosts) with ordinality as element (host, index)
        where import_id = $1 and seq = $2 and index > $6 and index <= $7
    ) given
    left join lateral (
        select * from scanwire.hosts where (workspace_id, address) >= ($3, given.address) order by workspace_id, address limit 1
    ) host on host.workspace_id = $3 and host.address = given.address
)`;

const DISTINCT_SERVICES = `(
    select count(distinct ((service ->> 'port')::integer, service ->> 'proto'))
    from json_array_elements(coalesce(input.host -> 'services', '[]')) service
)`;

/** Hosts that are shown get what changes in them laid aside; those that are not, for example of a batch before, are changed at once. */
const STAGE_HOSTS = `with ${INPUT}, staged as (
    insert into scanwire.staged_hosts as staged (workspace_id, host_id, updated_at, fields)
    select $3, host_id, $4, host::jsonb - 'services' - 'address' from input where generation < $5
    on conflict (workspace_id, host_id) do update set fields = staged.fields || excluded.fields
), changed as (
    update scanwire.hosts set ${assignments('input.host')} from input where hosts.id = input.host_id and input.generation = $5
), created as (
    insert into scanwire.hosts (workspace_id, generation, created_at, updated_at, service_count, address,
        ${givenFields('input.host')
            .map(([column]) => column)
            .join(', ')})
    select $3, $5, $4, $4, ${DISTINCT_SERVICES}, address, ${givenFields('input.host')
        .map(([, value]) => value)
        .join(', ')}
    from input where host_id is null order by index
    returning id
)
select (select count(*)::integer from input where host_id is not null) as updated,
    (select count(*)::integer from created) as created, (select min(id) from created) as first`;

/** The last of several services of one port is the one that counts. Hosts from `$8` on are new, and have their number of services. */
const STAGE_SERVICES = `with ${INPUT}, given as (
    select distinct on (host_id, service.port, service.proto) host_id, service.*, input.index as host_index
    from input
    cross join lateral (
        select (service ->> 'port')::integer as port, service ->> 'proto' as proto, service ->> 'state' as state,
            coalesce(service ->> 'name', '') as name, service ->> 'info' as info, index
        from json_array_elements(coalesce(input.host -> 'services', '[]')) with ordinality as element (service, index)
    ) as service
    order by host_id, service.port, service.proto, service.index desc
), found as materialized (
    select given.*, known.id as service_id, known.generation
    from given
    left join lateral (
        select id, generation from scanwire.services
        where host_id = given.host_id and port = given.port and proto = given.proto offset 0
    ) known on true
), staged as (
    insert into scanwire.staged_services (host_id, service_id, updated_at, state, name, info)
    select host_id, service_id, $4, state, name, info from found where generation < $5
    on conflict (host_id, service_id) do update set state = excluded.state, name = excluded.name, info = excluded.info
), changed as (
    update scanwire.services set state = found.state, name = found.name, info = found.info
    from found where services.id = found.service_id and found.generation = $5
), created as (
    insert into scanwire.services (generation, host_id, created_at, updated_at, port, proto, state, name, info)
    select $5, host_id, $4, $4, port, proto, state, name, info from found where service_id is null order by host_index, index
    returning host_id
), added as materialized (
    select host_id, count(*)::integer as count from created where host_id < $8 group by host_id
), counted as (
    update scanwire.hosts set service_count = service_count + added.count from added where hosts.id = added.host_id and generation = $5
), counted_aside as (
    update scanwire.staged_hosts set services_added = services_added + added.count
    from added where workspace_id = $3 and staged_hosts.host_id = added.host_id
)
select count(*) filter (where service_id is null)::integer as created, count(service_id)::integer as updated from found`;

/** What a batch that was read aside brings. */
export interface Batch {
    readonly seq: number;
    /** Its number of hosts. */
    readonly size: number;
    /** The generation that the import gives the workspace. */
    readonly generation: number;
    readonly at: Date;
}

/** Stores a batch, slice by slice, where nobody sees it yet, and removes it from where it was read aside. */
export async function stageBatch(pool: PoolLike, lease: Lease, batch: Batch, pace: Pace): Promise<{ hosts: Tally; services: Tally }> {
    const sum = { hosts: { created: 0, updated: 0 }, services: { created: 0, updated: 0 } };
    for (let from = 0; from < batch.size; ) {
        const until = Math.min(from + pace.hosts(), batch.size);
        const { hosts, services } = await stageSlice(pool, lease, batch, { from, until, pace });
        for (const [total, { created, updated }] of [[sum.hosts, hosts] as const, [sum.services, services] as const]) {
            total.created += created;
            total.updated += updated;
        }
        from = until;
    }
    return sum;
}

async function stageSlice(
    pool: PoolLike,
    lease: Lease,
    { seq, size, generation, at }: Batch,
    { from, until, pace }: { readonly from: number; readonly until: number; readonly pace: Pace },
): Promise<{ hosts: Tally; services: Tally }> {
    const values = [lease.importId, seq, lease.workspaceId, at, generation, from, until];
    const work = async (client: Executor) => {
        const stored = await client.query<Tally & { first: number | null }>(STAGE_HOSTS, values);
        const { created = 0, updated = 0, first = null } = stored.rows[0] ?? {};
        const services = await client.query<Tally>(STAGE_SERVICES, [...values, first ?? LARGEST_ID]);
        if (until === size) {
            await client.query('delete from scanwire.import_batches where import_id = $1 and seq = $2', [lease.importId, seq]);
        }
        return { hosts: { created, updated }, services: services.rows[0] ?? { created: 0, updated: 0 } };
    };
    return await slice(pool, lease, (client) => pace.timed(until - from, () => work(client)));
}

/** The largest id that a row can have. */
export const LARGEST_ID = 2_147_483_647;

/** Begins to store: from here on listings end before the hosts that are going to come. Resolves to the generation of the import. */
export async function lease(client: Executor, { workspaceId, importId }: Lease): Promise<number> {
    const { rows } = await client.query<{ generation: number }>(
        `update scanwire.workspaces
         set import_id = $2, import_until = scanwire.now() + ${LEASE}, hosts_until = (select coalesce(max(id), 0) from scanwire.hosts)
         where id = $1 returning greatest(generation, 0) + 1 as generation`,
        [workspaceId, importId],
    );
    return rows[0]?.generation ?? 0;
}

/** Shows all that was staged, at once. */
export async function show(pool: PoolLike, lease: Lease, generation: number): Promise<void> {
    await slice(pool, lease, async (client) => {
        await client.query('set local synchronous_commit to default');
        await client.query('update scanwire.workspaces set generation = $2, staged_shown = true, hosts_until = null where id = $1', [
            lease.workspaceId,
            generation,
        ]);
    });
}

/**
 * Whether the import is shown.
 *
 * @throws ScanwireError `CONFLICT` when it no longer has the lease.
 */
export async function isShown(pool: PoolLike, lease: Lease): Promise<boolean> {
    return await slice(pool, lease, async (client) => {
        const { rows } = await client.query<{ staged_shown: boolean }>('select staged_shown from scanwire.workspaces where id = $1', [
            lease.workspaceId,
        ]);
        return rows[0]?.staged_shown ?? false;
    });
}

/** Leaves the import to whoever writes next, who need not wait for the end of its lease. Where this fails, he waits. */
export async function release(pool: PoolLike, { workspaceId, importId }: Lease): Promise<void> {
    await patiently(pool)
        .query(`update scanwire.workspaces set import_until = '-infinity' where id = $1 and import_id = $2`, [workspaceId, importId])
        .catch(() => {});
}

const NEXT_STAGED = `delete from scanwire.staged_hosts
    where workspace_id = $1 and host_id in (
        select host_id from scanwire.staged_hosts where workspace_id = $1 and host_id > $2 order by host_id limit $3
    )
    returning *`;

const APPLY = `with slice as (${NEXT_STAGED}), changed as (
    update scanwire.hosts
    set updated_at = slice.updated_at, service_count = hosts.service_count + slice.services_added, ${assignments('slice.fields')}
    from slice where hosts.id = slice.host_id
), services_slice as (
    delete from scanwire.staged_services where host_id in (select host_id from slice) returning *
), services_changed as (
    update scanwire.services set updated_at = staged.updated_at, state = staged.state, name = staged.name, info = staged.info
    from services_slice staged where services.id = staged.service_id
)
select max(host_id) as last, count(*)::integer as count from slice`;

/** Moves what lies over rows that are shown into them, and ends the import. Whoever reads meanwhile sees no difference. */
export async function applyStaged(pool: PoolLike, lease: Lease, onHosts: (count: number) => void = () => {}): Promise<void> {
    await everySlice(pool, lease, APPLY, onHosts);
    await slice(pool, lease, (client) =>
        client.query('update scanwire.workspaces set staged_shown = false, import_id = null, import_until = null where id = $1', [
            lease.workspaceId,
        ]),
    );
}

const DISCARD_STAGED = `with slice as (${NEXT_STAGED}), services_slice as (
    delete from scanwire.staged_services where host_id in (select host_id from slice)
), services_created as (
    delete from scanwire.services where host_id in (select host_id from slice)
        and generation > (select greatest(generation, 0) from scanwire.workspaces where id = $1)
)
select max(host_id) as last, count(*)::integer as count from slice`;

/** What is of generation 0 comes from others, also in a workspace that was made for the import and not shown. */
const DISCARD_HOSTS = `with slice as (
    delete from scanwire.hosts where id in (
        select hosts.id from scanwire.hosts join scanwire.workspaces on workspaces.id = hosts.workspace_id
        where workspace_id = $1 and hosts.id > greatest($2, hosts_until)
            and hosts.generation > greatest(workspaces.generation, 0)
        order by hosts.id limit $3
    ) returning id
)
select max(id) as last, count(*)::integer as count from slice`;

/** The workspace that was made for the import and not shown goes with it, unless others have stored hosts there. */
const REMOVE_EMPTY = `delete from scanwire.workspaces
    where id = $1 and generation < 0 and not exists (select from scanwire.hosts where workspace_id = $1)`;
const END_DISCARDED = `update scanwire.workspaces
    set generation = greatest(generation, 0), hosts_until = null, import_id = null, import_until = null where id = $1`;

/** Removes all that was staged and not shown, the workspace too where it was made for it, and ends the import. */
export async function discardStaged(pool: PoolLike, lease: Lease): Promise<void> {
    await everySlice(pool, lease, DISCARD_STAGED);
    await everySlice(pool, lease, DISCARD_HOSTS);
    await slice(pool, lease, async (client) => {
        await client.query(REMOVE_EMPTY, [lease.workspaceId]);
        await client.query(END_DISCARDED, [lease.workspaceId]);
    });
}

/** @param sql Works on at most `$3` hosts behind `$2` of the workspace `$1`, and says how many and which was the last. */
async function everySlice(pool: PoolLike, lease: Lease, sql: string, onHosts: (count: number) => void = () => {}): Promise<void> {
    const pace = paceOf();
    for (let after: number | null = 0; after !== null; ) {
        const values: unknown[] = [lease.workspaceId, after, pace.hosts()];
        const work = (client: Executor) => client.query<{ last: number | null; count: number }>(sql, values);
        const { rows } = await slice(pool, lease, (client) => pace.timed(pace.hosts(), () => work(client)));
        after = rows[0]?.last ?? null;
        onHosts(rows[0]?.count ?? 0);
    }
}

/**
 * Ends an import that has died: what it had shown is moved into place, what it had not is removed. Nothing is done where it is alive, or
 * somebody else ends it.
 */
export async function endDeadImport(pool: PoolLike, { workspaceId, importId }: Lease): Promise<void> {
    const own = { workspaceId, importId: crypto.randomUUID() };
    const { rows } = await transaction(pool, (client) =>
        client.query<{ staged_shown: boolean }>(
            `update scanwire.workspaces set import_id = $3, import_until = scanwire.now() + ${LEASE}
             where id = $1 and import_id = $2 and import_until < scanwire.now() returning staged_shown`,
            [workspaceId, importId, own.importId],
        ),
    );
    if (rows[0] !== undefined) {
        await (rows[0].staged_shown ? applyStaged(pool, own) : discardStaged(pool, own));
    }
}
