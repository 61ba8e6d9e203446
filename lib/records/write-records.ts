import { packed } from '../gunzip.ts';
import { assertRecord } from './check-record.ts';
import { type HttpsRecord, stringifyRecord } from './record.ts';

/** How a file is written. */
export interface WriteRecordsOptions {
    /** Packs the file with gzip. */
    readonly gzip?: boolean;
}

/** Characters that go out together. */
const CHUNK = 65_536;

/**
 * The bytes of a file of records: JSON lines of the strict profile, the keys in the order of the specification.
 *
 * @throws ScanwireError `INVALID_INPUT` for a record that breaks the schema, with its number, field and reason. What came before it
 * may not have been handed out.
 *
 * @example
 * await pipeline(writeRecords(records, { gzip: true }), createWriteStream('https.jsonl.gz'));
 */
export function writeRecords(
    records: AsyncIterable<HttpsRecord> | Iterable<HttpsRecord>,
    { gzip = false }: WriteRecordsOptions = {},
): AsyncIterable<Uint8Array> {
    return gzip ? packed(chunks(records)) : chunks(records);
}

async function* chunks(records: AsyncIterable<HttpsRecord> | Iterable<HttpsRecord>): AsyncGenerator<Uint8Array, void, undefined> {
    let text = '';
    let number = 0;
    for await (const record of records) {
        number += 1;
        assertRecord(record, number);
        text += `${stringifyRecord(record)}\n`;
        if (text.length >= CHUNK) {
            yield Buffer.from(text);
            text = '';
        }
    }

    if (text !== '') {
        yield Buffer.from(text);
    }
}
