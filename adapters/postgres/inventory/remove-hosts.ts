import { randomUUID } from 'node:crypto';
import type { ExpireOptions, RemovedHosts, RemoveHostsOptions } from '../../../lib/inventory/store.ts';
import { unknownWorkspace } from '../../../lib/inventory/workspace-names.ts';
import { type PoolLike, patiently, transaction } from '../database.ts';
import { lease, release } from '../imports/import-lease.ts';
import { everySlice } from '../imports/import-slices.ts';
import { forgetImports } from '../imports/remembered-imports.ts';
import { lastSeen } from '../imports/sightings.ts';
import type { StoreClock } from '../store-clock.ts';
import { forgetDeletions } from './tombstones.ts';
import { inTurn } from './workspaces.ts';

const GENERATION = '(select generation from scanwire.workspaces where id = $1)';
const SHOWN = `from scanwire.hosts rows where workspace_id = $1 and generation <= ${GENERATION}`;

/** Which hosts of the workspace `$1` are meant, by values that stand behind so many others. */
interface Chosen {
    readonly from: (others: number) => string;
    readonly values: readonly unknown[];
}

/** Removes hosts of a workspace, which is not made for it. */
interface Removal {
    readonly name: string;
    readonly chosen: Chosen;
    readonly dryRun: boolean;
    readonly clock: StoreClock;
}

/** Who was never seen was down from the first, and is taken by when that was heard of last. */
export function expireHosts(
    pool: PoolLike,
    name: string,
    { notSeenSince, dryRun = false, clock }: ExpireOptions & { readonly clock: StoreClock },
): Promise<RemovedHosts> {
    const unseen = (others: number): string => `${SHOWN} and coalesce(${lastSeen('rows', GENERATION)}, rows.updated_at) < $${others + 1}`;
    return remove(pool, { name, chosen: { from: unseen, values: [notSeenSince] }, dryRun, clock });
}

/** Removes hosts with all that belongs to them. */
export function removeHosts(
    pool: PoolLike,
    name: string,
    { address, dryRun = false, clock }: RemoveHostsOptions & { readonly clock: StoreClock },
): Promise<RemovedHosts> {
    const within = (others: number): string => `${SHOWN} and rows.address between $${others + 1}::inet and $${others + 2}::inet`;
    const chosen = address === undefined ? { from: () => SHOWN, values: [] } : { from: within, values: [address.first, address.last] };
    return remove(pool, { name, chosen, dryRun, clock });
}

/** The workspace goes with the last of its hosts. */
export function removeWorkspace(pool: PoolLike, name: string, clock: StoreClock): Promise<RemovedHosts> {
    const all = 'from scanwire.hosts rows where workspace_id = $1';
    return remove(pool, { name, chosen: { from: () => all, values: [] }, dryRun: false, clock }, REMOVE_WORKSPACE);
}

const REMOVE_WORKSPACE = 'delete from scanwire.workspaces where id = $1 and import_id = $2';
const END = 'update scanwire.workspaces set hosts_until = null, import_id = null, import_until = null where id = $1 and import_id = $2';

/** Slice by slice, between which others work, in turn with imports into the same workspace. */
async function remove(pool: PoolLike, { name, chosen, dryRun, clock }: Removal, end: string = END): Promise<RemovedHosts> {
    const database = patiently(pool);
    const { rows } = await database.query<{ id: number }>('select id from scanwire.workspaces where name = $1 and generation >= 0', [name]);
    const id = rows[0]?.id;
    if (id === undefined) {
        throw unknownWorkspace(name);
    }

    if (dryRun) {
        const counting = `select count(*)::integer as hosts ${chosen.from(1)}`;
        const counted = await database.query<{ hosts: number }>(counting, [id, ...chosen.values]);
        return { hosts: counted.rows[0]?.hosts ?? 0 };
    }

    const held = await inTurn(pool, { name, clock }, async (client, workspaceId) => {
        const own = { workspaceId, importId: randomUUID() };
        await lease(client, own);
        await forgetImports(client, [workspaceId]);
        return own;
    });
    let hosts = 0;
    const onHosts = (count: number): void => {
        hosts += count;
    };
    try {
        await everySlice(pool, held, removing(chosen), { onHosts, values: chosen.values });
        await transaction(pool, (client) => client.query(end, [held.workspaceId, held.importId]));
    } catch (error) {
        await release(pool, held);
        throw error;
    }

    await forgetDeletions(database);
    return { hosts };
}

function removing({ from }: Chosen): string {
    return `with slice as (select id ${from(3)} and id > $2 order by id limit $3), removed as (
        delete from scanwire.hosts using slice where hosts.id = slice.id
    )
    select max(id) as last, count(*)::integer as count from slice`;
}
