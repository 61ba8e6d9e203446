import { isUtf8 } from 'node:buffer';
import { type Line, lineSplitter } from '../line-splitter.ts';
import { takeTurns } from '../take-turns.ts';
import { type CheckedRecord, checkRecord, refusedRecord } from './check-record.ts';
import { duplicateKeys } from './duplicate-keys.ts';

export interface CheckRecordLinesOptions {
    /** A longer line is reported and skipped. 1 MiB by default. */
    readonly maxLineBytes?: number;
}

/** Where a line is, and what {@link checkRecord} says about it. */
export type CheckedLine = {
    /** From 1; blank lines count. */
    readonly line: number;
    /** Where the line begins, in bytes from the start. */
    readonly byteOffset: number;
} & CheckedRecord;

export interface RecordTotals {
    /** Lines that hold something: `good` and `bad` ones. */
    readonly records: number;
    readonly good: number;
    readonly bad: number;
    /** Lines that hold nothing but white space; they are passed over. */
    readonly blank: number;
    readonly bytes: number;
}

/** The lines in turn, to be read once. `totals` are those of what has been read so far. */
export interface CheckedLines extends AsyncIterable<CheckedLine> {
    readonly totals: RecordTotals;
}

export const MAX_LINE_BYTES = 1_048_576;
const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Checks a file of JSON lines, record by record, and goes on after a bad line. Lines end with LF or CR LF, the last one may
 * do without, and a byte order mark at the start is passed over. Holds no more than a line at a time, and lets others have a turn
 * between lines. A failure of the source ends the iteration with that error.
 */
export function checkRecordLines(source: AsyncIterable<Uint8Array>, options: CheckRecordLinesOptions = {}): CheckedLines {
    const { maxLineBytes = MAX_LINE_BYTES } = options;
    const splitter = lineSplitter(maxLineBytes);
    const turn = takeTurns();
    let good = 0;
    let bad = 0;
    let blank = 0;

    async function* checked(lines: Iterable<Line>): AsyncGenerator<CheckedLine> {
        for (const line of lines) {
            const othersTurn = turn();
            if (othersTurn !== null) {
                await othersTurn;
            }

            const result = checkLine(line, maxLineBytes);
            if (result === null) {
                blank += 1;
                continue;
            }

            good += result.ok ? 1 : 0;
            bad += result.ok ? 0 : 1;
            yield { line: line.number, byteOffset: line.byteOffset, ...result };
        }
    }

    return {
        get totals() {
            return { records: good + bad, good, bad, blank, bytes: splitter.bytes };
        },

        async *[Symbol.asyncIterator]() {
            for await (const chunk of source) {
                yield* checked(splitter.push(chunk));
            }

            yield* checked(splitter.end());
        },
    };
}

/** Null for a blank line. */
function checkLine({ number, bytes }: Line, maxLineBytes: number): CheckedRecord | null {
    if (bytes === null) {
        return refused(`is longer than ${maxLineBytes} bytes`);
    }

    if (!isUtf8(bytes)) {
        return refused('is not valid UTF-8');
    }

    const decoded = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
    const text = number === 1 && decoded.startsWith(BYTE_ORDER_MARK) ? decoded.slice(1) : decoded;
    return /[^ \t\r]/.test(text) ? checkText(text) : null;
}

function checkText(text: string): CheckedRecord {
    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch {
        // The message of JSON.parse quotes the text.
        return refused('is not valid JSON');
    }

    const result = checkRecord(value);
    const repeated = duplicateKeys(text).map((field) => ({ field, reason: 'appears more than once' }));
    return repeated.length === 0 ? result : refusedRecord([...repeated, ...(result.ok ? [] : result.problems)]);
}

function refused(reason: string): CheckedRecord {
    return refusedRecord([{ field: '', reason }]);
}
