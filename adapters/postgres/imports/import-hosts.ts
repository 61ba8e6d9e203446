import { randomUUID } from 'node:crypto';
import { ScanwireError } from '../../../lib/errors.ts';
import { type WithinBoundary, withinBoundary } from '../../../lib/inventory/boundary.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { withRefused } from '../../../lib/inventory/import-counts.ts';
import { merging } from '../../../lib/inventory/mentions.ts';
import type { ImportOptions, ImportProgress, ImportSummary } from '../../../lib/inventory/store.ts';
import { type OnWarning, processWarning } from '../../../lib/process-warning.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { type PoolLike, type PreparingOptions, patiently } from '../database.ts';
import { sqlState } from '../database-errors.ts';
import { forgetDeletions } from '../inventory/tombstones.ts';
import { findWorkspace, inTurn, readWorkspace } from '../inventory/workspaces.ts';
import type { StoreClock } from '../store-clock.ts';
import { type ReadBatch, removeAside } from './import-batches.ts';
import { type Lease, lease, release } from './import-lease.ts';
import { paceOn, preparing } from './import-slices.ts';
import { readAside } from './read-aside.ts';
import { markUnnamed } from './remove-unnamed.ts';
import { addStaged, NOTHING_STAGED, type StagedBatch, stageBatch } from './stage-batch.ts';
import { applyStaged, discardStaged, isShown, show } from './staged-changes.ts';

/**
 * Reads all hosts into a side table first, so that a slow source keeps no other import waiting. Then they are stored batch by batch, each
 * in a short transaction that lets others work, where nobody sees them; and shown at once. An import that is shown has succeeded: whatever
 * fails then is reported, and what is left to do the next writer of the workspace does. Where the connection is lost while it is shown and
 * the database cannot be asked again, it rejects although it may be shown; to import the same again does no harm.
 *
 * @throws ScanwireError `INVALID_INPUT` when the database refuses a value, `CONFLICT` when the workspace was given another boundary meanwhile;
 *     whatever the iteration throws.
 */
export async function importHosts(
    pool: PoolLike,
    workspaceName: string,
    hosts: AsyncIterable<HostInput>,
    {
        clock,
        onProgress = () => {},
        onWarning = processWarning,
        replace = false,
        dryRun = false,
        prepare = true,
    }: ImportOptions & PreparingOptions & { readonly clock: StoreClock },
): Promise<ImportSummary> {
    const database = patiently(pool);
    const importId = randomUUID();
    try {
        const within = withinBoundary(await findWorkspace(database, workspaceName));
        const mentions = merging();
        const batches = await readAside(database, importId, filtered(hosts, within.letsIn), mentions);
        const work = { importId, name: workspaceName, within, batches, clock, onProgress, onWarning, replace, dryRun, prepare };
        const imported = await takeOver(pool, work);
        const summary = { ...imported, ...withRefused(withRefused(imported, within.refused()), mentions.refused()) };
        mentions.warn(onWarning);
        if (batches.length > 1 && !dryRun) {
            await learnSizes(
                database,
                (['hosts', 'services', 'notes', 'vulns'] as const).filter((table) => summary[table].new > 0),
                onWarning,
            );
        }

        return summary;
    } catch (error) {
        throw refusedValue(error) ?? error;
    } finally {
        await removeAside(database, importId);
        await forgetDeletions(database);
    }
}

/** What was read aside, and is taken over into a workspace. */
interface Work {
    readonly importId: string;
    readonly name: string;
    readonly within: WithinBoundary;
    readonly batches: readonly ReadBatch[];
    readonly clock: StoreClock;
    readonly onProgress: (progress: ImportProgress) => void;
    readonly onWarning: OnWarning;
    readonly replace: boolean;
    readonly dryRun: boolean;
    readonly prepare: boolean;
}

async function* filtered<T>(items: AsyncIterable<T>, isWanted: (item: T) => boolean): AsyncIterable<T> {
    for await (const item of items) {
        if (isWanted(item)) {
            yield item;
        }
    }
}

async function takeOver(pool: PoolLike, work: Work): Promise<Required<ImportSummary>> {
    const { importId, name, clock } = work;
    const { generation, workspace, at, ...held } = await inTurn(pool, { name, clock }, async (client, workspaceId) => {
        const own = { workspaceId, importId };
        const generation = await lease(client, own);
        const workspace = await readWorkspace(client, workspaceId);
        work.within.refuseOther(workspace);
        return { ...own, generation, workspace, at: await clock(client) };
    });
    const staging = work.prepare ? preparing(pool) : pool;
    const { aside, before, named: _named, ...counts } = await stageAll(staging, held, work, { generation, at });
    if (work.dryRun) {
        const onHosts = counting(work, 'undoing', aside + counts.hosts.new + before);
        await discardStaged(pool, held, onHosts).catch(() => release(pool, held));
    } else {
        await showOrDiscard(pool, held, generation);
        await settle(pool, held, work, aside);
    }
    return { workspace, ...counts };
}

