import { randomUUID } from 'node:crypto';
import { ScanwireError } from '../../../lib/errors.ts';
import { analyseInTurn } from '../../../lib/giving-way.ts';
import { type WithinBoundary, withinBoundary } from '../../../lib/inventory/boundary.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { anyRefused, countsAgain, type ImportedCounts, withRefused } from '../../../lib/inventory/import-counts.ts';
import { merging } from '../../../lib/inventory/mentions.ts';
import { refuseUnstorableName } from '../../../lib/inventory/resources.ts';
import type { ImportOptions, ImportOrigin, ImportProgress, ImportSummary } from '../../../lib/inventory/store.ts';
import { type OnWarning, processWarning, warningOf } from '../../../lib/process-warning.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, type PreparingOptions, patiently } from '../database.ts';
import { sqlState } from '../database-errors.ts';
import { forgetDeletions } from '../inventory/tombstones.ts';
import { findWorkspace, inTurn, readWorkspace } from '../inventory/workspaces.ts';
import { paceOf } from '../pace.ts';
import type { StoreClock } from '../store-clock.ts';
import { runAhead } from './first-run.ts';
import { keepAside, type ReadBatch, removeAside } from './import-batches.ts';
import { clearedAfter, clearedUp, type Lease, lease, release } from './import-lease.ts';
import { paceOn, preparing, slice } from './import-slices.ts';
import { readAside } from './read-aside.ts';
import { beginToRemember, type RememberedImport, recall, remember, rememberAgain } from './remembered-imports.ts';
import { markUnnamed } from './remove-unnamed.ts';
import { SEE_AGAIN } from './sightings.ts';
import { addStaged, NOTHING_STAGED, type StagedBatch, stageBatch, stagingNothing } from './stage-batch.ts';
import { applyStaged, discardOrLeave, showOrDiscard } from './staged-changes.ts';

/**
 * Reads all hosts into a side table first, so that a slow source keeps no other import waiting. Then they are stored batch by batch, each
 * in a short transaction that lets others work, where nobody sees them; and shown at once. An import that is shown has succeeded: whatever
 * fails then is reported, and what is left to do the next writer of the workspace does. Where the connection is lost while it is shown and
 * the database cannot be asked again, it rejects although it may be shown; to import the same again does no harm.
 *
 * @throws ScanwireError `INVALID_INPUT` when the database refuses a value, `CONFLICT` when the workspace was given another boundary meanwhile;
 *     `UNAVAILABLE` when the database has lost some of the hosts that were read; whatever the iteration throws.
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
        origin,
        prepare = true,
    }: ImportOptions & PreparingOptions & { readonly clock: StoreClock },
): Promise<ImportSummary> {
    refuseUnstorableName(workspaceName);
    const database = patiently(pool, IMPATIENT_OF_SILENCE);
    const importId = randomUUID();
    const leaveAside = keepAside(database, importId);
    const clearing = [() => removeAside(database, importId), () => forgetDeletions(database)];
    try {
        const known = origin === undefined ? null : await recall(database, workspaceName, { origin, replace }, clock);
        if (known !== null) {
            await origin?.arrived();
            const summary = await importAgain(pool, known, {
                importId,
                name: workspaceName,
                clock,
                onProgress,
                onWarning,
                dryRun,
                prepare,
            });
            await clearedUp(clearing);
            return summary;
        }

        const within = withinBoundary(await findWorkspace(database, workspaceName));
        const mentions = merging();
        const batches = await readAside(database, importId, filtered(hosts, within.letsIn), mentions);
        const refused = withRefused(within.refused(), mentions.refused());
        const remembered = dryRun || origin?.hasWarned?.() === true || anyRefused(refused) ? undefined : origin;
        const own = { importId, name: workspaceName, clock, onProgress, onWarning, dryRun, prepare };
        const imported = await takeOver(pool, { ...own, within, batches, replace, remembered });
        const summary = { ...imported, ...withRefused(imported, refused) };
        mentions.warn(onWarning);
        if (batches.length > 1 && !dryRun) {
            await learnSizes(
                pool,
                (['hosts', 'services', 'notes', 'vulns'] as const).filter((table) => summary[table].new > 0),
                onWarning,
            );
        }

        await clearedUp(clearing);
        return summary;
    } catch (error) {
        await clearedAfter(error, ...clearing);
        throw refusedValue(error) ?? error;
    } finally {
        leaveAside();
    }
}

/** What is taken over into a workspace. */
interface OwnWork {
    readonly importId: string;
    readonly name: string;
    readonly clock: StoreClock;
    readonly onProgress: (progress: ImportProgress) => void;
    readonly onWarning: OnWarning;
    readonly dryRun: boolean;
    readonly prepare: boolean;
}

