import { isBase64Latin1 } from './base64.ts';
import { type ReadRecordsOptions, type RecordLines, readLines } from './read-lines.ts';

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
