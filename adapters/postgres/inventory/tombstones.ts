import { DELETIONS_KEPT, DELETIONS_MARGIN, type Deletion, type Deletions } from '../../../lib/inventory/deletions.ts';
import { isRowId } from '../../../lib/inventory/fields.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { forManyListings, type Readers } from './readers.ts';

/** The tables whose deletions are written down. */
export type BuriedTable = 'workspaces' | 'hosts' | 'services' | 'notes' | 'vulns';

const BATCH = 1000;
/** The columns of the ids of a path, from the outside in. */
const PATH_COLUMNS = ['workspace_id', 'host_id', 'service_id'];
const BEGUN = `select greatest(begun_at, scanwire.now() - $1 * interval '1 millisecond') as since from scanwire.tombstone_keeping`;

/**
 * The deletions of a table, below paths of so many ids. A path whose rows are elsewhere by now has none; what was deleted below a host is
 * found below the workspace that the host is in.
 */
export function deletions({ database, further }: Readers, table: BuriedTable, ids: number): Deletions {
    const below = ids === 0 ? ['workspace_id = 0'] : PATH_COLUMNS.slice(0, ids).map((column, index) => `${column} = $${index + 1}`);
    const [at, id, limit] = [1, 2, 3].map((offset) => `$${ids + offset}`);
    const text = `select id, deleted_at from scanwire.tombstones
        where kind = '${table}' and ${below.join(' and ')} and (deleted_at, id) > (${at}::timestamptz, ${id}::integer)
        order by deleted_at, id limit ${limit}`;

    return {
        async since({ signal } = {}) {
            forManyListings(signal);
            const { rows } = await database.query<{ since: Date }>(BEGUN, [DELETIONS_KEPT], signal);
            return (rows[0] as { since: Date }).since;
        },

        async *select(path, { since, after = { id: 0, deleted_at: since }, limit: max }, { signal } = {}) {
            forManyListings(signal);
            let behind = after;
            let left = path.length === ids && path.every(isRowId) ? (max ?? Number.POSITIVE_INFINITY) : 0;
            while (left > 0) {
                signal?.throwIfAborted();
                const size = Math.min(left, BATCH);
                const reader = behind === after ? database : further;
                const { rows } = await reader.query<Deletion>(text, [...path, behind.deleted_at, behind.id, size], signal);
                signal?.throwIfAborted();
                if (rows.length > 0) {
                    yield rows;
                }

                left = rows.length < size ? 0 : left - rows.length;
                behind = rows.at(-1) ?? behind;
            }
        },
    };
}

const FORGET = `delete from scanwire.tombstones where (kind, id, workspace_id) in (
    select kind, id, workspace_id from scanwire.tombstones
    where deleted_at < (select scanwire.now()) - $1 * interval '1 millisecond' order by deleted_at limit 500
)`;

/** Removes the deletions that are not told any more, some at a time; whoever deletes does it. What is left whoever deletes next removes. */
export async function forgetDeletions(database: Executor): Promise<void> {
    while (((await database.query(FORGET, [DELETIONS_KEPT + DELETIONS_MARGIN])).rowCount ?? 0) > 0);
}
