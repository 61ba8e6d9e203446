import { isObject } from '../../schema-validation.ts';
import type { HostElements, ScannedHost } from './read-xml.ts';
import { withoutByteEscapes } from './scanner-text.ts';

/** The columns of a row of the database, by their names there. */
export type Columns = Readonly<Record<string, string>>;

/** Bytes that `db_export` writes one by one: those of no ASCII character, and controls. Other escapes are the text's own. */
const BYTES = /(?:\\x(?:0[0-8bcef]|1[\da-f]|[89a-f][\da-f]))+/g;

/** The text of an element. */
export function columnText(text: string): string {
    return withoutByteEscapes(text.trim(), BYTES);
}

/** A column that is null is empty, or was told so by older versions. */
export function hasValue(text: string | undefined): text is string {
    return text !== undefined && text !== '' && text !== 'NULL';
}

/** The value of a column, undefined where it is null. */
export function given(columns: Columns, column: string): string | undefined {
    return hasValue(columns[column]) ? columns[column] : undefined;
}

/** What the JSON of a column says. Text that is no object is kept as it is. Objects of Ruby, in the form of its `Marshal`, are too: to read them is to run what they say. */
export function noteData(text: string | null | undefined): object {
    if (text === undefined || text === null || text === '') {
        return {};
    }

    try {
        const data: unknown = JSON.parse(text);
        return isObject(data) ? data : { raw: text };
    } catch {
        return { raw: text };
    }
}

/** Takes an element whose own elements are columns; those of elements below these are no columns of the row. */
export function rowElements(finish: (columns: Columns) => ScannedHost): HostElements {
    const columns: Record<string, string> = {};
    let text = '';
    let depth = 0;

    return {
        open() {
            text = '';
            depth += 1;
        },

        text(part) {
            text += part;
        },

        close(element) {
            if (depth === 1) {
                columns[element.replaceAll('-', '_')] = columnText(text);
            }
            depth -= 1;
            text = '';
        },

        finish: () => finish(columns),
    };
}
