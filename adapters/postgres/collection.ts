import type { Collection } from '../../lib/inventory/store.ts';
import type { PoolLike } from './pool.ts';

/** How the rows of a resource are found. `rows` stands for the resource's own table in these texts. */
export interface CollectionSource {
    readonly select: string;
    /** From `scanwire.<table> rows`, joined with what its ancestors are checked by. */
    readonly from: string;
    /** Columns that hold the ids of the path, from the outside in. */
    readonly parents: readonly string[];
}

/** Large enough that a round trip does not count, small enough that a batch does not either (see `docs/postgres.md`). */
const BATCH = 250;
const LARGEST_ID = 2_147_483_647;

/**
 * Rows read in batches, each a statement of its own that goes on behind the last id. So a slow reader holds neither a connection
 * nor a snapshot: a row is seen at most once, and one that is stored behind the reader while it reads is missed.
 */
export function collection<Row extends { readonly id: number }>(
    pool: PoolLike,
    { select, from, parents }: CollectionSource,
): Collection<Row> {
    const below = parents.map((column, index) => `${column} = $${index + 1}`);
    const last = `$${parents.length + 1}`;
    const statement = (condition: string): string =>
        `select ${select} from ${from} where ${[...below, condition].join(' and ')} order by rows.id limit ${BATCH}`;
    const batch = statement(`rows.id > ${last}`);
    const one = statement(`rows.id = ${last}`);

    return {
        async *list(path, { signal } = {}) {
            for (let after = 0, full = path.every(isId); full; ) {
                signal?.throwIfAborted();
                const { rows } = await pool.query<Row>(batch, [...path, after]);
                signal?.throwIfAborted();
                if (rows.length > 0) {
                    yield rows;
                }

                after = rows.at(-1)?.id ?? LARGEST_ID;
                full = rows.length === BATCH;
            }
        },

        async get(path, id) {
            if (![...path, id].every(isId)) {
                return null;
            }

            const { rows } = await pool.query<Row>(one, [...path, id]);
            return rows[0] ?? null;
        },
    };
}

/** What no column can hold is the id of nothing. */
function isId(id: number): boolean {
    return Number.isInteger(id) && id >= 1 && id <= LARGEST_ID;
}
