import type { Executor } from '../../../lib/transaction.ts';
import type { PoolLike } from '../database.ts';
import { type Lease, slice } from './import-lease.ts';

/**
 * How many hosts a slice has, and how many milliseconds it should take, since a request may wait for several. Smaller ones would save
 * little: a third of a slice of 50 is the same for each (measured on the embedded database).
 */
const SLICE = { most: 150, first: 75, least: 50, takes: 40 } as const;

/** How many hosts go into a slice, by how long those before took. */
export interface Pace {
    hosts(): number;
    /** Does the work of a slice of so many hosts. */
    timed<T>(hosts: number, work: () => Promise<T>): Promise<T>;
}

/** The pace of a series of slices. Of one that took much longer or less only half is believed: something else may have come between. */
export function paceOf(monotonic: () => number = () => performance.now()): Pace {
    let next: number = SLICE.first;
    return {
        hosts: () => next,

        async timed(hosts, work) {
            const begun = monotonic();
            const result = await work();
            const fitting = (hosts * SLICE.takes) / Math.max(1, monotonic() - begun);
            const believed = Math.min(Math.max(fitting, next / 2), 2 * next);
            next = Math.round(Math.min(Math.max(believed, SLICE.least), SLICE.most));
            return result;
        },
    };
}

/** What a slice has come to, with whatever else its statement says. */
type SliceRow<More> = More & { readonly last: number | null; readonly count: number };

interface EverySlice<More> {
    readonly onHosts?: (count: number, row: SliceRow<More>) => void;
    readonly values?: readonly unknown[];
}

/** @param sql Works on at most `$3` hosts behind `$2` of the workspace `$1`, and says how many and which was the last. From `$4` on it has `values`. */
export async function everySlice<More extends object = object>(
    pool: PoolLike,
    lease: Lease,
    sql: string,
    { onHosts = () => {}, values: more = [] }: EverySlice<More> = {},
): Promise<void> {
    const pace = paceOf();
    for (let after: number | null = 0; after !== null; ) {
        const values: unknown[] = [lease.workspaceId, after, pace.hosts(), ...more];
        const work = (client: Executor) => client.query<SliceRow<More>>(sql, values);
        const { rows } = await slice(pool, lease, (client) => pace.timed(pace.hosts(), () => work(client)));
        const [row] = rows;
        after = row?.last ?? null;
        if (row !== undefined) {
            onHosts(row.count, row);
        }
    }
}
