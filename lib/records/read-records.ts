import { isUtf8 } from 'node:buffer';
import { GzipError } from '../gunzip.ts';
import { type Line, type LineSplitter, lineSplitter } from '../line-splitter.ts';
import { takeTurns } from '../take-turns.ts';
import { unpacked } from '../unpacked.ts';
import { refusedRecord } from './check-record.ts';
import { MAX_LINE_BYTES } from './max-line-bytes.ts';
import { assertMendProfile, type MendKind, type MendProfile, mendRecord } from './mend-record.ts';
import { quickRecord } from './quick-record.ts';
import { type ReadRecord, readRecord } from './read-record.ts';
import type { HttpsRecord } from './record.ts';
import { type RecordTotals, recordCounter } from './record-totals.ts';

export interface ReadRecordsOptions {
    /** A longer line is reported and skipped. 1 MiB by default. */
    readonly maxLineBytes?: number;
    /** Mends each record first, as this profile says. Nothing is mended by default. */
    readonly mend?: MendProfile;
    /** False for bytes that are unpacked already. True by default. */
    readonly unpack?: boolean;
}

/** Where a line is, and what it holds. */
export type RecordLine = {
    /** From 1; blank lines count. */
    readonly line: number;
    /** Where the line begins, in bytes from the start of the file, unpacked. */
    readonly byteOffset: number;
} & ReadRecord;

/** The lines in turn, to be read once. */
export interface RecordLines extends AsyncIterable<RecordLine> {
    /** Of what has been read so far. */
    readonly totals: RecordTotals;
    /** The same lines, those together that came together: quicker, since there is no promise for each line. */
    batches(): AsyncIterable<readonly RecordLine[]>;
}

const NO_MENDS: readonly MendKind[] = [];
const BYTE_ORDER_MARK = '\uFEFF';

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
    const { maxLineBytes = MAX_LINE_BYTES, mend, unpack = true } = options;
    if (mend !== undefined) {
        assertMendProfile(mend);
    }

    const splitter = lineSplitter(maxLineBytes);
    const counter = recordCounter(mend);
    const turn = takeTurns();

    let batch: RecordLine[] = [];

    function take({ number, byteOffset }: Place, read: ReadRecord | null): void {
        counter.count(read);
        if (read !== null) {
            batch.push({ line: number, byteOffset, ...read });
        }
    }

    function taken(): readonly RecordLine[] {
        const lines = batch;
        batch = [];
        return lines;
    }

    async function* batches(): AsyncGenerator<readonly RecordLine[], void, undefined> {
        try {
            for await (const lines of linesOf(unpack ? unpacked(source) : source, splitter)) {
                for (const line of lines) {
                    const othersTurn = turn();
                    if (othersTurn !== null) {
                        yield taken();
                        await othersTurn;
                    }

                    take(line, readLine(line, maxLineBytes, mend));
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

        async *[Symbol.asyncIterator]() {
            for await (const lines of batches()) {
                yield* lines;
            }
        },
    };
}

type Place = Pick<Line, 'number' | 'byteOffset'>;

async function* linesOf(chunks: AsyncIterable<Uint8Array>, splitter: LineSplitter): AsyncGenerator<Iterable<Line>> {
    for await (const chunk of chunks) {
        yield splitter.push(chunk);
    }

    yield splitter.end();
}

/** Null for a blank line. */
function readLine({ number, bytes }: Line, maxLineBytes: number, mend: MendProfile | undefined): ReadRecord | null {
    if (bytes === null) {
        return refused(`is longer than ${maxLineBytes} bytes`);
    }

    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const record = quickRecord(buffer);
    if (record !== null) {
        return quickly(record, mend);
    }

    if (!isUtf8(buffer)) {
        return refused('is not valid UTF-8');
    }

    const text = buffer.toString();
    const line = number === 1 && text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
    return /[^ \t\r]/.test(line) ? readRecord(line, mend) : null;
}

/** A record that keeps the schema keeps it when it is mended too. */
function quickly(record: HttpsRecord, mend: MendProfile | undefined): ReadRecord {
    const { value, mends } = mend === undefined ? { value: record, mends: NO_MENDS } : mendRecord(record, mend);
    return { ok: true, record: value as HttpsRecord, mends };
}

function refused(reason: string): ReadRecord {
    return refusedRecord([{ field: '', reason }]);
}
