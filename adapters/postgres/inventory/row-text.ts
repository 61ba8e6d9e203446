import type { FieldTypes } from '../../../lib/inventory/fields.ts';
import type { HostFieldKind } from '../../../lib/inventory/host.ts';

/** A part of a row's text: what is the same in all of them, an expression, or parts of which one may be null. */
type Piece = { readonly constant: string } | { readonly value: string } | { readonly nullable: readonly Piece[] };
/** How a text and a time are written, which is not always the same. */
interface Forms {
    readonly quoted: (value: string) => readonly Piece[];
    readonly utc: (value: string) => string;
}
type Write = (value: string, forms: Forms) => readonly Piece[];

const constant = (text: string): Piece => ({ constant: text });

/** Of numbers and of truth values. */
const plain: Write = (value) => [{ value: `(${value})::text` }];
const text: Write = (value, { quoted }) => quoted(value);
const time: Write = (value, { utc }) => [
    constant('"'),
    {
        value: `case when ${value} between '0001-01-01 00:00+00' and '9999-12-31 23:59:59+00'
            then to_char(${utc(value)}, 'YYYY-MM-DD"T"HH24:MI:SS') end`,
    },
    constant('+00:00"'),
];
const orNull =
    (write: Write): Write =>
    (value, forms) => [{ nullable: write(value, forms) }];
/** A time that cannot be written is none that is not there. */
const timeOrNull: Write = (value, forms) => [{ value: `case when ${value} is null then 'null' else ${joined(time(value, forms))} end` }];

/** The kinds of fields of which PostgreSQL can make the text of JavaScript. Of documents it keeps numbers and spaces in a form of its own. */
type WritableKind = Exclude<keyof FieldTypes | HostFieldKind, 'object'>;

const TEXTS: Readonly<Partial<Record<WritableKind, Write>>> = {
    text,
    filledText: text,
    address: text,
    name: text,
    state: text,
    protocol: text,
    serviceState: text,
    vulnName: text,
    nullableText: orNull(text),
    nullableFilledText: orNull(text),
};

const OTHERS: Readonly<Partial<Record<WritableKind, Write>>> = {
    id: plain,
    count: plain,
    port: plain,
    flag: plain,
    time,
    nullableId: orNull(plain),
    nullablePort: orNull(plain),
    nullableFlag: orNull(plain),
    foreignId: orNull(plain),
    nullableTime: timeOrNull,
};

const escaped: Forms['quoted'] = (value) => [{ value: `to_json(${value})::text` }];
const asItIs: Forms['quoted'] = (value) => [constant('"'), { value }, constant('"')];

/** To look once whether any of them has to be escaped takes as long as to escape so many. */
const FEW_TEXTS = 4;
/** Whether JSON escapes anything of texts: then there is a backslash, whatever it is. Half as dear as an expression that looks for it all. */
const isEscaped = (values: readonly string[]): string => `strpos(to_json(concat(${values.join(', ')}))::text collate "C", E'\\\\') > 0`;

/** What is known of the values of a row's fields. */
interface Known {
    /**
     * Fields of whose texts JSON escapes nothing. Where this is known, it is looked once whether any other has to be escaped, in a statement
     * twice as long: not for one that writes few of its rows.
     */
    readonly safe?: readonly string[];
    /** Counts beside each other that are nearly always zero: written at once where they are. */
    readonly zeros?: readonly string[];
    /** A time as one without a zone, in UTC. */
    readonly utc?: (value: string) => string;
}

/**
 * A row as the API writes it in UTC, byte by byte what `JSON.stringify` makes of it.
 *
 * @param fields The fields in their order, with their kinds.
 * @param column The value of a field.
 * @returns An expression; null for a row that cannot be written so, such as one with a time beyond the year 9999.
 */
export function rowText(
    fields: Readonly<Record<string, WritableKind>>,
    column: (field: string) => string,
    { safe, zeros = [], utc = (value) => `${value} at time zone 'UTC'` }: Known = {},
): string {
    const written = (unsafe: Forms['quoted']): string => {
        const names = Object.keys(fields);
        const pieces = names.map((field, index): readonly Piece[] => {
            const kind = fields[field] as WritableKind;
            const write = (TEXTS[kind] ?? OTHERS[kind]) as Write;
            const forms = { utc, quoted: safe?.includes(field) ? asItIs : unsafe };
            return [constant(`${index === 0 ? '{' : ','}"${field}":`), ...write(column(field), forms)];
        });
        const first = names.indexOf(zeros[0] ?? '');
        if (first >= 0) {
            const value = orZeros(zeros, column, joined(pieces.slice(first, first + zeros.length).flat()));
            pieces.splice(first, zeros.length, [{ value }]);
        }
        return joined([...pieces.flat(), constant('}')]);
    };
    const doubtful = Object.keys(fields).filter((field) => TEXTS[fields[field] as WritableKind] && !safe?.includes(field));
    return safe === undefined || doubtful.length <= FEW_TEXTS
        ? written(escaped)
        : `case when ${isEscaped(doubtful.map(column))} then ${written(escaped)} else ${written(asItIs)} end`;
}

function orZeros(zeros: readonly string[], column: (field: string) => string, others: string): string {
    const areZero = zeros.map((field) => `${column(field)} = 0`).join(' and ');
    return `case when ${areZero} then '${zeros.map((field) => `,"${field}":0`).join('')}' else ${others} end`;
}

/** Halves of halves are joined, since a text that grows piece by piece is copied with each. What is before a null is one text with it. */
function joined(pieces: readonly Piece[]): string {
    const parts: string[] = [];
    let before = '';
    for (const piece of pieces) {
        if ('constant' in piece) {
            before += piece.constant;
        } else if ('nullable' in piece) {
            parts.push(`coalesce(${joined([constant(before), ...piece.nullable])}, '${before}null')`);
            before = '';
        } else {
            parts.push(...(before === '' ? [] : [`'${before}'`]), piece.value);
            before = '';
        }
    }
    return halves(before === '' ? parts : [...parts, `'${before}'`]);
}

function halves(parts: readonly string[]): string {
    const half = parts.length >> 1;
    return half === 0 ? `${parts[0]}` : `(${halves(parts.slice(0, half))} || ${halves(parts.slice(half))})`;
}
