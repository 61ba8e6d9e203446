import { timeSlice } from '../clock.ts';
import { base64Bytes } from './base64.ts';
import { oneByOne, type ReadRecordsOptions, type RecordLine, type RecordLines, readLines } from './read-records.ts';
import type { HttpsRecord, RecordOf } from './record.ts';
import { bodyLimit, type ParsedResponse, parseResponse, type ResponseLimits } from './response/parse-response.ts';

/** A record with its response read. What the record leaves out is null. */
export interface DecodedRecord {
    readonly host: string;
    readonly ip: string;
    readonly port: number;
    readonly path: string | null;
    readonly vhost: string | null;
    readonly subject: { readonly OU?: string; readonly CN?: string } | null;
    readonly response: ParsedResponse;
}

/**
 * Reads the response in a record that passes the strict profile.
 *
 * @throws ScanwireError `MISCONFIGURED` for a limit that cannot be kept, and for nothing in the record.
 */
export function decodeRecord(record: HttpsRecord, limits: ResponseLimits = {}): DecodedRecord {
    return decoded({ ...record, data: Buffer.from(record.data, 'base64') }, limits);
}

function decoded(record: RecordOf<Buffer>, limits: ResponseLimits): DecodedRecord {
    const { data, host, ip, port, path = null, vhost = null, subject = null } = record;
    return { host, ip, port, path, vhost, subject, response: parseResponse(data, limits) };
}

/** Options of {@link readDecodedRecords}. */
export interface ReadDecodedRecordsOptions extends ReadRecordsOptions, ResponseLimits {}

/** In bytes: what the responses of a batch may hold, but for one of them. Bodies expand. */
const BATCH_BYTES = 1_048_576;

/**
 * Reads a file as {@link readRecords} does, and the response in each record as {@link decodeRecord} does, quicker than one after
 * the other.
 *
 * @throws ScanwireError `MISCONFIGURED` for a mend profile that there is not, and for a limit that cannot be kept.
 *
 * @example
 * for await (const line of readDecodedRecords(createReadStream('https.jsonl.gz'))) {
 *     if (line.ok && line.record.response.http) console.log(line.record.host, line.record.response.title);
 * }
 */
export function readDecodedRecords(source: AsyncIterable<Uint8Array>, options: ReadDecodedRecordsOptions = {}): RecordLines<DecodedRecord> {
    bodyLimit(options);
    const lines = readLines(source, options, base64Bytes);
    const yieldIfDue = timeSlice();

    /** All lines of a batch are checked before the first is decoded: the code of one step stays in the processor's caches. */
    async function* batches(): AsyncGenerator<readonly RecordLine<DecodedRecord>[], void, undefined> {
        for await (const checked of lines.batches()) {
            let batch: RecordLine<DecodedRecord>[] = [];
            let bytes = 0;
            for (const line of checked) {
                const pause = yieldIfDue();
                if (pause !== null || bytes > BATCH_BYTES) {
                    yield batch;
                    batch = [];
                    bytes = 0;
                    await pause;
                }

                const read = line.ok ? { ...line, record: decoded(line.record, options) } : line;
                bytes += read.ok ? bytesOf(read.record.response) : 0;
                batch.push(read);
            }

            yield batch;
        }
    }

    return {
        get totals() {
            return lines.totals;
        },

        batches,

        [Symbol.asyncIterator]: () => oneByOne(batches()),
    };
}

function bytesOf(response: ParsedResponse): number {
    return response.http ? response.body.length : response.bytes.length;
}
