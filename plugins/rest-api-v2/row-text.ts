import { setImmediate } from 'node:timers/promises';
import type Joi from 'joi';
import type { TimestampFormat } from '../../lib/timestamp.ts';

/** JSON text of rows without the brackets of an array: one object, or several with commas between them. */
export type RowText = (rows: readonly object[]) => string;

/** What goes out for a field that a row leaves open, from the row itself. */
export type Fill = Readonly<Record<string, (row: Readonly<Record<string, unknown>>) => unknown>>;

interface Field {
    readonly name: string;
    readonly fill: (row: Readonly<Record<string, unknown>>) => unknown;
    readonly isTime: boolean;
    readonly fillsBlank: boolean;
}

interface FieldDescription {
    readonly type?: string;
    readonly flags?: { readonly default?: unknown };
    readonly allow?: readonly unknown[];
}

/**
 * How rows of one resource become text: the fields of the schema in its order and no others, each always there, dates as
 * timestamps. The schema is looked at once, here, and never while answering.
 *
 * @param fill For fields whose value, where a row has none or `''`, is not the one that follows from the type.
 */
export function rowText(schema: Joi.ObjectSchema, timestamp: TimestampFormat, fill: Fill = {}): RowText {
    const fields = describedFields(schema, fill);
    // A copy of an object that has all keys already takes two thirds of the time of one that grows key by key.
    const blank = Object.fromEntries(fields.map(({ name }) => [name, null]));
    const shaped = (row: object): object => shape(row as Readonly<Record<string, unknown>>, { ...blank }, fields, timestamp);
    return (rows) => JSON.stringify(rows.map(shaped)).slice(1, -1);
}

function shape(
    row: Readonly<Record<string, unknown>>,
    shaped: Record<string, unknown>,
    fields: readonly Field[],
    timestamp: TimestampFormat,
): object {
    for (const { name, fill, isTime, fillsBlank } of fields) {
        const value = row[name];
        if (value === undefined || value === null || (fillsBlank && value === '')) {
            shaped[name] = fill(row);
        } else {
            shaped[name] = isTime ? timeText(value, timestamp) : value;
        }
    }

    return shaped;
}

function describedFields(schema: Joi.ObjectSchema, fill: Fill): readonly Field[] {
    const described = schema.describe().keys as Readonly<Record<string, FieldDescription>> | undefined;
    return Object.entries(described ?? {}).map(([name, description]) => {
        const value = unsetValue(description);
        const ownFill = Object.hasOwn(fill, name) ? fill[name] : undefined;
        return { name, fill: ownFill ?? (() => value), isTime: description.type === 'date', fillsBlank: ownFill !== undefined };
    });
}

/** What a field is when nothing is known about it: its default, else null where null is allowed, else the nothing of its type. */
function unsetValue({ type, flags, allow = [] }: FieldDescription): unknown {
    if (flags !== undefined && 'default' in flags && typeof flags.default !== 'function') {
        return flags.default;
    }

    const unset: Readonly<Record<string, unknown>> = { string: '', number: 0, boolean: false, object: {}, array: [] };
    return allow.includes(null) ? null : (unset[type ?? ''] ?? null);
}

/** A store of the host's own may bring times as text or as milliseconds; a time that is none goes out as null. */
function timeText(value: unknown, timestamp: TimestampFormat): string | null {
    const instant = value instanceof Date ? value : new Date(value as string | number);
    return Number.isNaN(instant.getTime()) ? null : timestamp(instant);
}

/** After this long, other requests get a turn: a source that never waits would otherwise keep the process to itself. */
const TURN_MS = 2;
/** A store may give batches of any size; this many rows become text at once. */
const ROWS_PER_TEXT = 500;

/** The index of a collection without rows. */
export const EMPTY_INDEX = '[]';

/**
 * The JSON array of all rows, in pieces: one text per batch. Ending it early ends the reading that `read` begins; a failure of
 * the reading is its failure.
 */
export async function* indexText(read: () => AsyncIterable<readonly object[]>, rowText: RowText): AsyncGenerator<string, void, undefined> {
    let separator = '[';
    let turnStarted = performance.now();
    for await (const batch of read()) {
        for (let start = 0; start < batch.length; start += ROWS_PER_TEXT) {
            yield separator + rowText(batch.slice(start, start + ROWS_PER_TEXT));
            separator = ',';
            if (performance.now() - turnStarted >= TURN_MS) {
                await setImmediate();
                turnStarted = performance.now();
            }
        }
    }

    yield separator === '[' ? EMPTY_INDEX : ']';
}

/**
 * The rest of a reading with its first piece put back in front. Ending it ends the reading even when nothing was taken from
 * it, as with a HEAD request; a generator that was never started would not do that.
 */
export function withFirst<T>(first: IteratorResult<T, void>, rest: AsyncGenerator<T, void, undefined>): AsyncIterable<T> {
    let waiting: IteratorResult<T, void> | null = first;
    const iterator: AsyncIterator<T, void> = {
        async next() {
            const result = waiting ?? (await rest.next());
            waiting = null;
            return result;
        },
        return: () => rest.return(),
    };
    return { [Symbol.asyncIterator]: () => iterator };
}
