import { isUtf8 } from 'node:buffer';
import { timeSlice } from '../clock.ts';
import { GzipError } from '../gunzip.ts';
import { type Line, type LineSplitter, lineSplitter } from '../line-splitter.ts';
import { unpacked } from '../unpacked.ts';
import { isBase64Latin1 } from './base64.ts';
import { type CheckedRecord, refusedRecord } from './check-record.ts';
import { assertMendProfile, MEND_KINDS, type MendCounts, type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
import { quickRecord, type ReadRecord, readRecord } from './read-record.ts';
import { type HttpsRecord, MAX_LINE_BYTES, type RecordOf } from './record.ts';

/**
 * Reads a file of records, JSON lines, plain or packed with gzip, from any stream of bytes, and goes on after a bad line. Lines
 * end with LF or CR LF, the last one may do without, and a byte order mark at the start is passed over. Holds no more than a
 * chunk of the source and a line, and lets others have a turn between lines.
 *
 * Gzip that is damaged, cut off or a bomb, and another archive, is said of the line where it ends the reading. A failure of the
 * source itself ends the iteration with that error.
 *
 * @throws ScanwireError `MISCONFIGURED` for a profile that there is not.
 *
 * @example
 * for await (const line of readRecords(createReadStream('https.jsonl.gz'))) {
 *     if (line.ok) console.log(line.record.host);
 * }
 */
export function readRecords(source: AsyncIterable<Uint8Array>, options: ReadRecordsOptions = {}): RecordLines {
    return readLines(source, options, base64Text);
}

/** What `data` is, as it is; null when it is not base64. */
function base64Text(text: string): string | null {
    return isBase64Latin1(text) ? text : null;
}

export interface ReadRecordsOptions {
    /** A longer line is reported and skipped. 1 MiB by default. */
    readonly maxLineBytes?: number;
    /** Mends each record first, as this profile says. Nothing is mended by default. */
    readonly mend?: MendProfile;
    /** False for bytes that are unpacked already. True by default. */
    readonly unpack?: boolean;
}

/** Where a line is, and what it holds. */
export type RecordLine<R = HttpsRecord> = {
    /** From 1; blank lines count. */
    readonly line: number;
    /** Where the line begins, in bytes from the start of the file, unpacked. */
    readonly byteOffset: number;
} & ReadRecord<R>;

/** The lines in turn, to be read once. */
export interface RecordLines<R = HttpsRecord> extends AsyncIterable<RecordLine<R>> {
    /** Of what has been read so far. */
    readonly totals: RecordTotals;
    /** The same lines, those together that came together: quicker, since there is no promise for each line. */
    batches(): AsyncIterable<readonly RecordLine<R>[]>;
}

const NO_MENDS: readonly MendKind[] = [];
const BYTE_ORDER_MARK = '\uFEFF';

/**
 * Reads the records of a file, with something of the caller's choice for the text in their `data`.
 *
 * @param dataOf Gives what it is to be, null for a text that is not base64. No character of that is beyond Latin-1.
 */
export function readLines<Data>(
    source: AsyncIterable<Uint8Array>,
    options: ReadRecordsOptions,
    dataOf: (text: string) => Data | null,
): RecordLines<RecordOf<Data>> {
    const { maxLineBytes = MAX_LINE_BYTES, mend, unpack = true } = options;
    if (mend !== undefined) {
        assertMendProfile(mend);
    }

    const splitter = lineSplitter(maxLineBytes);
    const counter = recordCounter(mend);
    const yieldIfDue = timeSlice();

    let batch: RecordLine<RecordOf<Data>>[] = [];

    function take({ number, byteOffset }: Place, read: ReadRecord<RecordOf<Data>> | null): void {
        counter.count(read);
        if (read !== null) {
            batch.push({ line: number, byteOffset, ...read });
        }
    }

    function taken(): readonly RecordLine<RecordOf<Data>>[] {
        const lines = batch;
        batch = [];
        return lines;
    }

    async function* batches(): AsyncGenerator<readonly RecordLine<RecordOf<Data>>[], void, undefined> {
        try {
            for await (const lines of linesOf(unpack ? unpacked(source) : source, splitter)) {
                for (const line of lines) {
                    const pause = yieldIfDue();
                    if (pause !== null) {
                        yield taken();
                        await pause;
                    }

                    take(line, readLine(line, maxLineBytes, mend, dataOf));
                }

                yield taken();
            }
        } catch (error) {
            if (!(error instanceof GzipError)) {
                throw error;
            }

            take(splitter.current, refused(`is where reading ends: ${error.message}`));
            yield taken();
        }
    }

    return {
        get totals() {
            return counter.totals(splitter.bytes);
        },

        batches,

        [Symbol.asyncIterator]: () => oneByOne(batches()),
    };
}

/** Those of one batch after the other. */
export async function* oneByOne<Line>(batches: AsyncIterable<readonly Line[]>): AsyncGenerator<Line, void, undefined> {
    for await (const lines of batches) {
        yield* lines;
    }
}

type Place = Pick<Line, 'number' | 'byteOffset'>;

async function* linesOf(chunks: AsyncIterable<Uint8Array>, splitter: LineSplitter): AsyncGenerator<Iterable<Line>> {
    for await (const chunk of chunks) {
        yield splitter.push(chunk);
    }

    yield splitter.end();
}

/** Null for a blank line. */
function readLine<Data>(
    { number, bytes }: Line,
    maxLineBytes: number,
    mend: MendProfile | undefined,
    dataOf: (text: string) => Data | null,
): ReadRecord<RecordOf<Data>> | null {
    if (bytes === null) {
        return refused(`is longer than ${maxLineBytes} bytes`);
    }

    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const record = quickRecord(buffer, dataOf);
    if (record !== null) {
        return quickly(record, mend);
    }

    if (!isUtf8(buffer)) {
        return refused('is not valid UTF-8');
    }

    const text = buffer.toString();
    const line = number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    return /[^ \t\r]/.test(line) ? withData(readRecord(line, mend), dataOf) : null;
}

/** A record that keeps the schema keeps it when it is mended too. */
function quickly<Data>(record: RecordOf<Data>, mend: MendProfile | undefined): ReadRecord<RecordOf<Data>> {
    const { value, mends } = mend === undefined ? { value: record, mends: NO_MENDS } : mendRecord(record, mend);
    return { ok: true, record: value as RecordOf<Data>, mends };
}

function withData<Data>(read: ReadRecord, dataOf: (text: string) => Data | null): ReadRecord<RecordOf<Data>> {
    return read.ok ? { ...read, record: { ...read.record, data: dataOf(read.record.data) as Data } } : read;
}

function refused(reason: string): CheckedRecord & { readonly ok: false } {
    return refusedRecord([{ field: '', reason }]);
}

/** What was read so far, counted. */
export interface RecordTotals {
    /** Lines that hold something: `good` and `bad` ones. */
    readonly records: number;
    readonly good: number;
    readonly bad: number;
    /** Lines that hold nothing but white space; they are passed over. */
    readonly blank: number;
    /** Unpacked. */
    readonly bytes: number;
    /** Records that were mended, among the good ones; where mending was asked for. */
    readonly mended?: number;
    /** How many of them had which kind of mend. */
    readonly mends?: MendCounts;
}

export interface RecordCounter {
    /** Null for a blank line. */
    count(read: ReadRecord<unknown> | null): void;
    totals(bytes: number): RecordTotals;
}

function recordCounter(mend: MendProfile | undefined): RecordCounter {
    const mends = Object.fromEntries(MEND_KINDS.map((kind) => [kind, 0])) as Record<MendKind, number>;
    let good = 0;
    let bad = 0;
    let blank = 0;
    let mended = 0;

    function countMends(kinds: readonly MendKind[]): void {
        mended += kinds.length > 0 ? 1 : 0;
        for (const kind of kinds) {
            mends[kind] += 1;
        }
    }

    return {
        count(read) {
            if (read === null) {
                blank += 1;
            } else if (read.ok) {
                good += 1;
                countMends(read.mends);
            } else {
                bad += 1;
            }
        },

        totals(bytes) {
            const totals = { records: good + bad, good, bad, blank, bytes };
            return mend === undefined ? totals : { ...totals, mended, mends: { ...mends } };
        },
    };
}
