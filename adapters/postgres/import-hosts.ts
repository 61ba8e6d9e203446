import { randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/executor.ts';
import { byHostField, type HostInput } from '../../lib/inventory/host.ts';
import type { Workspace } from '../../lib/inventory/resources.ts';
import type { ImportSummary } from '../../lib/inventory/store.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';
import { type PoolLike, patiently, sqlState, transaction } from './database.ts';

/** The columns of a {@link Workspace}, from `scanwire.workspaces rows`. */
export const WORKSPACE_COLUMNS = `rows.id, rows.name, rows.boundary, rows.description, rows.owner_id, rows.limit_to_network,
    rows.created_at, rows.updated_at`;

const HOSTS_PER_BATCH = 500;
const SERVICES_PER_BATCH = 5_000;

/** Each field of a host that an import gives, and how it is read from `input.host`, a JSON object. */
const FIELDS: readonly (readonly [column: string, value: string])[] = Object.entries(
    byHostField({
        name: (field) => `coalesce(input.host ->> '${field}', '')`,
        text: (field) => `coalesce(input.host ->> '${field}', '')`,
        nullableText: (field) => `input.host ->> '${field}'`,
        state: (field) => `coalesce(input.host ->> '${field}', 'alive')`,
        foreignId: (field) => `(input.host ->> '${field}')::integer`,
    }),
);

/** The hosts of a batch in their order. */
const INPUT = `input as materialized (
    select host, (host ->> 'address')::inet as address, index
    from scanwire.import_batches, json_array_elements(hosts) with ordinality as element (host, index)
    where import_id = $1 and seq = $2
)`;

const UPDATE_HOSTS = `with ${INPUT}
update scanwire.hosts set updated_at = $4,
    ${FIELDS.map(([column, value]) => `${column} = case when input.host -> '${column}' is null then hosts.${column} else ${value} end`).join(', ')}
from input where hosts.workspace_id = $3 and hosts.address = input.address`;

const INSERT_HOSTS = `with ${INPUT}
insert into scanwire.hosts (workspace_id, address, created_at, updated_at, ${FIELDS.map(([column]) => column).join(', ')})
select $3, input.address, $4, $4, ${FIELDS.map(([, value]) => value).join(', ')} from input
where not exists (select from scanwire.hosts where workspace_id = $3 and address = input.address)
order by input.index`;

/** The last of several services of one port is the one that counts. A row that was inserted has no `xmax`. */
const UPSERT_SERVICES = `with ${INPUT}, given as (
    select distinct on (hosts.id, service.port, service.proto) hosts.id as host_id, service.*, input.index as host_index
    from input
    join scanwire.hosts on hosts.workspace_id = $3 and hosts.address = input.address
    cross join lateral (
        select (service ->> 'port')::integer as port, service ->> 'proto' as proto, service ->> 'state' as state,
            coalesce(service ->> 'name', '') as name, service ->> 'info' as info, index
        from json_array_elements(coalesce(input.host -> 'services', '[]')) with ordinality as element (service, index)
    ) as service
    order by hosts.id, service.port, service.proto, service.index desc
), stored as (
    insert into scanwire.services (host_id, created_at, updated_at, port, proto, state, name, info)
    select host_id, $4, $4, port, proto, state, name, info from given order by host_index, index
    on conflict (host_id, port, proto) do update
        set state = excluded.state, name = excluded.name, info = excluded.info, updated_at = excluded.updated_at
    returning xmax = 0 as created
)
select count(*) filter (where created)::integer as created, count(*) filter (where not created)::integer as updated from stored`;

/** The workspace of that name, made unless it exists. */
export async function ensureWorkspace(database: Executor, name: string, at: Date): Promise<Workspace> {
    await database.query(
        'insert into scanwire.workspaces (name, created_at, updated_at) values ($1, $2, $2) on conflict (name) do nothing',
        [name, at],
    );
    const { rows } = await database.query<Workspace>(`select ${WORKSPACE_COLUMNS} from scanwire.workspaces rows where name = $1`, [name]);
    if (rows[0] === undefined) {
        throw new ScanwireError('CONFLICT', 'The workspace was removed while it was looked for');
    }

    return rows[0];
}

/** The workspace, locked until the transaction ends: one writer at a time, so what is looked for in it and not found is safe to insert. */
async function lockWorkspace(client: Executor, name: string, at: Date): Promise<Workspace> {
    const workspace = await ensureWorkspace(client, name, at);
    await client.query('select from scanwire.workspaces where id = $1 for no key update', [workspace.id]);
    return workspace;
}

/**
 * Reads all hosts into a side table first and takes them over in one transaction then: so a slow source holds no transaction
 * open, which would block everybody else on the embedded database.
 *
 * @throws ScanwireError `INVALID_INPUT` when the database refuses a value; whatever the iteration throws.
 */
export async function importHosts(
    pool: PoolLike,
    workspaceName: string,
    hosts: AsyncIterable<HostInput>,
    clock: Clock,
): Promise<ImportSummary> {
    const database = patiently(pool);
    const importId = randomUUID();
    try {
        const batches = await readAside(database, importId, hosts);
        const summary = await transaction(pool, async (client) => {
            const at = clock();
            const workspace = await lockWorkspace(client, workspaceName, at);
            return { workspace, ...(await takeOver(client, importId, batches, workspace.id, at)) };
        });
        await learnSizes(database, batches);
        return summary;
    } catch (error) {
        throw isRefusedValue(error)
            ? new ScanwireError('INVALID_INPUT', 'A host holds a value that cannot be stored', { cause: error })
            : error;
    } finally {
        await removeAside(database, importId);
    }
}

async function readAside(pool: Executor, importId: string, hosts: AsyncIterable<HostInput>): Promise<number> {
    let seq = 0;
    for await (const batch of inBatches(hosts)) {
        const sql = 'insert into scanwire.import_batches (import_id, seq, hosts) values ($1, $2, $3)';
        await pool.query(sql, [importId, seq, JSON.stringify(batch)]);
        seq += 1;
    }

    return seq;
}

/** No address is twice in a batch, since one statement stores each host once. */
async function* inBatches(hosts: AsyncIterable<HostInput>): AsyncGenerator<readonly HostInput[]> {
    let batch = new Map<string, HostInput>();
    let services = 0;
    for await (const host of hosts) {
        if (batch.size >= HOSTS_PER_BATCH || services >= SERVICES_PER_BATCH || batch.has(host.address)) {
            yield [...batch.values()];
            batch = new Map();
            services = 0;
        }

        batch.set(host.address, host);
        services += host.services?.length ?? 0;
    }

    if (batch.size > 0) {
        yield [...batch.values()];
    }
}

async function takeOver(
    client: Executor,
    importId: string,
    batches: number,
    workspaceId: number,
    at: Date,
): Promise<Omit<ImportSummary, 'workspace'>> {
    const hosts = { created: 0, updated: 0 };
    const services = { created: 0, updated: 0 };
    for (let seq = 0; seq < batches; seq++) {
        const values = [importId, seq, workspaceId, at];
        hosts.updated += (await client.query(UPDATE_HOSTS, values)).rowCount ?? 0;
        hosts.created += (await client.query(INSERT_HOSTS, values)).rowCount ?? 0;
        const { rows } = await client.query<{ created: number; updated: number }>(UPSERT_SERVICES, values);
        services.created += rows[0]?.created ?? 0;
        services.updated += rows[0]?.updated ?? 0;
    }

    return { hosts, services };
}

/** After many new rows listings would sort them all for every batch until the planner has heard of them (measured: 3 times slower). */
async function learnSizes(pool: Executor, batches: number): Promise<void> {
    if (batches > 1) {
        await pool.query('analyze scanwire.hosts, scanwire.services').catch(() => {});
    }
}

/** Batches of imports that were cut off (older than a day) go with them. The outcome of the import does not depend on this. */
async function removeAside(pool: Executor, importId: string): Promise<void> {
    const sql = `delete from scanwire.import_batches where import_id = $1 or created_at < now() - interval '1 day'`;
    await pool.query(sql, [importId]).catch(() => {});
}

/** A value of a form (class 22) or beyond a bound (23514) that no column takes, for example text with a NUL character. */
function isRefusedValue(error: unknown): boolean {
    return /^(?:22...|23514)$/.test(sqlState(error));
}

const TOUCH_HOSTS = `update scanwire.hosts set updated_at = $2 where workspace_id = $1 and address = any ($3::inet[])`;

/** No identity is spent on what is there: ids are of 32 bits, and files come again and again. */
const ADD_HOSTS = `insert into scanwire.hosts (workspace_id, address, name, created_at, updated_at)
select $1, given.address, coalesce(given.name, ''), $2, $2
from unnest($3::inet[], $4::text[]) with ordinality as given (address, name, index)
where not exists (select from scanwire.hosts where workspace_id = $1 and address = given.address)
order by given.index
on conflict (workspace_id, address) do nothing`;

/** Looked up one by one (`offset 0`): joins took 0.5 s for a batch where the tables had grown since their last `analyze`. */
const HOST = '(select id from scanwire.hosts where workspace_id = $1 and address = given.address offset 0) as host';

const TOUCH_SERVICES = `update scanwire.services set state = 'open', name = 'https', updated_at = $2
from (
    select service.id from unnest($3::inet[], $4::integer[]) as given (address, port)
    cross join lateral ${HOST}
    cross join lateral (select id from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp' offset 0) as service
    offset 0
) found
where services.id = found.id`;

const ADD_SERVICES = `insert into scanwire.services (host_id, port, proto, state, name, created_at, updated_at)
select host.id, given.port, 'tcp', 'open', 'https', $2, $2
from unnest($3::inet[], $4::integer[]) with ordinality as given (address, port, index)
cross join lateral ${HOST}
where not exists (select from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp')
order by given.index
on conflict (host_id, port, proto) do nothing`;

/** Puts the endpoints into the workspace, as `RecordStore.add` says; part of the transaction of `client`. */
export async function enrichInventory(client: Executor, workspaceName: string, endpoints: readonly Endpoint[], at: Date): Promise<void> {
    const { id } = await lockWorkspace(client, workspaceName, at);
    const hosts = [...new Map(endpoints.map((endpoint) => [endpoint.address, endpoint])).values()];
    const fresh = endpoints.filter(({ isNew }) => isNew);
    await client.query(TOUCH_HOSTS, [id, at, addresses(fresh)]);
    await client.query(ADD_HOSTS, [id, at, addresses(hosts), hosts.map(({ name }) => name)]);
    await client.query(TOUCH_SERVICES, [id, at, addresses(fresh), ports(fresh)]);
    await client.query(ADD_SERVICES, [id, at, addresses(endpoints), ports(endpoints)]);
}

function addresses(endpoints: readonly Endpoint[]): string[] {
    return endpoints.map(({ address }) => address);
}

function ports(endpoints: readonly Endpoint[]): number[] {
    return endpoints.map(({ port }) => port);
}
