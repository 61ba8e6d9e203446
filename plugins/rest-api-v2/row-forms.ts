import type { SchemaDescription } from '../../lib/application-schema.ts';
import { timeSlice } from '../../lib/clock.ts';
import { csvLine } from '../../lib/csv.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { emptyValue } from '../../lib/inventory/fields.ts';
import type { TimestampFormat } from '../../lib/timestamp.ts';

/** A store may give batches of any size; this many rows become text at once. */
const ROWS_PER_TEXT = 500;

/** The text of all rows, in pieces: one for each batch. A batch that is text already is in this form. Ending it early ends the reading; a failure of the reading is its failure. */
export async function* indexText(
    batches: AsyncIterable<string | Uint8Array | readonly object[]>,
    form: RowForm,
): AsyncGenerator<string | Uint8Array, void, undefined> {
    let yieldIfDue: ReturnType<typeof timeSlice> | undefined;
    let before = form.begin;
    let isEmpty = true;
    for await (const batch of batches) {
        // What the first batch was waited for is nobody's turn.
        yieldIfDue ??= timeSlice();
        for (const text of textsOf(batch, form)) {
            if (typeof text === 'string') {
                yield before + text;
            } else {
                yield before;
                yield text;
            }
            before = form.separator;
            isEmpty = false;
            await yieldIfDue();
        }
    }

    const end = isEmpty ? form.begin + form.end : form.end;
    if (end !== '') {
        yield end;
    }
}

function* textsOf(batch: string | Uint8Array | readonly object[], form: RowForm): Generator<string | Uint8Array> {
    if (typeof batch === 'string' || batch instanceof Uint8Array) {
        yield batch;
        return;
    }
    if (!Array.isArray(batch)) {
        throw new ScanwireError('MISCONFIGURED', 'The list of a collection must give batches, arrays of rows; it gave something else');
    }

    for (let start = 0; start < batch.length; start += ROWS_PER_TEXT) {
        yield form.text(batch.slice(start, start + ROWS_PER_TEXT));
    }
}

/** Type of lines of JSON. */
export const LINES_TYPE = 'application/x-ndjson';

/** How an index can be written. */
export type Format = 'json' | 'ndjson' | 'csv';

/** How rows become text in one format: `begin`, texts with `separator` between them, `end`. */
export interface RowForm {
    readonly type: string;
    readonly begin: string;
    readonly separator: string;
    readonly end: string;
    /** The text of rows alone, in JSON without the brackets of an array: one object, or several with commas between them. */
    readonly text: (rows: readonly object[]) => string;
}

/** The forms of the rows of one resource. */
export interface RowForms {
    /** What the schema says of each field, in the order in which they go out. */
    readonly fields: ReadonlyMap<string, SchemaDescription>;
    /** The same of those that go out, behind the others, where they are named only. */
    readonly extras: ReadonlyMap<string, SchemaDescription>;
    /** @param only Names of the fields that go out; all by default. */
    form(format: Format, only?: ReadonlySet<string>): RowForm;
}

type Row = Readonly<Record<string, unknown>>;

/** What goes out for a field that a row leaves open, from the row itself. */
export type Fill = Readonly<Record<string, (row: Row) => unknown>>;

/**
 * How rows of one resource become text: the fields of the schema in its order and no others, each always there, dates as
 * timestamps. For all fields the schema is looked at once, here, and never while answering.
 *
 * @param options.extras The fields that go out where they are named.
 * @param options.fill For fields whose value, where a row has none or `''`, is not the one that follows from the type.
 */
export function rowForms(
    schema: SchemaDescription,
    timestamp: TimestampFormat,
    { fill = {}, extras: { keys: extraKeys = {} } = {} }: { readonly fill?: Fill | undefined; readonly extras?: SchemaDescription } = {},
): RowForms {
    const fields = new Map(Object.entries(schema.keys ?? {}));
    const extras = new Map(Object.entries(extraKeys));
    const make = (only?: ReadonlySet<string>) => {
        const keys = only === undefined ? [...fields] : [...fields, ...extras].filter(([name]) => only.has(name));
        const names = keys.map(([name]) => name);
        return formsOf(names, columnsOf({ keys: Object.fromEntries(keys) }, timestamp, fill));
    };
    const whole = make();
    return { fields, extras, form: (format, only) => (only === undefined ? whole : make(only))[format] };
}

/** A field as it goes out: what stands before its value in JSON, and its value in a row. */
interface Column {
    readonly key: string;
    readonly valueIn: (row: Row) => unknown;
}

function formsOf(names: readonly string[], columns: readonly Column[]): Readonly<Record<Format, RowForm>> {
    const each = (text: (row: Row) => string) => (rows: readonly object[]) => (rows as readonly Row[]).map(text).join('');
    const objectText = objectWriter(columns);
    return {
        json: {
            type: 'application/json; charset=utf-8',
            begin: '[',
            separator: ',',
            end: ']',
            text: (rows) => (rows as readonly Row[]).map(objectText).join(','),
        },
        ndjson: {
            type: LINES_TYPE,
            begin: '',
            separator: '',
            end: '',
            text: each((row) => `${objectText(row)}\n`),
        },
        csv: {
            type: 'text/csv; charset=utf-8; header=present',
            begin: csvLine(names),
            separator: '',
            end: '',
            text: each((row) => csvLine(columns.map(({ valueIn }) => valueIn(row)))),
        },
    };
}

/**
 * Writes a row as an object of JSON. The names are text once and for all, and no object is made of the row to be taken apart again: that
 * is half of the time.
 */
function objectWriter(columns: readonly Column[]): (row: Row) => string {
    return (row) => {
        let text = '';
        for (const { key, valueIn } of columns) {
            const value = jsonText(valueIn(row));
            if (value !== undefined) {
                text += (text === '' ? '{' : ',') + key + value;
            }
        }

        return text === '' ? '{}' : `${text}}`;
    };
}

/** What JSON escapes, and control characters that it does not. A surrogate is one only where it is alone. */
const ESCAPED = /["\\\p{Cc}\p{Cs}]/u;

/** As `JSON.stringify` writes it, undefined for what it leaves out. Most of what is in a row needs nothing of what that does. */
function jsonText(value: unknown): string | undefined {
    if (value === null) {
        return 'null';
    }
    if (typeof value === 'string' && !ESCAPED.test(value)) {
        return `"${value}"`;
    }

    return Number.isFinite(value) ? `${value}` : JSON.stringify(value);
}

function columnsOf({ keys = {} }: SchemaDescription, timestamp: TimestampFormat, fill: Fill): readonly Column[] {
    return Object.entries(keys).map(([name, description]) => {
        const value = emptyValue(description);
        const ownFill = Object.hasOwn(fill, name) ? fill[name] : undefined;
        const filled = ownFill ?? (() => value);
        const [isTime, fillsBlank] = [description.type === 'date', ownFill !== undefined];
        return {
            key: `${JSON.stringify(name)}:`,
            valueIn(row) {
                const value = row[name];
                if (value === undefined || value === null || (fillsBlank && value === '')) {
                    return filled(row);
                }
                return isTime ? timeText(value, timestamp) : value;
            },
        };
    });
}

/** A store of the application's own may bring times as text or as milliseconds; a time that is none goes out as null. */
function timeText(value: unknown, timestamp: TimestampFormat): string | null {
    const instant = value instanceof Date ? value : new Date(value as string | number);
    return Number.isNaN(instant.getTime()) ? null : timestamp(instant);
}