/** The same of what was read aside. */
interface Work extends OwnWork {
    readonly within: WithinBoundary;
    readonly batches: readonly ReadBatch[];
    readonly replace: boolean;
    /** By which the import is remembered, where it is. */
    readonly remembered: ImportOrigin | undefined;
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
        const at = await clock(client);
        if (work.remembered !== undefined) {
            await beginToRemember(client, own, { origin: work.remembered, replace: work.replace, workspace, at });
        }

        return { ...own, generation, workspace, at };
    });
    const staging = work.prepare ? preparing(pool) : pool;
    const { aside, before, again, named: _named, ...counts } = await stageAll(staging, held, work, { generation, at });
    if (work.dryRun) {
        const { undoing = 0 } = lastPhase(work, { aside, hosts: counts.hosts }, { before });
        const onHosts = counting(work, 'undoing', undoing);
        await clearedUp([() => discardOrLeave(pool, held, onHosts)]);
    } else {
        await showOrDiscard(pool, held, generation, (client) => remember(client, held, { imported: counts, again }));
        await settle(pool, held, work, aside);
    }
    return { workspace, ...counts };
}

/**
 * What an import that is remembered would do once more, which is only to see its hosts. They count as seen when the workspace was found as it was left: others may
 * have changed it since, as they may behind any import.
 */
async function importAgain(pool: PoolLike, known: RememberedImport, work: OwnWork): Promise<ImportSummary> {
    const { importId, name, clock, onProgress } = work;
    const { workspace, counts, hosts, at } = known;
    const summary = { workspace, ...counts };
    if (work.dryRun) {
        return summary;
    }

    const { generation, ...held } = await inTurn(pool, { name, clock }, async (client, workspaceId) => {
        if (workspaceId !== workspace.id) {
            throw new ScanwireError('CONFLICT', 'The workspace was removed while the hosts came');
        }

        const own = { workspaceId, importId };
        return { ...own, generation: await lease(client, own) };
    });
    const pace = paceOf(undefined, SIGHTINGS);
    try {
        for (let done = 0; done < hosts.length; ) {
            const some = hosts.slice(done, done + pace.size());
            const see = (client: Executor) => client.query(SEE_AGAIN, [some, at, generation]);
            await slice(pool, held, (client) => pace.timed(some.length, () => see(client)));
            done += some.length;
            onProgress({ phase: 'storing', done, total: hosts.length, ahead: {} });
        }
    } catch (error) {
        await clearedAfter(error, () => discardOrLeave(pool, held));
        throw error;
    }

    await showOrDiscard(pool, held, generation, (client) => rememberAgain(client, known));
    await settle(pool, held, work, 0);
    return summary;
}

/** How many sightings a slice has; as with hosts, one takes 40 ms. */
const SIGHTINGS = { first: 500, min: 150, max: 4_000, takes: 40 } as const;

