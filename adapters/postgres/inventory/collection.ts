import { isRowId } from '../../../lib/inventory/fields.ts';
import type { ExtraField, FilterName, Position, SEARCHED, Selection } from '../../../lib/inventory/selection.ts';
import type { Collection, ReadOptions, SelectableCollection } from '../../../lib/inventory/store.ts';
import type { Reader } from '../left-statements.ts';
import { prepared } from '../prepared.ts';
import { isLookedUp } from './hosts-by-address.ts';
import { idWindows } from './id-windows.ts';
import { forManyListings, type Readers } from './readers.ts';
import { type Counted, rangesOf } from './search-ranges.ts';
import {
    BATCH,
    belowOf,
    counting,
    countingRange,
    type Part,
    type Statement,
    seenBelow,
    selecting,
    selectingByAddress,
} from './selecting.ts';
import { isSorted, sortedRows } from './sorted-rows.ts';
import { fromWithin, idsWithin, textBatches } from './text-batches.ts';
import { type BuriedTable, deletions } from './tombstones.ts';

/** How the rows of a resource are found. `rows` stands for the resource's own table in these texts. */
export interface CollectionSource {
    readonly select: string;
    /** The resource's own table, `scanwire.<table>`. */
    readonly table: string;
    /** From `<table> rows`, joined with what its ancestors are checked by. */
    readonly from: string;
    /** Columns that hold the ids of the path, from the outside in. */
    readonly parents: readonly string[];
    /** What a row must fulfil beyond its parents, so that it is there for a reader. */
    readonly shown?: string;
    /** The same, of what an import that is shown is going to remove. */
    readonly kept?: string;
    /** What is true of such rows anyway, and helps to list them. */
    readonly listed?: string;
    readonly filters: readonly FilterName[];
    /** Fields that are there on request only; `column` has them. */
    readonly extras?: readonly ExtraField[];
    /** Whether the rows have `hosts`, by which they can be chosen, and by whose address. */
    readonly byHost?: true;
    /** The fields that `search` looks into. */
    readonly searched?: readonly (typeof SEARCHED)[number][];
    /** The value of a field as it goes out; the column of `rows` by default. */
    readonly column?: (field: string) => string;
    /**
     * Instead of `from`: only the rows with something laid over them, called `staged`. So that rows can be read in the order of their
     * change, both parts by their own index: over what is laid over rows there can be none. Without it no index has that order, and rows are sorted.
     */
    readonly staged?: string;
    /** The table, where it is told what was deleted from it. */
    readonly buried?: BuriedTable;
    /** Whether the hosts are those of our own table: the blocks of addresses that there are can be looked up. */
    readonly hasBlocks?: true;
    /** Makes of what was read what SQL cannot. */
    readonly whole?: (rows: readonly GivenRow[], path: readonly number[]) => readonly GivenRow[];
    /** Instead of `select` and `from`: the text of a row, null where it has none. Not used while an import lays something over rows. */
    readonly text?: { readonly row: string; readonly from: string; readonly isKept?: true };
}

/** A row as it was read. */
export type GivenRow = Readonly<Record<string, unknown>>;

/**
 * Rows read in batches, each a statement of its own that goes on behind the last id. So a slow reader holds neither a connection
 * nor a snapshot: a row is seen at most once, and one that is stored behind the reader while it reads is missed.
 */
