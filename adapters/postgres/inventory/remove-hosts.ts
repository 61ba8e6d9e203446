import { randomUUID } from 'node:crypto';
import type { ExpireOptions, RemovedHosts, RemoveHostsOptions } from '../../../lib/inventory/store.ts';
import { unknownWorkspace } from '../../../lib/inventory/workspace-names.ts';
import { processWarning, warningOf } from '../../../lib/process-warning.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, patiently } from '../database.ts';
import { clearedAfter, clearedUp, type Lease, lease, release } from '../imports/import-lease.ts';
import { everySlice } from '../imports/import-slices.ts';
import { forgetImports } from '../imports/remembered-imports.ts';
import { lastSeen } from '../imports/sightings.ts';
import { applyStaged, discardOrLeave, showOrDiscard } from '../imports/staged-changes.ts';
import type { Sizes } from '../pace.ts';
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

const REMOVE_WORKSPACE = 'delete from scanwire.workspaces where id = $1';

/**
 * All at once for who reads, in turn with imports into the same workspace: the hosts are marked slice by slice, are gone with one statement, and are then deleted, also
 * slice by slice, between which others work. Who dies before they are gone has removed nothing; behind whom dies later the next one deletes them.
 */
async function remove(pool: PoolLike, { name, chosen, dryRun, clock }: Removal, end?: string): Promise<RemovedHosts> {
    const database = patiently(pool, IMPATIENT_OF_SILENCE);
    const { rows } = await database.query<{ id: number }>('select id from scanwire.workspaces where name = $1 and generation >= 0', [name]);
    const id = rows[0]?.id;
    if (id === undefined) {
        throw unknownWorkspace(name);
    }

    if (dryRun) {
        return { hosts: await counted(database, id, chosen) };
    }

    const { generation, ...held } = await inTurn(pool, { name, clock }, async (client, workspaceId) => {
        if (workspaceId !== id) {
            throw unknownWorkspace(name);
        }

        const own = { workspaceId, importId: randomUUID() };
        const generation = await lease(client, own);
        await forgetImports(client, [workspaceId]);
        return { ...own, generation };
    });
    const hosts = await marked(pool, held, chosen);
    await showOrDiscard(pool, held, generation);
    await settle(pool, held, end);
    await clearedUp([() => forgetDeletions(database)]);
    return { hosts };
}

/**
 * Deletes what is gone. Whatever fails then, the hosts are removed, and what is left to do the next writer of the workspace does. The workspace itself is there for as
 * long as its row, which no other writer deletes: that one fails, and removes the workspace when it is asked for again.
 */
async function settle(pool: PoolLike, held: Lease, end: string | undefined): Promise<void> {
    try {
        await applyStaged(pool, held, { end });
    } catch (error) {
        await clearedAfter(error, () => release(pool, held));
        if (end !== undefined) {
            throw error;
        }

        processWarning(warningOf('The hosts are removed, and the next writer of their workspace deletes them', error));
    }
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

/** How many hosts a slice looks through, few of which may be chosen. */
const LOOKED: Sizes = { first: 500, min: 150, max: 2_000, takes: 40 };

/** Marks the hosts that are chosen as removed. Resolves to how many. */
async function marked(pool: PoolLike, held: Lease, { condition, values }: Chosen): Promise<number> {
    const sql = `with ${looked(condition, '$3')}, marked as (
        insert into scanwire.staged_hosts (workspace_id, host_id, updated_at, fields, removed)
        select $1, id, scanwire.now(), '{}', true from looked where chosen
    )
    select max(id) as last, (count(*) filter (where chosen))::integer as count from looked`;
    let hosts = 0;
    const onHosts = (count: number): void => {
        hosts += count;
    };
    try {
        await everySlice(pool, held, sql, { onHosts, values, sizes: LOOKED });
    } catch (error) {
        await clearedAfter(error, () => discardOrLeave(pool, held));
        throw error;
    }

    return hosts;
}