async function stageAll(
    pool: PoolLike,
    held: Lease,
    work: Work,
    { generation, at }: { readonly generation: number; readonly at: Date },
): Promise<StagedBatch & { readonly before: number; readonly again: ImportedCounts | null }> {
    const { batches, onProgress, replace, dryRun } = work;
    let staged = NOTHING_STAGED;
    const total = batches.reduce((sum, { size }) => sum + size, 0);
    const pace = paceOn(pool);
    let done = 0;
    let before = 0;
    let again: ImportedCounts | null;
    try {
        const hasFindings = batches.some((batch) => batch.hasFindings);
        await runAhead(pool, held, stagingNothing(held, { generation, at, replace }, { hasFindings }));
        before = replace || dryRun ? await hostsBefore(pool, held, generation) : 0;
        for (const batch of batches) {
            staged = addStaged(staged, await stageBatch(pool, held, { ...batch, generation, at, replace }, pace));
            done += batch.size;
            const ahead = { ...(replace && { comparing: before }), ...lastPhase(work, staged, { before, part: done / total }) };
            onProgress({ phase: 'storing', done, total, ahead });
        }

        again = countsAgain(staged);
        if (replace) {
            const onHosts = comparing(work, staged, before);
            const removed = await markUnnamed(pool, held, { generation, at, named: staged.named, onHosts });
            staged = addStaged(staged, { ...removed, named: 0 });
        }
    } catch (error) {
        // What cannot be removed now, the next import removes.
        await clearedAfter(error, () => discardOrLeave(pool, held));
        throw error;
    }

    return { ...staged, before, again };
}

/** What is done last, and with how many hosts where this is what a `part` of them has come to. */
function lastPhase(
    { dryRun }: OwnWork,
    { aside, hosts }: Pick<StagedBatch, 'aside' | 'hosts'>,
    { before, part = 1 }: { readonly before: number; readonly part?: number },
): NonNullable<ImportProgress['ahead']> {
    return dryRun ? { undoing: Math.round((aside + hosts.new) / part) + before } : { showing: Math.round(aside / part) };
}

/** Tells of the hosts of before that are compared, and of how many in all something more is laid aside. */
function comparing(work: OwnWork, { aside, hosts }: StagedBatch, before: number): (count: number, more: number) => void {
    let done = 0;
    return (count, more) => {
        done = Math.min(done + count, before);
        const expected = { hosts, aside: aside + Math.round((more * before) / Math.max(done, 1)) };
        work.onProgress({ phase: 'comparing', done, total: before, ahead: lastPhase(work, expected, { before }) });
    };
}

/** How many hosts the workspace had. */
async function hostsBefore(pool: PoolLike, { workspaceId }: Lease, generation: number): Promise<number> {
    const sql = 'select count(*)::integer as count from scanwire.hosts where workspace_id = $1 and generation < $2';
    const { rows } = await patiently(pool).query<{ count: number }>(sql, [workspaceId, generation]);
    return rows[0]?.count ?? 0;
}

/** Tells of a phase whenever some of its hosts are done. */
function counting({ onProgress }: OwnWork, phase: ImportProgress['phase'], total: number): (count: number) => void {
    let done = 0;
    return (count) => {
        done += count;
        onProgress({ phase, done: Math.min(done, total), total });
    };
}

/** Moves what is shown into place. */
async function settle(pool: PoolLike, held: Lease, work: OwnWork, total: number): Promise<void> {
    try {
        await applyStaged(pool, held, { onHosts: counting(work, 'showing', total) });
    } catch (error) {
        await clearedAfter(error, () => release(pool, held));
        work.onWarning(warningOf('The import is shown, and the next one finishes it', error));
    }
}

/**
 * After many new rows listings would sort them all for every batch until the planner has heard of them (measured: 3 times slower). The
 * import has succeeded without. The embedded database does it as it clears up, when others wait: of 200,000 hosts it takes 0.1 s of processor time.
 */
async function learnSizes(pool: PoolLike, tables: readonly string[], onWarning: OnWarning): Promise<void> {
    const learn = (table: string) => (pool.embedded ? analyseInTurn(pool, table) : patiently(pool).query(`analyze ${table}`));
    try {
        for (const table of tables) {
            await learn(`scanwire.${table}`);
        }
    } catch (error) {
        onWarning(warningOf('Listings may be slow until the database has analysed its tables', error));
    }
}

/** What is wrong with a value that no column takes, by SQLSTATE. Not in the words of the database, which repeat the value. */
const REFUSED: Readonly<Record<string, string>> = {
    '22003': 'a number that is too large',
    '22P02': 'text that is not of its form, for example no address',
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
