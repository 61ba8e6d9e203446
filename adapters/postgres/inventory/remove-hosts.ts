import { randomUUID } from 'node:crypto';
import type { ExpireOptions, RemovedHosts, RemoveHostsOptions } from '../../../lib/inventory/store.ts';
import { unknownWorkspace } from '../../../lib/inventory/workspace-names.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, patiently, transaction } from '../database.ts';
import { clearedAfter, lease, release } from '../imports/import-lease.ts';
import { everySlice } from '../imports/import-slices.ts';
import { forgetImports } from '../imports/remembered-imports.ts';
import { lastSeen } from '../imports/sightings.ts';
import type { StoreClock } from '../store-clock.ts';
import { forgetDeletions } from './tombstones.ts';
import { inTurn } from './workspaces.ts';

const GENERATION = '(select generation from scanwire.workspaces where id = $1)';
const SHOWN = `rows.generation <= ${GENERATION}`;

/** Which hosts of the workspace `$1` are meant: a condition on `rows`, by values from `$4` on. */
interface Chosen {
    readonly condition: string;
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
    const condition = `${SHOWN} and coalesce(${lastSeen('rows', GENERATION)}, rows.updated_at) < $4`;
    return remove(pool, { name, chosen: { condition, values: [notSeenSince] }, dryRun, clock });
}

/** Removes hosts with all that belongs to them. */
export function removeHosts(
    pool: PoolLike,
    name: string,
    { address, dryRun = false, clock }: RemoveHostsOptions & { readonly clock: StoreClock },
): Promise<RemovedHosts> {
    const within = `${SHOWN} and rows.address between $4::inet and $5::inet`;
    const chosen = address === undefined ? { condition: SHOWN, values: [] } : { condition: within, values: [address.first, address.last] };
    return remove(pool, { name, chosen, dryRun, clock });
}

/** The workspace goes with the last of its hosts. */
export function removeWorkspace(pool: PoolLike, name: string, clock: StoreClock): Promise<RemovedHosts> {
    return remove(pool, { name, chosen: { condition: 'true', values: [] }, dryRun: false, clock }, REMOVE_WORKSPACE);
}

const REMOVE_WORKSPACE = 'delete from scanwire.workspaces where id = $1 and import_id = $2';
const END = 'update scanwire.workspaces set hosts_until = null, import_id = null, import_until = null where id = $1 and import_id = $2';

/** Slice by slice, between which others work, in turn with imports into the same workspace. */
async function remove(pool: PoolLike, { name, chosen, dryRun, clock }: Removal, end: string = END): Promise<RemovedHosts> {
    const database = patiently(pool, IMPATIENT_OF_SILENCE);
    const { rows } = await database.query<{ id: number }>('select id from scanwire.workspaces where name = $1 and generation >= 0', [name]);
    const id = rows[0]?.id;
    if (id === undefined) {
        throw unknownWorkspace(name);
    }

    if (dryRun) {
        return { hosts: await counted(database, id, chosen) };
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
        await transaction(pool, (client) => client.query(end, [held.workspaceId, held.importId]), IMPATIENT_OF_SILENCE);
    } catch (error) {
        await clearedAfter(error, () => release(pool, held));
        throw error;
    }

    await forgetDeletions(database);
    return { hosts };
}

/** How many hosts a statement looks through that only counts: on the embedded database everybody waits for it. */
const COUNTED_AT_ONCE = 5_000;

async function counted(database: Executor, workspaceId: number, { condition, values }: Chosen): Promise<number> {
    const sql = `with ${looked(condition, '$3')} select max(id) as last, (count(*) filter (where chosen))::integer as hosts from looked`;
    let hosts = 0;
    for (let after: number | null = 0; after !== null; ) {
        const parameters: unknown[] = [workspaceId, after, COUNTED_AT_ONCE, ...values];
        const [row] = (await database.query<{ last: number | null; hosts: number }>(sql, parameters)).rows;
        hosts += row?.hosts ?? 0;
        after = row?.last ?? null;
    }
    return hosts;
}

/** The next hosts of the workspace `$1` behind `$2`, and of each whether it is chosen. */
function looked(condition: string, count: string): string {
    return `looked as materialized (
        select rows.id, ${condition} as chosen from scanwire.hosts rows where workspace_id = $1 and id > $2 order by id limit ${count}
    )`;
}

/** Looks through many for the few that are removed at once: of hosts that were seen lately none may be chosen for long. */
function removing({ condition }: Chosen): string {
    return `with ${looked(condition, '20 * $3::integer')}, slice as materialized (
        select id from looked where chosen order by id limit $3
    ), removed as (
        delete from scanwire.hosts using slice where hosts.id = slice.id
    )
    select case count(*) when $3::integer then max(id) else (select max(id) from looked) end as last, count(*)::integer as count from slice`;
}
