import { setImmediate } from 'node:timers/promises';
import type { FieldTypes } from '../../lib/inventory/fields.ts';
import type { HostFieldKind } from '../../lib/inventory/host.ts';
import type { Collection, ReadOptions } from '../../lib/inventory/store.ts';
import { prepared } from './prepared.ts';
import type { Readers } from './readers.ts';

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

/** They cost next to nothing here, so that round trips count sooner than with rows. The first batch is a small one: somebody waits for it. */
const [FIRST_BATCH, BATCH] = [250, 1000];

/** Where the texts of rows come from. */
export interface TextSource {
    /** Selects `id` and `text` of the rows behind an id, the last parameter, in their order. */
    readonly page: string;
    /** Whether rows may be read so now. */
    readonly usable?: string;
}

interface TextPage {
    /** Null when there are no rows, or they may not be read so. */
    readonly text: string | null;
    readonly last: number | null;
    readonly rows: number;
    readonly texts: number;
    readonly isLast: boolean;
}

/**
 * Rows as text, in batches. While one is written the next is read; each is a statement of its own, so that a slow reader holds neither a
 * connection nor a snapshot.
 *
 * @param select Reads the rows of a batch of which not every one has a text.
 */
export function textPages<Row extends { readonly id: number }>(
    { database, further }: Readers,
    { page, usable = 'true' }: TextSource,
    select: NonNullable<Collection<Row>['select']>,
): (path: readonly number[], options?: ReadOptions) => AsyncGenerator<string | readonly Row[]> {
    // Aggregates take the rows of a subquery in its order where nothing else is done to them; to sort them again takes half of the time.
    const reading = (batch: number): string =>
        prepared(`select case when ${usable} then string_agg(page.text, ',') end as text, max(page.id) as last,
            count(*)::integer as rows, count(page.text)::integer as texts, count(*) < ${batch} as "isLast" from (${page} limit ${batch}) page`);
    const [first, others] = [reading(FIRST_BATCH), reading(BATCH)];
    const read = (path: readonly number[], behind: number): Promise<TextPage> => {
        const values = [...path, behind];
        const asked = behind === 0 ? database.query<TextPage>(first, values) : further.query<TextPage>(others, values);
        const page = asked.then(({ rows }) => rows[0] as TextPage);
        // It may fail while nobody waits for it, and where nobody reads on nobody hears of it.
        page.catch(() => {});
        return page;
    };

    return async function* (path, options = {}) {
        let behind = 0;
        for (let ahead: Promise<TextPage> | null = read(path, behind); ahead !== null; ) {
            const { text, last, rows, texts, isLast }: TextPage = await ahead;
            options.signal?.throwIfAborted();
            if (text !== null && texts === rows) {
                behind = last ?? behind;
                ahead = isLast ? null : read(path, behind);
                // So that it is under way before somebody writes the text, which takes the thread.
                await setImmediate();
                yield text;
                continue;
            }

            for await (const batch of select(path, { after: { id: behind }, limit: rows }, options)) {
                behind = batch.at(-1)?.id ?? behind;
                yield batch;
            }
            ahead = isLast ? null : read(path, behind);
        }
    };
}
