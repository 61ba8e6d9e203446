import { checkRecord, keepsSchema, type RecordProblem, refusedRecord } from './check-record.ts';
import { duplicateKeys, repeatsNoKey } from './duplicate-keys.ts';
import { type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
import type { HttpsRecord, RecordOf } from './record.ts';

/** A line that was read: the record, or what is wrong with it. */
export type ReadRecord<R = HttpsRecord> =
    | {
          readonly ok: true;
          readonly record: R;
          /** What was mended; nothing where mending was not asked for. */
          readonly mends: readonly MendKind[];
      }
    | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/** Reads one record from JSON, mended first where a profile is given. */
export function readRecord(json: string, mend?: MendProfile): ReadRecord {
    let parsed: unknown;
    try {
        parsed = JSON.parse(json);
    } catch {
        // The message of JSON.parse quotes the text.
        return refusedRecord([{ field: '', reason: 'is not valid JSON' }]);
    }

    const { value, mends } = mend === undefined ? { value: parsed, mends: [] } : mendRecord(parsed, mend);
    const repeated = duplicateKeys(json).map((field) => ({ field, reason: 'appears more than once' }));
    const checked = keepsSchema(value) ? ({ ok: true, record: value } as const) : checkRecord(value);
    if (repeated.length === 0 && checked.ok) {
        return { ok: true, record: checked.record, mends };
    }

    return refusedRecord([...repeated, ...(checked.ok ? [] : checked.problems)]);
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

const DATA = Buffer.from('"data":');
const SPACE = 0x20;
const QUOTE = 0x22;

/**
 * The record of a line as nearly all lines are, null for one that needs a closer look. `data` is most of a line, so it is cut
 * out, checked on its own and put back after the rest is parsed: base64 has no quote and no escape in it. A longer key that ends
 * like that of `data` is no key of the schema.
 *
 * @param dataOf Gives what stands for `data` in the record, null for what is not base64.
 */
export function quickRecord<Data>(line: Buffer, dataOf: (text: string) => Data | null): RecordOf<Data> | null {
    const key = line.indexOf(DATA);
    const value = key + DATA.length;
    const start = (line[value] === SPACE ? value + 1 : value) + 1;
    const end = key < 0 || line[start - 1] !== QUOTE ? -1 : line.indexOf(QUOTE, start);
    if (end < 0) {
        return null;
    }

    const data = dataOf(line.toString('latin1', start, end));
    const record = data === null ? null : parsed(line.toString('utf8', 0, start) + line.toString('utf8', end));
    if (record !== null) {
        record.data = data;
    }

    return record as RecordOf<Data> | null;
}

/** A record whose `data` is empty. */
function parsed(json: string): Writable<RecordOf<unknown>> | null {
    // Perhaps bytes that are not UTF-8.
    if (json.includes('\uFFFD')) {
        return null;
    }

    try {
        const value: unknown = JSON.parse(json);
        return keepsSchema(value) && value.data === '' && repeatsNoKey(json, value) ? value : null;
    } catch {
        return null;
    }
}