async function stageAll(
    pool: PoolLike,
    held: Lease,
    work: Work,
    { generation, at }: { readonly generation: number; readonly at: Date },
): Promise<StagedBatch & { readonly before: number }> {
    const { batches, onProgress, replace, dryRun } = work;
    let staged = NOTHING_STAGED;
    const total = batches.reduce((sum, { size }) => sum + size, 0);
    const pace = paceOn(pool);
    let done = 0;
    let before = 0;
    try {
        before = replace || dryRun ? await hostsBefore(pool, held, generation) : 0;
        for (const batch of batches) {
            staged = addStaged(staged, await stageBatch(pool, held, { ...batch, generation, at, replace }, pace));
            done += batch.size;
            onProgress({ phase: 'storing', done, total });
        }

        if (replace) {
            const onHosts = counting(work, 'comparing', before);
            const removed = await markUnnamed(pool, held, { generation, at, named: staged.named, onHosts });
            staged = addStaged(staged, { ...removed, named: 0 });
        }
    } catch (error) {
        // What cannot be removed now, the next import removes.
        await discardStaged(pool, held).catch(() => release(pool, held));
        throw error;
    }

    return { ...staged, before };
}

/** How many hosts the workspace had. */
async function hostsBefore(pool: PoolLike, { workspaceId }: Lease, generation: number): Promise<number> {
    const sql = 'select count(*)::integer as count from scanwire.hosts where workspace_id = $1 and generation < $2';
    const { rows } = await patiently(pool).query<{ count: number }>(sql, [workspaceId, generation]);
    return rows[0]?.count ?? 0;
}

/** Tells of a phase whenever some of its hosts are done. */
function counting({ onProgress }: Work, phase: ImportProgress['phase'], total: number): (count: number) => void {
    let done = 0;
    return (count) => {
        done += count;
        onProgress({ phase, done: Math.min(done, total), total });
    };
}

/** A commit whose answer is lost may have shown the import all the same. */
async function showOrDiscard(pool: PoolLike, held: Lease, generation: number): Promise<void> {
    try {
        await show(pool, held, generation);
    } catch (error) {
        const shown = await isShown(pool, held).catch(() => null);
        if (shown === false) {
            await discardStaged(pool, held).catch(() => release(pool, held));
        }

        if (shown !== true) {
            throw error;
        }
    }
}

/** Moves what is shown into place. */
async function settle(pool: PoolLike, held: Lease, work: Work, total: number): Promise<void> {
    try {
        await applyStaged(pool, held, counting(work, 'showing', total));
    } catch (error) {
        await release(pool, held);
        work.onWarning(failed('The import is shown, and the next one finishes it', error));
    }
}

/**
 * After many new rows listings would sort them all for every batch until the planner has heard of them (measured: 3 times slower). The
 * import has succeeded without.
 */
async function learnSizes(pool: Executor, tables: readonly string[], onWarning: OnWarning): Promise<void> {
    try {
        for (const table of tables) {
            await pool.query(`analyze scanwire.${table}`);
        }
    } catch (error) {
        onWarning(failed('Listings may be slow until the database has analysed its tables', error));
    }
}

/** What went wrong and does not make the import fail. */
function failed(what: string, error: unknown): string {
    return `${what}: ${error instanceof Error ? error.message : String(error)}`;
}

/** What is wrong with a value that no column takes, by SQLSTATE. Not in the words of the database, which repeat the value. */
const REFUSED: Readonly<Record<string, string>> = {
    '22003': 'a number that is too large',
    '22021': 'text with a NUL character or half a character',
    '22P02': 'text that is not of its form, for example no address',
    '22P05': 'text with a NUL character or half a character',
    '23502': 'nothing where something must be',
    '23514': 'a value that is none of those allowed',
};

function refusedValue(error: unknown): ScanwireError | undefined {
    const code = sqlState(error);
    const reason = REFUSED[code] ?? (code.startsWith('22') ? 'a value that has no place in its column' : undefined);
    const { column } = error as { readonly column?: string };
    const options = { cause: error, ...(column !== undefined && { field: column }) };
    return reason === undefined ? undefined : new ScanwireError('INVALID_INPUT', `A host cannot be stored: it has ${reason}`, options);
}
