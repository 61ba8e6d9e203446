import type { Host } from '../../../lib/inventory/host.ts';
import { checkedHostMove, type HostMove, targetOf } from '../../../lib/inventory/host-moves.ts';
import type { MovedHosts } from '../../../lib/inventory/store.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, patiently } from '../database.ts';
import { forgetImports } from '../imports/remembered-imports.ts';
import type { StoreClock } from '../store-clock.ts';
import { inTurns, shownWorkspace } from './workspaces.ts';

/** In one short transaction, in turn with imports into the workspaces that the hosts come from and go to. */
export async function moveHosts(pool: PoolLike, ids: readonly number[], to: string, clock: StoreClock): Promise<MovedHosts> {
    const move = checkedHostMove({ ids, to });
    const database = patiently(pool, IMPATIENT_OF_SILENCE);
    // Whose turn is waited for is made where it is missing.
    targetOf({ ids: [], to: move.to, hosts: [], workspace: await shownWorkspace(database, move.to), held: [] });
    const { rows } = await database.query<{ name: string }>(SOURCES, [move.ids]);
    const names = [move.to, ...rows.map(({ name }) => name)];
    return await inTurns(pool, names, { clock }, async (client, workspaceIds) => moveNow(client, move, workspaceIds, await clock(client)));
}

const SOURCES = `select distinct workspaces.name from scanwire.workspaces join scanwire.hosts on hosts.workspace_id = workspaces.id
    where hosts.id = any ($1::integer[])`;
const SHOWN = `select rows.id, host(rows.address) as address from scanwire.hosts rows join scanwire.workspaces on workspaces.id = workspace_id
    where rows.id = any ($1::integer[]) and workspace_id = any ($2::integer[]) and rows.generation <= workspaces.generation
    order by rows.id for no key update of rows`;
const HELD = 'select host(address) as address from scanwire.hosts where workspace_id = $1 and address = any ($2::inet[]) order by id';

/** Imports have made what has a generation, and find it again by that. The workspace is past the first one from now on. */
const FIRST_GENERATION = 'update scanwire.workspaces set generation = greatest(generation, 1) where id = $1';
const MOVED = 'updated_at = $3, generation = least(generation, 1)';
/** A host of which no sighting is noted was seen when it was changed last, and is changed now. */
const MOVE = `with kept as (
    insert into scanwire.sightings (host_id, seen_at, generation, seen_before)
    select id, updated_at, 0, updated_at from scanwire.hosts where id = any ($2::integer[])
    on conflict (host_id) do update set generation = least(sightings.generation, 1)
), services_moved as (
    update scanwire.services set ${MOVED} where host_id = any ($2::integer[])
), notes_moved as (
    update scanwire.notes set ${MOVED}, workspace_id = $1 where host_id = any ($2::integer[])
), vulns_moved as (
    update scanwire.vulns set ${MOVED} where host_id = any ($2::integer[])
)
update scanwire.hosts set ${MOVED}, workspace_id = $1 where id = any ($2::integer[])`;

/** @param workspaceIds That of the workspace that they go into, then those that are locked besides; who is elsewhere by now is not there. */
async function moveNow(client: Executor, move: HostMove, workspaceIds: readonly number[], at: Date): Promise<MovedHosts> {
    const [target = 0] = workspaceIds;
    const { rows: hosts } = await client.query<Pick<Host, 'id' | 'address'>>(SHOWN, [move.ids, workspaceIds]);
    const { rows: held } = await client.query<Pick<Host, 'address'>>(HELD, [target, hosts.map(({ address }) => address)]);
    targetOf({ ...move, hosts, workspace: await shownWorkspace(client, move.to), held: held.map(({ address }) => address) });
    await forgetImports(client, workspaceIds);
    await client.query(FIRST_GENERATION, [target]);
    await client.query(MOVE, [target, move.ids, at]);
    return { hosts: hosts.length };
}
