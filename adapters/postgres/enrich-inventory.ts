import type { Executor } from '../../lib/executor.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';
import { ensureWorkspace } from './import-hosts.ts';

const UPDATE_HOSTS = `update scanwire.hosts set updated_at = $2 where workspace_id = $1 and address = any ($3::inet[])`;

/** No identity is spent on what is there: ids are of 32 bits, and files come again and again. */
const INSERT_HOSTS = `insert into scanwire.hosts (workspace_id, address, name, created_at, updated_at)
select $1, given.address, coalesce(given.name, ''), $2, $2
from unnest($3::inet[], $4::text[]) with ordinality as given (address, name, place)
where not exists (select from scanwire.hosts where workspace_id = $1 and address = given.address)
order by given.place
on conflict (workspace_id, address) do nothing`;

/** Looked up one by one (`offset 0`): joins took 0.5 s for a batch where the tables had grown since their last `analyze`. */
const HOST = '(select id from scanwire.hosts where workspace_id = $1 and address = given.address offset 0) as host';

const UPDATE_SERVICES = `update scanwire.services set state = 'open', name = 'https', updated_at = $2
from (
    select service.id from unnest($3::inet[], $4::integer[]) as given (address, port)
    cross join lateral ${HOST}
    cross join lateral (select id from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp' offset 0) as service
    offset 0
) found
where services.id = found.id`;

const INSERT_SERVICES = `insert into scanwire.services (host_id, port, proto, state, name, created_at, updated_at)
select host.id, given.port, 'tcp', 'open', 'https', $2, $2
from unnest($3::inet[], $4::integer[]) with ordinality as given (address, port, place)
cross join lateral ${HOST}
where not exists (select from scanwire.services where host_id = host.id and port = given.port and proto = 'tcp')
order by given.place
on conflict (host_id, port, proto) do nothing`;

/** Puts the endpoints into the workspace, as `RecordStore.add` says; part of the transaction of `client`. */
export async function enrichInventory(client: Executor, workspaceName: string, endpoints: readonly Endpoint[], at: Date): Promise<void> {
    const { id } = await ensureWorkspace(client, workspaceName, at);
    // In turns with imports into the workspace, so that none waits for a row of the other.
    await client.query('select from scanwire.workspaces where id = $1 for no key update', [id]);

    const hosts = [...new Map(endpoints.map((endpoint) => [endpoint.address, endpoint])).values()];
    const fresh = endpoints.filter(({ isNew }) => isNew);
    await client.query(UPDATE_HOSTS, [id, at, addresses(fresh)]);
    await client.query(INSERT_HOSTS, [id, at, addresses(hosts), hosts.map(({ name }) => name)]);
    await client.query(UPDATE_SERVICES, [id, at, addresses(fresh), ports(fresh)]);
    await client.query(INSERT_SERVICES, [id, at, addresses(endpoints), ports(endpoints)]);
}

function addresses(endpoints: readonly Endpoint[]): string[] {
    return endpoints.map(({ address }) => address);
}

function ports(endpoints: readonly Endpoint[]): number[] {
    return endpoints.map(({ port }) => port);
}
