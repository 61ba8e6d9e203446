import { isUtf8 } from 'node:buffer';
import type { Line } from '../line-splitter.ts';
import { checkRecord, isRecord, type RecordProblem, refusedRecord } from './check-record.ts';
import { duplicateKeys, repeatsNoKey } from './duplicate-keys.ts';
import { type MendedRecord, type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
import { type HttpsRecord, type RecordOf, stringifyRecord } from './record.ts';

/** What was read of a line: the record, or what is wrong with it. */
export type ReadRecord<R = HttpsRecord> =
    | {
          readonly ok: true;
          readonly record: R;
          /** What was mended; nothing where mending was not asked for. */
          readonly mends: readonly MendKind[];
      }
    | { readonly ok: false; readonly problems: readonly RecordProblem[] };

/** How the lines of a file are read. */
export interface LineRules<Data> {
    readonly maxLineBytes: number;
    readonly mend: MendProfile | undefined;
    /** Gives what stands for the text of `data` in the record, null for a text that is not base64. No character is beyond Latin-1. */
    readonly dataOf: (text: string) => Data | null;
    /** Whether it is worked out what is wrong with a bad line, which takes longer than reading it does. */
    describes(): boolean;
}

const NO_MENDS: readonly MendKind[] = [];
/** In bytes: `{"data":"","host":"a","ip":"::","port":1}`. A mend makes a record shorter, or adds what need not be there. */
const SHORTEST_RECORD = 41;
/** In bytes, of a line that is mended and written: a path is added, and a port like `1e4` is written out. */
const MOST_GROWTH = ',"path":"/"'.length + 2;
const BYTE_ORDER_MARK = '\uFEFF';

/** Reads one line of a file; null for one that holds nothing but white space. */
export function readLine<Data>(
    { number, bytes }: Line,
    { maxLineBytes, mend, dataOf, describes }: LineRules<Data>,
): ReadRecord<RecordOf<Data>> | null {
    if (bytes?.length === 0) {
        return null;
    }

    const described = describes();
    if (bytes === null) {
        return refusedLine(`is longer than ${maxLineBytes} bytes`, described);
    }

    const mayOutgrow = mend !== undefined && bytes.length > maxLineBytes - MOST_GROWTH;
    const usual = mayOutgrow ? null : usualRecord(bytes, dataOf);
    if (usual !== null) {
        const { value, mends } = mended(usual, mend);
        // A record of the schema still is one when it is mended.
        return { ok: true, record: value as RecordOf<Data>, mends };
    }

    if (!isUtf8(bytes)) {
        return refusedLine('is not valid UTF-8', described);
    }

    const text = bytes.toString();
    const json = number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    if (!/[^ \t\r]/.test(json)) {
        return null;
    }

    if (!described && bytes.length < SHORTEST_RECORD) {
        return refusedRecord([]);
    }

    const read = readRecord(json, mend, described);
    return mayOutgrow && read.ok && Buffer.byteLength(stringifyRecord(read.record)) > maxLineBytes
        ? refusedLine(`is longer than ${maxLineBytes} bytes once it is mended`, described)
        : withData(read, dataOf);
}

/** Reads one record from JSON, mended first where a profile is named. What is wrong with a bad one may be left out, which is quicker. */
export function readRecord(json: string, mend?: MendProfile, described = true): ReadRecord {
    let parsed: unknown;
    try {
        parsed = JSON.parse(json);
    } catch {
        // The message of JSON.parse quotes the text.
        return refusedLine('is not valid JSON', described);
    }

    const { value, mends } = mended(parsed, mend);
    if (!described && !isRecord(value)) {
        return refusedRecord([]);
    }

    const repeated = duplicateKeys(json).map((field) => ({ field, reason: 'appears more than once' }));
    const checked = isRecord(value) ? ({ ok: true, record: value } as const) : checkRecord(value);
    if (repeated.length === 0 && checked.ok) {
        return { ok: true, record: checked.record, mends };
    }

    return refusedRecord(described ? [...repeated, ...(checked.ok ? [] : checked.problems)] : []);
}

/** A line that holds no record, with what is wrong with it as a whole, unless that is left out. */
export function refusedLine(reason: string, described = true): ReadRecord<never> {
    return refusedRecord(described ? [{ field: '', reason }] : []);
}

function mended(value: unknown, profile: MendProfile | undefined): MendedRecord {
    return profile === undefined ? { value, mends: NO_MENDS } : mendRecord(value, profile);
}

function withData<Data>(read: ReadRecord, dataOf: (text: string) => Data | null): ReadRecord<RecordOf<Data>> {
    return read.ok ? { ...read, record: { ...read.record, data: dataOf(read.record.data) as Data } } : read;
}

const DATA = Buffer.from('"data":');
const SPACE = 0x20;
const QUOTE = 0x22;

/**
 * The record of a line as nearly all lines are, null for one that needs a closer look. `data` is most of a line, so it is cut
 * out, checked on its own and put back after the rest is parsed: base64 has no quote and no escape in it. A longer key that ends
 * like that of `data` is no key of the schema. Without this a check of a packed file takes a sixth longer.
 */
function usualRecord<Data>(line: Buffer, dataOf: (text: string) => Data | null): RecordOf<Data> | null {
    const key = line.indexOf(DATA);
    const value = key + DATA.length;
    const start = (line[value] === SPACE ? value + 1 : value) + 1;
    const end = key < 0 || line[start - 1] !== QUOTE ? -1 : line.indexOf(QUOTE, start);
    if (end < 0) {
        return null;
    }

    const data = dataOf(line.toString('latin1', start, end));
    const record = data === null ? null : parseWithoutData(line.toString('utf8', 0, start) + line.toString('utf8', end));
    if (record !== null) {
        record.data = data;
    }

    return record as RecordOf<Data> | null;
}

type Incomplete = Omit<HttpsRecord, 'data'> & { data: unknown };

/** A record whose `data` is empty. */
function parseWithoutData(json: string): Incomplete | null {
    // Perhaps bytes that are not UTF-8.
    if (json.includes('\uFFFD')) {
        return null;
    }

    try {
        const value: unknown = JSON.parse(json);
        return isRecord(value) && value.data === '' && repeatsNoKey(json, value) ? value : null;
    } catch {
        return null;
    }
}
