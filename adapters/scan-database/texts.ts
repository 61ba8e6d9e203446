import { isRowId, MAX_ID } from '../../lib/inventory/fields.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import type { Readers } from '../postgres/inventory/readers.ts';
import { rowText } from '../postgres/inventory/row-text.ts';
import { idsWithin, textBatches } from '../postgres/inventory/text-batches.ts';
import { type Columns, type FieldSource, outgoing, safeTexts } from './columns.ts';

/** Where rows are, as for their reading, and what they are written of. */
interface WrittenSource extends FieldSource {
    readonly from: string;
    readonly parents: readonly string[];
}

/** Rows as text that the database makes, of which nothing is parsed and written again here. Rows that it cannot write so are read. */
export function texts<Row extends { readonly id: number }>(
    readers: Readers,
    columns: Columns,
    { table, from, parents, computed = {}, fields }: WrittenSource,
    { select }: Pick<Collection<Row>, 'select'>,
): NonNullable<Collection<Row>['listText']> {
    // Times are in UTC without a zone there: to give them one, so that it is taken away again, takes as long as to write them.
    const utc = (value: string): string => value;
    const written = rowText(fields, outgoing(columns, { table, computed, fields }, utc), { utc, safe: safeTexts(table, columns) });
    // An id that the API has no form for is refused where the row is read.
    const page = (
        after: string,
        until?: string,
    ): string => `select least(rows.id, ${MAX_ID})::integer as id, case when rows.id <= ${MAX_ID} then ${written} end as text
        from ${from} where ${[...below(parents), idsWithin(after, until)].join(' and ')} order by rows.id`;
    const read = select as NonNullable<typeof select>;
    const pages = textBatches<Row>(readers, { parents: parents.length, page }, read);
    return (path, options) => (path.every(isRowId) ? pages(path, options) : read(path, {}, options));
}

/** Below the ids of the path, the first parameters. */
function below(parents: readonly string[]): readonly string[] {
    return parents.map((column, index) => `${column} = $${index + 1}`);
}
