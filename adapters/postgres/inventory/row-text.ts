import type { FieldTypes } from '../../../lib/inventory/fields.ts';
import type { HostFieldKind } from '../../../lib/inventory/host.ts';

type Write = (value: string) => string;

/** Of numbers and of truth values. */
const plain: Write = (value) => `(${value})::text`;
const text: Write = (value) => `to_json(${value})::text`;
const time: Write = (value) => `case when ${value} between '0001-01-01 00:00+00' and '9999-12-31 23:59:59+00'
    then '"' || to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || '+00:00"' end`;
const orNull =
    (write: Write): Write =>
    (value) =>
        `case when ${value} is null then 'null' else ${write(value)} end`;

/** The kinds of fields of which PostgreSQL can make the text of JavaScript. Of documents it keeps numbers and spaces in a form of its own. */
type WritableKind = Exclude<keyof FieldTypes | HostFieldKind, 'object'>;

const WRITTEN: Readonly<Record<WritableKind, Write>> = {
    id: plain,
    count: plain,
    port: plain,
    flag: plain,
    text,
    filledText: text,
    address: text,
    name: text,
    state: text,
    protocol: text,
    serviceState: text,
    vulnName: text,
    time,
    nullableId: orNull(plain),
    nullablePort: orNull(plain),
    nullableFlag: orNull(plain),
    foreignId: orNull(plain),
    nullableText: orNull(text),
    nullableFilledText: orNull(text),
    nullableTime: orNull(time),
};

/**
 * A row as the API writes it in UTC, byte by byte what `JSON.stringify` makes of it.
 *
 * @param fields The fields in their order, with their kinds.
 * @param column The value of a field.
 * @returns An expression; null for a row that cannot be written so, such as one with a time beyond the year 9999.
 */
export function rowText(fields: Readonly<Record<string, WritableKind>>, column: (field: string) => string): string {
    const written = Object.entries(fields).map(
        ([field, kind], index) => `'${index === 0 ? '{' : ','}"${field}":' || ${WRITTEN[kind](column(field))}`,
    );
    return `${written.join(' || ')} || '}'`;
}
