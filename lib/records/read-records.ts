import { timeSlice } from '../clock.ts';
import { type Line, lineSplitter, linesOf } from '../line-splitter.ts';
import { GzipError, unpacked } from '../unpacked.ts';
import { isBase64Latin1 } from './base64.ts';
import { assertMendProfile, MEND_KINDS, type MendCounts, type MendKind, type MendProfile } from './mend-record.ts';
import { type LineRules, type ReadRecord, readLine, refusedLine } from './read-record.ts';
import { type HttpsRecord, MAX_LINE_BYTES, type RecordOf } from './record.ts';

/**
 * Reads a file of records, JSON lines, plain or packed with gzip, from any stream of bytes, and goes on after a bad line. Lines
 * end with LF or CR LF, the last one may do without, and a byte order mark at the start is passed over. Holds no more than a
 * chunk of the source and a line, and lets others have a turn between lines.
 *
 * Gzip that is damaged, cut off or a bomb, and another archive, is reported as the line where it ends the reading. A failure of the
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
    return readLines(source, options, (text) => (isBase64Latin1(text) ? text : null));
}

/** How a file is read. */
export interface ReadRecordsOptions {
    /** A longer line is reported and skipped. 1 MiB by default. */
    readonly maxLineBytes?: number;
    /** Mends each record first, as this profile says. Nothing is mended by default. */
    readonly mend?: MendProfile;
    /** False for bytes that are unpacked already. True by default. */
    readonly unpack?: boolean;
}

/** A line that was read: where it is, and what it holds. */
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

/** Reads the records of a file, with what `dataOf` makes of the text in their `data`. */
export function readLines<Data>(
    source: AsyncIterable<Uint8Array>,
    options: ReadRecordsOptions,
    dataOf: LineRules<Data>['dataOf'],
): RecordLines<RecordOf<Data>> {
    const { maxLineBytes = MAX_LINE_BYTES, mend, unpack = true } = options;
    if (mend !== undefined) {
        assertMendProfile(mend);
    }

    const rules: LineRules<Data> = { maxLineBytes, mend, dataOf };
    const splitter = lineSplitter(maxLineBytes);
    const counter = recordCounter(mend);
    const yieldIfDue = timeSlice();

    const batch: RecordLine<RecordOf<Data>>[] = [];

    function add({ number, byteOffset }: Pick<Line, 'number' | 'byteOffset'>, read: ReadRecord<RecordOf<Data>> | null): void {
        counter.count(read);
        if (read !== null) {
            batch.push({ line: number, byteOffset, ...read });
        }
    }

    async function* batches(): AsyncGenerator<readonly RecordLine<RecordOf<Data>>[], void, undefined> {
        try {
            for await (const lines of linesOf(unpack ? unpacked(source) : source, splitter)) {
                for (const line of lines) {
                    const pause = yieldIfDue();
                    if (pause !== null) {
                        yield batch.splice(0);
                        await pause;
                    }

                    add(line, readLine(line, rules));
                }

                yield batch.splice(0);
            }
        } catch (error) {
            if (!(error instanceof GzipError)) {
                throw error;
            }

            add(splitter.current, refusedLine(`is where reading ends: ${error.message}`));
            yield batch.splice(0);
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

function recordCounter(mend: MendProfile | undefined) {
    const mends = Object.fromEntries(MEND_KINDS.map((kind) => [kind, 0])) as Record<MendKind, number>;
    let [good, bad, blank, mended] = [0, 0, 0, 0];

    return {
        /** Null for a blank line. */
        count(read: ReadRecord<unknown> | null): void {
            if (read === null) {
                blank += 1;
            } else if (read.ok) {
                good += 1;
                mended += read.mends.length > 0 ? 1 : 0;
                for (const kind of read.mends) {
                    mends[kind] += 1;
                }
            } else {
                bad += 1;
            }
        },

        totals(bytes: number): RecordTotals {
            const totals = { records: good + bad, good, bad, blank, bytes };
            return mend === undefined ? totals : { ...totals, mended, mends: { ...mends } };
        },
    };
}
