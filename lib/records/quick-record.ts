import { repeatsNoKey } from './duplicate-keys.ts';
import { keepsSchema } from './keeps-schema.ts';
import type { RecordOf } from './record.ts';

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
