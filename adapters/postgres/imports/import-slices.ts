import { ScanwireError } from '../../../lib/errors.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { type ClientLike, IMPATIENT_OF_SILENCE, type PoolLike, TRIES, transaction } from '../database.ts';
import { sqlState } from '../database-errors.ts';
import { isHostPool } from '../own-pool.ts';
import { type Pace, paceOf, type Sizes } from '../pace.ts';
import { driven, forgot, wasForgotten } from '../prepared.ts';
import { type Crowd, thinned } from './crowded-hosts.ts';
import { LEASE, type Lease, OWN_WRITE } from './import-lease.ts';

/**
 * Every row is found by an index, one by one: what is small or empty when the planner last heard of it has grown since, and a slice that
 * reads whole tables or indexes takes seconds. What is asked for in the order of an index is read from that one alone: for a sort the planner takes another
 * one, and reads all that it has. A statement that sorts all the same looks costly, and would be compiled for seconds. Nor does a slice wait for the disk; what
 * shows the import does, and the slices are in the log before it.
 */
const SETTINGS = `set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off;
    set local enable_bitmapscan = off; set local enable_sort = off; set local enable_incremental_sort = off;
    set local jit = off; set local synchronous_commit = off; ${OWN_WRITE}`;

const preparingPools = new WeakMap<PoolLike, PoolLike>();

/**
 * The pool for many slices, the same for every import: its connections keep the statements that are marked by `prepared`. To parse and plan those for a slice takes as long as to store
 * 30 hosts (measured on PostgreSQL).
 */
export function preparing(pool: PoolLike): PoolLike {
    const before = isHostPool(pool) ? preparingPools.get(pool) : pool;
    if (before !== undefined) {
        return before;
    }

    const keeping = (client: ClientLike): ClientLike => {
        const statements = driven(client, true);
        return {
            async query<Row>(text: string, values?: unknown[]) {
                try {
                    return await statements.query<Row>(text, values);
                } catch (error) {
                    forgot(client, text, sqlState(error));
                    throw error;
                }
            },
            release: (destroy) => client.release(destroy),
            on: client.on.bind(client),
            removeListener: client.removeListener.bind(client),
        };
    };
    const { embedded = false, othersFirst } = pool;
    const made = {
        embedded,
        ...(othersFirst !== undefined && { othersFirst }),
        query: pool.query.bind(pool),
        connect: async () => keeping(await pool.connect()),
    };
    preparingPools.set(pool, made);
    return made;
}

/**
 * For how many milliseconds at most others go first who use the embedded database: what they ask takes several statements, of which each would wait for a slice.
 * An import beside others without an end takes four times as long.
 */
const OTHERS_FIRST = 100;

/**
 * One short transaction of an import. It holds the row of the workspace, so that nobody takes the lease meanwhile.
 *
 * @param run Is called again where the connection has lost a statement that it kept, which rolls all back.
 * @throws ScanwireError `CONFLICT` when the import no longer has the lease.
 */
export async function slice<T>(pool: PoolLike, { workspaceId, importId }: Lease, run: (client: Executor) => Promise<T>): Promise<T> {
    const work = async (client: Executor): Promise<T> => {
        await client.query(SETTINGS);
        const { rowCount } = await client.query(
            `update scanwire.workspaces set import_until = scanwire.now() + ${LEASE} where id = $1 and import_id = $2`,
            [workspaceId, importId],
        );
        if (rowCount !== 1) {
            throw new ScanwireError('CONFLICT', 'The import was taken for dead, and what it had stored was removed');
        }

        return await run(client);
    };
    await pool.othersFirst?.(OTHERS_FIRST);
    for (let tries = 1; ; tries += 1) {
        try {
            return await transaction(pool, work, IMPATIENT_OF_SILENCE);
        } catch (error) {
            if (tries === TRIES || !wasForgotten(sqlState(error))) {
                throw error;
            }
        }
    }
}

/** On the embedded database everybody waits for a slice. On a server nobody does, and a batch, which is no larger than a short transaction can be, is one. */
export function paceOn({ embedded = false }: PoolLike): Pace {
    return embedded ? paceOf() : { size: () => Number.POSITIVE_INFINITY, timed: (_size, work) => work() };
}

/** What a slice has come to, with whatever else its statement says. */
type SliceRow<More> = More & { readonly last: number | null; readonly count: number; readonly crowd?: number | null };

interface EverySlice<More> {
    /** What of a host, that the statement names as its `crowd` and leaves out with all behind it, goes into slices of its own. */
    readonly crowds?: readonly Crowd[];
    /** Instead: does all that there is to do for such a host, behind which the statement goes on. */
    readonly ofCrowd?: (host: number) => Promise<void>;
    readonly onHosts?: ((count: number, row: SliceRow<More>) => void) | undefined;
    readonly values?: readonly unknown[];
    readonly sizes?: Sizes;
}

/** @param sql Works on at most `$3` hosts behind `$2` of the workspace `$1`, and says how many and which was the last. From `$4` on it has `values`. */
export async function everySlice<More extends object = object>(
    pool: PoolLike,
    lease: Lease,
    sql: string,
    { onHosts = () => {}, values: more = [], sizes, crowds = [], ofCrowd }: EverySlice<More> = {},
): Promise<void> {
    const pace = paceOf(undefined, sizes);
    for (let after: number | null = 0; after !== null; ) {
        const values: unknown[] = [lease.workspaceId, after, pace.size(), ...more];
        const work = (client: Executor) => client.query<SliceRow<More>>(sql, values);
        const { rows } = await slice(pool, lease, (client) => pace.timed(pace.size(), () => work(client)));
        const [row] = rows;
        const crowd = row?.crowd ?? null;
        after = row?.last ?? (crowd === null ? null : after);
        if (row !== undefined && (crowd === null || row.count > 0)) {
            onHosts(row.count, row);
        }
        if (crowd !== null && ofCrowd !== undefined) {
            await ofCrowd(crowd);
            after = crowd;
        }
        if (crowd !== null) {
            await thinOut(pool, lease, crowd, crowds);
        }
    }
}

/** Does all the work for the rows below a crowded host. */
export async function thinOut(pool: PoolLike, lease: Lease, host: number, crowds: readonly Crowd[]): Promise<void> {
    for (const crowd of crowds) {
        for (let behind: number | null = 0; behind !== null; ) {
            const from: number = behind;
            behind = await slice(pool, lease, (client) => thinned(client, host, crowd, from));
        }
    }
}
