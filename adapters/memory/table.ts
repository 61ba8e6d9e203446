import type { Collection } from '../../lib/inventory/store.ts';

/** The parent of rows that have none. */
export const ROOT = 0;

/** Rows of one resource, each below one parent. */
export interface Table<Row extends { readonly id: number }> {
    /** Adds a row with the next id, counted from 1. */
    insert(parent: number, make: (id: number) => Row): Row;
    replace(row: Row): Row;
    get(id: number): Row | undefined;
    /** Id of the parent; undefined when there is no such row. */
    parentOf(id: number): number | undefined;
    /** Ids below a parent, ascending. */
    idsBelow(parent: number): readonly number[];
}

/** A table without rows. */
export function table<Row extends { readonly id: number }>(): Table<Row> {
    const rows = new Map<number, Row>();
    const parents = new Map<number, number>();
    const children = new Map<number, number[]>();

    return {
        insert(parent, make) {
            const row = make(rows.size + 1);
            const siblings = children.get(parent) ?? [];
            siblings.push(row.id);
            children.set(parent, siblings);
            parents.set(row.id, parent);
            rows.set(row.id, row);
            return row;
        },
        replace(row) {
            rows.set(row.id, row);
            return row;
        },
        get: (id) => rows.get(id),
        parentOf: (id) => parents.get(id),
        idsBelow: (parent) => children.get(parent) ?? [],
    };
}

/**
 * The table as a store shows it.
 *
 * @param ancestors Tables of the parents, from the outside in.
 */
export function collection<Row extends { readonly id: number }>(
    rows: Table<Row>,
    ancestors: readonly Pick<Table<Row>, 'parentOf'>[],
    batchSize: number,
): Collection<Row> {
    const exists = (path: readonly number[]): boolean =>
        path.length === ancestors.length && path.every((id, depth) => ancestors[depth]?.parentOf(id) === (path[depth - 1] ?? ROOT));

    return {
        async *list(path, { signal } = {}) {
            // As many as there were when the reading began; rows that come meanwhile are appended behind them.
            const ids = exists(path) ? rows.idsBelow(path.at(-1) ?? ROOT) : [];
            const end = ids.length;
            for (let start = 0; start < end; start += batchSize) {
                signal?.throwIfAborted();
                yield ids.slice(start, Math.min(start + batchSize, end)).flatMap((id) => rows.get(id) ?? []);
            }
        },

        async get(path, id) {
            return exists(path) && rows.parentOf(id) === (path.at(-1) ?? ROOT) ? (rows.get(id) ?? null) : null;
        },
    };
}