export function collection<Row extends { readonly id: number }>(readers: Readers, source: CollectionSource): SelectableCollection<Row> {
    const { database, searching } = readers;
    const { select: columns, from, parents, filters, kept, whole = (rows) => rows } = source;
    const below = seenBelow(source);
    const windows = idWindows(source, searching.inRanges);
    const rangesWithin = (path: readonly number[], selection: Selection) => (searching.inRanges ? rangesOf(source, path, selection) : null);
    // One for each resource, however many columns its table has.
    const one = prepared(`select ${columns} from ${from} where ${[...below, `rows.id = $${parents.length + 1}`].join(' and ')}`);

    async function rowsOf(reader: Reader, path: readonly number[], { text, values }: Statement, { signal }: ReadOptions) {
        signal?.throwIfAborted();
        const found = await reader.query<GivenRow>(text, values, signal);
        signal?.throwIfAborted();
        return whole(found.rows, path) as readonly (Row & { readonly updated_at: Date })[];
    }

    /** Whether there may be any number of rows one behind the other that are going to be removed, each of which is passed over. */
    async function passesOver([workspace]: readonly number[], { signal }: ReadOptions): Promise<boolean> {
        if (kept === undefined || !isRowId(workspace)) {
            return false;
        }

        const { rows } = await database.query<{ staged_shown: boolean }>(STAGED_SHOWN, [workspace], signal);
        return rows[0]?.staged_shown === true;
    }

    async function* select(path: readonly number[], selection: Selection, options: ReadOptions = {}) {
        forManyListings(options.signal);
        const { after, limit = Number.POSITIVE_INFINITY } = selection;
        if (isSorted(source, selection, searching.inRanges)) {
            yield* sortedRows(searching, source, (...read) => rowsOf(...read, options), path, selection, options);
            return;
        }

        const isFollowed = followsIndex(source, selection) && !(searching.inRanges && (await passesOver(path, options)));
        const { database: first, further } = isFollowed ? readers : searching;
        const ranges = isFollowed ? windows?.of(path, selection) : rangesWithin(path, selection);
        let left = path.every(isRowId) ? limit : 0;
        for (let behind = after; left > 0; ) {
            const size = Math.min(left, BATCH);
            const reader = behind === after ? first : further;
            const read = (part: Part) =>
                rowsOf(reader, path, selectingByAddress(source, path, part) ?? selecting(source, path, part), options);
            const part = partOf(selection, behind, size);
            const rows = ranges ? await ranges.read(reader, part, read, options.signal) : await read(part);
            if (rows.length > 0) {
                yield rows;
            }

            left = rows.length < size ? 0 : left - rows.length;
            behind = rows.at(-1) ?? behind;
        }
    }

    return {
        filters,
        ...(source.extras !== undefined && { extras: source.extras }),
        ...(source.byHost && { selectsHosts: true }),
        select(path, selection, options) {
            if (selection.limit !== undefined) {
                readers.noteAsker();
            }
            return select(path, selection, options);
        },

        ...(source.text !== undefined && { listText: textOf(readers, source, source.text, select) }),
        ...(source.buried !== undefined && { deletions: deletions(readers, source.buried, parents.length) }),
        list: (path, options) => select(path, {}, options),

        async get(path, id, options = {}) {
            if (![...path, id].every(isRowId)) {
                return null;
            }

            readers.noteAsker();
            const { rows } = await database.query<GivenRow>(one, [...path, id], () => forManyListings(options.signal));
            return (whole(rows, path)[0] as Row | undefined) ?? null;
        },

        async count(path, where, { signal } = {}) {
            forManyListings(signal);
            if (!path.every(isRowId)) {
                return 0;
            }

            const asked = async <Result>({ text, values }: Statement): Promise<Result> => {
                const { rows } = await searching.database.query<Result>(text, values, signal);
                return rows[0] as Result;
            };
            const { updated_since: _, ...others } = where;
            const ranges = rangesWithin(path, { where: others });
            return ranges === null
                ? (await asked<Pick<Counted, 'count'>>(counting(source, path, where))).count
                : await ranges.count((range) => asked<Counted>(countingRange(source, path, where, range)));
        },
    };
}

const STAGED_SHOWN = prepared('select staged_shown from scanwire.workspaces where id = $1');

/** Whether an index leads from one row of the selection to the next: other filters may pass over any number of rows for each. */
function followsIndex({ byHost, hasBlocks, staged }: CollectionSource, { where = {}, hosts }: Selection): boolean {
    const { address, updated_since, ...others } = where;
    const isInOrder = updated_since === undefined || (staged !== undefined && address === undefined && hosts === undefined);
    // A host may have any number of rows.
    const isFound = address === undefined || (byHost !== true && isLookedUp(address, hasBlocks === true));
    return isInOrder && isFound && Object.values(others).every((value) => value === undefined);
}

/** The reading of a collection as text. While an import lays something over rows they come as rows. */
function textOf<Row extends { readonly id: number }>(
    readers: Readers,
    { listed = 'true', ...source }: CollectionSource,
    { row, from, isKept }: NonNullable<CollectionSource['text']>,
    select: Required<Collection<Row>>['select'],
): NonNullable<Collection<Row>['listText']> {
    const windows = idWindows(source, readers.searching.inRanges);
    const page = (after: string, until?: string, within?: (name: string) => string): string => {
        const end = until ?? (within === undefined ? windows?.endOf(after) : undefined);
        return `select rows.id, ${row} as text
            from ${fromWithin(from, within)} where ${[...belowOf(source), listed, idsWithin(after, end)].join(' and ')} order by rows.id`;
    };
    const usable = '(select not staged_shown from scanwire.workspaces where id = $1)';
    const own = { parents: source.parents.length, page, usable, ...(isKept && { isKept }), ...(windows !== null && { windows }) };
    const pages = textBatches(readers, own, select);
    return (path, options) => (path.every(isRowId) ? pages(path, options) : select(path, {}, options));
}

/** What comes next of a selection. */
function partOf({ after: _, ...selection }: Selection, behind: Position | undefined, limit: number): Selection {
    return { ...selection, limit, ...(behind !== undefined && { after: behind }) };
}
