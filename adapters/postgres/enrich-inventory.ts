import type { Executor } from '../../lib/executor.ts';
import type { Endpoint } from '../../lib/records/endpoints.ts';

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

/** Puts the endpoints into the workspace of that id, as `RecordStore.add` says; part of the transaction of its only writer. */
export async function enrichInventory(client: Executor, id: number, endpoints: readonly Endpoint[], at: Date): Promise<void> {
    await client.query('update scanwire.workspaces set generation = 0 where id = $1 and generation < 0', [id]);
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
