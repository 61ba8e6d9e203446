import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, patiently } from '../database.ts';
import { isSilence } from '../database-errors.ts';

/** An import that has not renewed its lease for so long has died. Longer than any statement is waited for. */
export const LEASE = `interval '40 seconds'`;

/** Of a transaction that writes in turn with the imports into its workspaces, and itself forgets those of them that are remembered. */
export const OWN_WRITE = `set local scanwire.own_write = 'yes'`;

/** An import at work in a workspace; nobody else writes there. */
export interface Lease {
    readonly workspaceId: number;
    readonly importId: string;
}

/** Begins to store: from here on listings end before the hosts that are going to come. Resolves to the generation of the import. */
export async function lease(client: Executor, { workspaceId, importId }: Lease): Promise<number> {
    const { rows } = await client.query<{ generation: number }>(
        `update scanwire.workspaces
         set import_id = $2, import_until = scanwire.now() + ${LEASE}, hosts_until = (select coalesce(max(id), 0) from scanwire.hosts)
         where id = $1 returning greatest(generation, 0) + 1 as generation`,
        [workspaceId, importId],
    );
    return rows[0]?.generation ?? 0;
}

/** Leaves the import to whoever writes next, who need not wait for the end of its lease. Where this fails, he waits. */
export async function release(pool: PoolLike, { workspaceId, importId }: Lease): Promise<void> {
    await patiently(pool, IMPATIENT_OF_SILENCE).query(
        `update scanwire.workspaces set import_until = '-infinity' where id = $1 and import_id = $2`,
        [workspaceId, importId],
    );
}

/** Behind these failures the database has fallen silent. */
const silentBehind = new WeakSet<Error>();

/**
 * Clears up, step by step, what no outcome depends on: what fails whoever writes next does as well. A database that falls silent is asked nothing more.
 *
 * @param failure What it is done after, where somebody waits to be told of that.
 */
export async function clearedUp(steps: readonly (() => Promise<void>)[], failure?: unknown): Promise<void> {
    for (const step of steps) {
        const { error } = await step().then(
            () => ({ error: null }),
            (error: unknown) => ({ error }),
        );
        if (isSilence(error)) {
            noteSilence(failure);
            return;
        }
    }
}

/** From now on nothing is waited for behind this failure. */
export function noteSilence(failure: unknown): void {
    if (failure instanceof Error) {
        silentBehind.add(failure);
    }
}

/** Clears up after a failure. That is not waited for while the database is silent: somebody waits for the answer, and each step would take seconds. */
export async function clearedAfter(failure: unknown, ...steps: readonly (() => Promise<void>)[]): Promise<void> {
    const cleared = clearedUp(steps, failure);
    if (!isSilence(failure) && !(failure instanceof Error && silentBehind.has(failure))) {
        await cleared;
    }
}
