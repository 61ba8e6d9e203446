import { isRowId } from '../../../lib/inventory/fields.ts';
import type { Position, Selection } from '../../../lib/inventory/selection.ts';
import type { ReadOptions } from '../../../lib/inventory/store.ts';
import type { Reader } from '../left-statements.ts';
import type { CollectionSource } from './collection.ts';
import type { Readers } from './readers.ts';
import { rangesOf } from './search-ranges.ts';
import { BATCH, changing, type SortedBatch, type Statement, selecting, sorting } from './selecting.ts';

/** Rows whose order is looked up at once, where all are sorted for it. */
const SORTED = 50_000;

/** Whether the order of changes of a selection, which no index has, is looked up before its rows are read: each of many batches would sort all rows. */
export function isSorted({ staged }: CollectionSource, { where, limit = Number.POSITIVE_INFINITY }: Selection, inRanges: boolean): boolean {
    return where?.updated_since !== undefined && staged === undefined && (inRanges || limit > BATCH);
}

/** In the order of changes. What has changed since the order was looked up comes behind it: then the rest is looked up once more. */
export async function* sortedRows<Row extends Position>(
    { database: first, further, inRanges }: Readers['searching'],
    source: CollectionSource,
    rowsOf: (reader: Reader, path: readonly number[], statement: Statement) => Promise<readonly Row[]>,
    path: readonly number[],
    { after, ...selection }: Selection,
    { signal }: ReadOptions,
): AsyncGenerator<readonly Row[]> {
    const { limit = Number.POSITIVE_INFINITY } = selection;
    const part = (limit: number, behind: Position | undefined): Selection => ({
        ...selection,
        limit,
        ...(behind !== undefined && { after: behind }),
    });
    const order = inRanges ? sortedInRanges : sortedAtOnce;
    let left = path.every(isRowId) ? limit : 0;
    for (let behind = after; left > 0; ) {
        const reader = behind === after ? first : further;
        const size = Math.min(left, SORTED);
        const batches = await order(reader, source, path, part(size, behind), signal);
        let [sorted, read] = [0, 0];
        for (const batch of batches) {
            const statement = selecting(source, path, part(batch.rows, behind), batch);
            const rows = await rowsOf(sorted === 0 ? reader : further, path, statement);
            if (rows.length > 0) {
                yield rows;
            }

            sorted += batch.rows;
            read += rows.length;
            behind = rows.at(-1) ?? behind;
        }
        left = sorted < size && read === sorted ? 0 : left - read;
    }
}

/** Looks up the order of the first rows of a selection, in batches. */
type Order = (
    reader: Reader,
    source: CollectionSource,
    path: readonly number[],
    selection: Selection & { readonly limit?: number },
    signal: AbortSignal | undefined,
) => Promise<readonly SortedBatch[]>;

const sortedAtOnce: Order = async (reader, source, path, selection, signal) => {
    const { text, values } = sorting(source, path, selection);
    return (await reader.query<SortedBatch>(text, values, signal)).rows;
};

/** The same by statements that give way to others: the order is made of what each says of its range. */
const sortedInRanges: Order = async (reader, source, path, selection, signal) => {
    const { where: { updated_since: _, ...others } = {}, after: __, limit = SORTED } = selection;
    const ranges = rangesOf(source, path, { ...selection, where: others });
    if (ranges === null) {
        return await sortedAtOnce(reader, source, path, selection, signal);
    }

    let first: readonly Changed[] = [];
    const look = async (range: Selection): Promise<void> => {
        const { text, values } = changing(source, path, selection, range);
        const { rows } = await reader.query<Changed>(text, values, signal);
        first = [...first, ...rows].sort((a, b) => a.changed - b.changed || a.id - b.id).slice(0, limit);
    };
    await ranges.each(reader, look, signal);
    return Array.from({ length: Math.ceil(first.length / BATCH) }, (__, index) => batchOf(first.slice(index * BATCH, (index + 1) * BATCH)));
};

/** A row, and when it was changed, in milliseconds since the epoch. */
interface Changed {
    readonly id: number;
    readonly changed: number;
}

function batchOf(rows: readonly Changed[]): SortedBatch {
    const { id, changed } = rows.at(-1) ?? { id: 0, changed: 0 };
    return { ids: `{${rows.map((row) => row.id)}}`, until: new Date(changed).toISOString(), last: `${id}`, rows: rows.length };
}
