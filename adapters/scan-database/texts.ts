import { isRowId, MAX_ID } from '../../lib/inventory/fields.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import type { Readers } from '../postgres/inventory/readers.ts';
import { rowText } from '../postgres/inventory/row-text.ts';
import { idsWithin, textPages } from '../postgres/inventory/text-pages.ts';
import { type Columns, type Computed, expression, safeTexts, timeOf } from './columns.ts';

/** The fields of rows in their order, with their kinds. */
export type WritableFields = Parameters<typeof rowText>[0];
type Kind = WritableFields[string];

/** Where rows are, as for their reading, and what they are written of. */
export interface WrittenSource extends FieldSource {
    readonly from: string;
    readonly parents: readonly string[];
}

/** Whose fields they are. */
export interface FieldSource {
    readonly table: string;
    readonly computed?: Computed;
    readonly fields: WritableFields;
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
    const pages = textPages<Row>(readers, { parents: parents.length, page }, read);
    return (path, options) => (path.every(isRowId) ? pages(path, options) : read(path, {}, options));
}

/** The value of a field in SQL as it goes out, a time as one with a zone. */
export function outgoing(
    columns: Columns,
    { table, computed = {}, fields }: FieldSource,
    timed: (value: string) => string = zoned,
): (field: string) => string {
    const given = (field: string): string => {
        const form = formOf(fields[field]);
        const value = form === TIME ? timeOf : expression;
        return computed[field] ?? (columns.has(`${table}.${field}`) ? value(table, field, columns) : `null::${form.type}`);
    };
    return (field) => {
        const form = formOf(fields[field]);
        const { filled = form === TIME ? timed : (value: string): string => value } = form;
        return filled(given(field), given);
    };
}

function zoned(value: string): string {
    return `(${value}) at time zone 'UTC'`;
}

/** Below the ids of the path, the first parameters. */
function below(parents: readonly string[]): readonly string[] {
    return parents.map((column, index) => `${column} = $${index + 1}`);
}

/** What a field is in SQL, and what stands for nothing in it, as where rows are read. */
interface Form {
    readonly type: string;
    readonly filled?: (value: string, other: (field: string) => string) => string;
}

const TEXT: Form = { type: 'text' };
const TIME: Form = { type: 'timestamp' };
const NUMBER: Form = { type: 'integer' };
const COUNT: Form = { ...NUMBER, filled: (value) => `coalesce(${value}, 0)` };
const FILLED_TEXT: Form = { ...TEXT, filled: (value) => `coalesce(${value}, '')` };

const FORMS: Readonly<Partial<Record<Kind, Form>>> = {
    id: NUMBER,
    nullableId: NUMBER,
    foreignId: NUMBER,
    count: COUNT,
    port: COUNT,
    time: TIME,
    nullableTime: TIME,
    text: FILLED_TEXT,
    vulnName: FILLED_TEXT,
    name: { ...TEXT, filled: (value, other) => `coalesce(nullif(${value}, ''), ${other('address')})` },
    state: { ...TEXT, filled: (value) => `coalesce(nullif(${value}, ''), 'alive')` },
};

function formOf(kind: Kind | undefined): Form {
    return (kind !== undefined && FORMS[kind]) || TEXT;
}
