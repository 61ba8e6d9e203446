import type { FileHandle } from 'node:fs/promises';
import { type Line, lineSplitter } from '../../../lib/line-splitter.ts';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { MAX_LINE_BYTES } from '../../../lib/records/max-line-bytes.ts';
import { beginsRecord, keptRecord, notOurs } from './kept-record.ts';

const LF = Buffer.from('\n');

/**
 * Reads what a run before has left in a file of lines, and leaves the file so that the next line can go to its end: a last line that
 * was cut is removed, and one that only lacks its end gets it.
 *
 * @throws ScanwireError `INVALID_INPUT` for a file that holds something else; it is left as it was.
 */
export async function keptLines(file: FileHandle, onRecord: (record: HttpsRecord) => void): Promise<void> {
    const splitter = lineSplitter(MAX_LINE_BYTES);
    for await (const chunk of file.createReadStream({ start: 0, autoClose: false })) {
        for (const line of splitter.push(chunk as Buffer)) {
            onRecord(recordOf(line) ?? notOurs(`line ${line.number}`));
        }
    }

    for (const last of splitter.end()) {
        const record = recordOf(last);
        if (record !== null) {
            onRecord(record);
            await file.appendFile(LF);
        } else if (last.bytes !== null && beginsRecord(last.bytes)) {
            await file.truncate(last.byteOffset);
        } else {
            notOurs(`line ${last.number}`);
        }
    }
}

function recordOf({ bytes }: Line): HttpsRecord | null {
    return bytes === null ? null : keptRecord(bytes);
}
