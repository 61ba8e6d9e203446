import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { timeSlice } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { GzipError, type Rereadable, unpacked } from '../gunzip.ts';
import { type Line, lineSplitter, linesOf } from '../line-splitter.ts';
import { isBase64Latin1 } from './base64.ts';
import { assertMendProfile, MEND_KINDS, type MendCounts, type MendKind, type MendProfile } from './mend-record.ts';
import { type LineRules, type ReadRecord, readLine, refusedLine } from './parse-line.ts';
import { assertByteLimit, type HttpsRecord, MAX_LINE_BYTES, type RecordOf } from './record.ts';

/**
 * Reads a file of records, JSON lines, plain or packed with gzip, from any stream of bytes, and goes on after a bad line. Lines
 * end with LF or CR LF, the last one may do without, and a byte order mark at the start is passed over. Holds no more than a
 * chunk of the source and a line, and lets others have a turn between lines.
 *
 * Gzip that is damaged, cut off or a bomb, and another archive, is reported as the line where it ends the reading. A failure of the
 * source itself ends the iteration with that error.
 *
 * @throws ScanwireError `MISCONFIGURED` for a profile that there is not, and for a source that is no stream of bytes.
 *
 * @example
 * for await (const line of readRecords(recordSource('https.jsonl.gz'))) {
 *     if (line.ok) console.log(line.record.host);
 * }
 */
export function readRecords(source: AsyncIterable<Uint8Array>, options: ReadRecordsOptions = {}): RecordLines {
    return readLines(source, options, (text) => (isBase64Latin1(text) ? text : null));
}

/**
 * The bytes of a file, opened when the first are asked for, as a source that is read quickest: in long pieces, and unpacked in long steps, since
 * damage can be looked for by reading it once more: if it is a regular file, which a pipe is not.
 */
export function recordSource(path: string): Rereadable {
    async function* bytes(): AsyncGenerator<Uint8Array, void, undefined> {
        yield* createReadStream(path, { highWaterMark: 262_144 }) as AsyncIterable<Uint8Array>;
    }

    async function* again(): AsyncGenerator<Uint8Array, void, undefined> {
        if (!(await stat(path)).isFile()) {
            throw new ScanwireError('INVALID_INPUT', 'The source can be read only once');
        }

        yield* bytes();
    }

    return Object.assign(bytes(), { again });
}

/** How a file is read. */
export interface ReadRecordsOptions {
    /** A longer line is reported and skipped. 1 MiB by default, 256 MiB at most. */
    readonly maxLineBytes?: number;
    /** Mends each record first, as this profile says; one that is longer than `maxLineBytes` then is bad. Nothing is mended by default. */
    readonly mend?: MendProfile;
    /** False for bytes that are unpacked already. True by default. */
    readonly unpack?: boolean;
    /** How many bad lines are described, besides one that ends the reading; those beyond have no problems, which is quicker. All by default. */
    readonly maxDescribed?: number;
    /**
     * Bytes of a request that were received so far. Reading ends, with a line that says so, where it takes as much work as reading 48 times
     * as many bytes of records; the first mebibyte is free. No limit by default.
     */
    readonly received?: (() => number) | undefined;
    /** Ends the reading with its reason as the error. */
    readonly signal?: AbortSignal | undefined;
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
    const { maxLineBytes = MAX_LINE_BYTES, mend, unpack = true, maxDescribed = Infinity, received, signal } = options;
    assertSource(source);
    if (mend !== undefined) {
        assertMendProfile(mend);
    }
    assertByteLimit(maxLineBytes, 'readRecords options', 'maxLineBytes');

    let described = 0;
    const rules: LineRules<Data> = { maxLineBytes, mend, dataOf, describes: () => described < maxDescribed };
    const work = workLimit(received);
    const splitter = lineSplitter(maxLineBytes);
    const counter = recordCounter(mend);
    const yieldIfDue = timeSlice();

    const batch: RecordLine<RecordOf<Data>>[] = [];

    function add({ number, byteOffset }: Pick<Line, 'number' | 'byteOffset'>, read: ReadRecord<RecordOf<Data>> | null): void {
        counter.count(read);
        described += read?.ok === false && read.problems.length > 0 ? 1 : 0;
        if (read !== null) {
            batch.push({ line: number, byteOffset, ...read });
        }
    }

    async function* batches(): AsyncGenerator<readonly RecordLine<RecordOf<Data>>[], void, undefined> {
        try {
            for await (const lines of linesOf(unpack ? unpacked(source, signal) : source, splitter)) {
                for (const line of lines) {
                    const pause = yieldIfDue();
                    if (pause !== null) {
                        yield batch.splice(0);
                        await pause;
                        signal?.throwIfAborted();
                    }

                    const read = readLine(line, rules);
                    add(line, read);
                    work.spend(read, line.bytes?.length ?? 0);
                    work.assertWithin(splitter.bytes);
                }

                work.assertWithin(splitter.bytes);
                yield batch.splice(0);
            }
        } catch (error) {
            if (!(error instanceof GzipError || error instanceof ExcessiveWork)) {
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

/** A text, or the bytes themselves, can be gone through as well, but by their signs. */
function assertSource(source: unknown): void {
    const given = Object(source);
    if (source !== given || ArrayBuffer.isView(given) || !(Symbol.asyncIterator in given || Symbol.iterator in given)) {
        const message = 'source must be a stream of bytes, such as recordSource(path) gives';
        throw new ScanwireError('MISCONFIGURED', message, { field: 'source' });
    }
}

/** Those of one batch after the other. */
export async function* oneByOne<Line>(batches: AsyncIterable<readonly Line[]>): AsyncGenerator<Line, void, undefined> {
    for await (const lines of batches) {
        yield* lines;
    }
}

/** What a request may cost: as much as so many times its bytes in records, beyond the first so many of them. */
const WORK_FACTOR = 48;
const FREE_WORK = 1_048_576;

/** By measurement, in bytes of records that take as long to read. Joi describes a bad line, and takes its time. */
const BLANK_LINE = 16;
const LINE = 48;
const DESCRIBED_LINE = 600;
/** For each byte of a bad line: its keys may be many. */
const BAD_BYTE = 5;
const DESCRIBED_BYTE = 12;

/** What a batch costs is out of proportion to its bytes. */
class ExcessiveWork extends ScanwireError {
    constructor() {
        super(
            'INVALID_INPUT',
            'The batch takes more work than its bytes allow: it expands too much, or too many bad lines are to be described',
        );
    }
}

/** Keeps count of the work of reading, for a request whose bytes are paid for by a stranger. */
function workLimit(received: (() => number) | undefined) {
    let spent = 0;

    return {
        /** @param read What the line came to. */
        spend(read: ReadRecord<unknown> | null, bytes: number): void {
            if (read === null) {
                spent += BLANK_LINE;
            } else if (read.ok) {
                spent += LINE;
            } else {
                spent += read.problems.length > 0 ? DESCRIBED_LINE + DESCRIBED_BYTE * bytes : LINE + BAD_BYTE * bytes;
            }
        },

        /** @throws ExcessiveWork */
        assertWithin(unpackedBytes: number): void {
            const work = spent + unpackedBytes;
            if (received !== undefined && work > FREE_WORK && work > FREE_WORK + WORK_FACTOR * received()) {
                throw new ExcessiveWork();
            }
        },
    };
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
