import { MAX_PORT } from '../../../lib/inventory/closed-ports.ts';
import { MAX_ID } from '../../../lib/inventory/fields.ts';
import { addCounts, type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { PoolLike } from '../database.ts';
import type { Pace } from '../pace.ts';
import { type IdleStatement, slicedAtFirst } from './first-run.ts';
import { CLOSED_UNTIL, type ReadBatch, removePiece } from './import-batches.ts';
import type { Lease } from './import-lease.ts';
import { slice } from './import-slices.ts';
import { NOTE_CLOSED, NOTE_NAMED } from './remove-unnamed.ts';
import { NO_FINDINGS, STAGING_FINDINGS, stageFindings } from './stage-findings.ts';
import { STAGE_HOSTS, type StagedHosts } from './stage-hosts.ts';
import { STAGE_CLOSED, STAGE_SERVICES, type StagedServices } from './stage-services.ts';

/** What a batch that was read aside brings. */
interface Batch extends ReadBatch {
    /** The generation that the import gives the workspace. */
    readonly generation: number;
    readonly at: Date;
    /** Whether what it names is noted, since all else is going to be removed. */
    readonly replace: boolean;
}

/** What became of a batch. */
export interface StagedBatch {
    readonly hosts: ImportCounts;
    readonly services: ImportCounts;
    readonly notes: ImportCounts;
    readonly vulns: ImportCounts;
    /** How many hosts have something laid aside. */
    readonly aside: number;
    /** How many hosts were noted as named. */
    readonly named: number;
}

/** What a slice of a batch has come to, by ids of hosts that were there before. */
interface StagedSlice extends Omit<StagedBatch, 'aside'> {
    /** Those that are as they were themselves. */
    readonly kept: readonly number[];
    /** Those that have more below them now. */
    readonly grown: readonly number[];
    /** Those that have something new or other below them. */
    readonly touched: readonly number[];
}

/** Stores a batch, slice by slice, where nobody sees it yet, and removes it from where it was read aside. */
export async function stageBatch(pool: PoolLike, lease: Lease, batch: Batch, pace: Pace): Promise<StagedBatch> {
    if (batch.pieces > 1) {
        const slices: StagedSlice[] = [];
        for (let piece = 0; piece < batch.pieces; piece += 1) {
            slices.push(...(await stageSlice(pool, lease, { ...batch, seq: batch.seq + piece }, { from: 0, until: batch.size, pace })));
        }
        return stagedBy(slices);
    }

    let sum: StagedBatch = NOTHING_STAGED;
    for (let from = 0; from < batch.size; ) {
        const until = Math.min(from + pace.size(), batch.size);
        sum = addStaged(sum, stagedBy(await stageSlice(pool, lease, batch, { from, until, pace })));
        from = until;
    }
    return sum;
}

/** Before anything is staged. */
export const NOTHING_STAGED: StagedBatch = {
    hosts: importCounts(),
    services: importCounts(),
    notes: importCounts(),
    vulns: importCounts(),
    aside: 0,
    named: 0,
};

/** Of both together. */
export function addStaged(one: StagedBatch, other: StagedBatch): StagedBatch {
    return {
        hosts: addCounts(one.hosts, other.hosts),
        services: addCounts(one.services, other.services),
        notes: addCounts(one.notes, other.notes),
        vulns: addCounts(one.vulns, other.vulns),
        aside: one.aside + other.aside,
        named: one.named + other.named,
    };
}

/** What slices with different parts of the same hosts have come to. Only the first has what is said of the hosts themselves. */
function stagedBy(slices: readonly StagedSlice[]): StagedBatch {
    const [first] = slices;
    const kept = new Set(first?.kept);
    const ofKept = (ids: readonly number[]): number => new Set(ids.filter((id) => kept.has(id))).size;
    const sum = slices.reduce<StagedBatch>((before, one) => addStaged(before, { ...one, aside: 0 }), NOTHING_STAGED);
    const own = first?.hosts ?? sum.hosts;
    const enlarged = ofKept(slices.flatMap(({ grown }) => grown));
    return {
        ...sum,
        hosts: addCounts(own, importCounts({ changed: enlarged, unchanged: -enlarged })),
        aside: own.changed + own.gone + ofKept(slices.flatMap(({ touched }) => touched)),
    };
}

/** A number that no batch has. */
const NO_BATCH = -1;

/**
 * The statements for slices of batches, with the parameters of none. Those for services come first: the planner is compiled by whatever comes first, and they have
 * the least of their own.
 */
export function stagingNothing(
    { importId, workspaceId }: Lease,
    { generation, at, replace }: Pick<Batch, 'generation' | 'at' | 'replace'>,
    { hasFindings }: Pick<ReadBatch, 'hasFindings'>,
): readonly IdleStatement[] {
    const named: SliceValues = [importId, NO_BATCH, workspaceId, 0, generation, 0];
    const values = [...named, at];
    return [
        [STAGE_SERVICES, [...values, MAX_ID, []]],
        [STAGE_HOSTS, values],
        ...(hasFindings ? STAGING_FINDINGS.map((text) => [text, [...values, MAX_ID, replace]] as const) : []),
        ...(replace ? [[NOTE_NAMED, [...named, []]] as const] : []),
    ];
}

/** What a statement for a slice of a batch has as its first parameters. */
type SliceValues = readonly [importId: string, seq: number, workspaceId: number, from: number, generation: number, until: number];

/** A slice, and behind it those of services that are closed with others, of hosts that have many. */
async function stageSlice(
    pool: PoolLike,
    lease: Lease,
    batch: Batch,
    { from, until, pace }: { readonly from: number; readonly until: number; readonly pace: Pace },
): Promise<readonly StagedSlice[]> {
    const { seq, size, generation, at, replace, hasFindings } = batch;
    const named: SliceValues = [lease.importId, seq, lease.workspaceId, from, generation, until];
    const forget = (client: Executor): Promise<void> => removePiece(client, lease.importId, seq);
    const work = async (client: Executor): Promise<StagedSlice & Pick<StagedHosts, 'apart'>> => {
        const values = [...named, at];
        const [hosts] = (await client.query<StagedHosts>(STAGE_HOSTS, values)).rows;
        const apart = hosts?.apart ?? [];
        const more = [...values, hosts?.first ?? MAX_ID];
        const [services] = hosts?.differs ? (await client.query<StagedServices>(STAGE_SERVICES, [...more, apart])).rows : [];
        const { grown, touched, ...findings } = hasFindings ? await stageFindings(client, [...more, replace]) : NO_FINDINGS;
        const [noted] = replace ? (await client.query<{ named: number }>(NOTE_NAMED, [...named, apart])).rows : [];
        if (until === size && apart.length === 0) {
            await forget(client);
        }

        return {
            hosts: importCounts(hosts),
            services: importCounts(services ?? { unchanged: hosts?.services ?? 0 }),
            ...findings,
            kept: hosts?.kept ?? [],
            grown: [...(services?.grown ?? []), ...grown],
            touched: [...(services?.touched ?? []), ...touched],
            named: noted?.named ?? 0,
            apart,
        };
    };
    const first = await slicedAtFirst(pool, lease, (client) => pace.timed(until - from, () => work(client)));
    const closed: StagedSlice[] = [];
    for (const index of first.apart) {
        closed.push(...(await stageClosed(pool, lease, batch, index)));
    }
    if (until === size && first.apart.length > 0) {
        await slice(pool, lease, forget);
    }
    return [first, ...closed];
}

/** The services that the host of this index says are closed with others, of which it has many. */
async function stageClosed(
    pool: PoolLike,
    lease: Lease,
    { seq, generation, at, replace }: Batch,
    index: number,
): Promise<readonly StagedSlice[]> {
    const named: SliceValues = [lease.importId, seq, lease.workspaceId, index - 1, generation, index];
    const slices: StagedSlice[] = [];
    for (let behind = 0; behind < MAX_PORT; ) {
        const from = behind;
        const work = async (client: Executor): Promise<number> => {
            const [end] = (await client.query<{ port: number }>(CLOSED_UNTIL, [...named, from])).rows;
            const between = [from, end?.port ?? MAX_PORT] as const;
            const [services] = (await client.query<StagedServices>(STAGE_CLOSED, [...named, at, MAX_ID, ...between])).rows;
            if (replace) {
                await client.query(NOTE_CLOSED, [...named, ...between]);
            }
            slices.push({ ...NOTHING_STAGED, services: importCounts(services), kept: [], grown: [], touched: services?.touched ?? [] });
            return between[1];
        };
        behind = await slice(pool, lease, work);
    }
    return slices;
}
