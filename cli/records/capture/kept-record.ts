import type { HttpsRecord } from '../../../lib/records/index.ts';
import { readRecord } from '../../../lib/records/read-record.ts';
import { ScanwireError } from '../../../lib/scanwire-error.ts';

/** As this command begins each line. */
const BEGINNING = Buffer.from('{"data":"');

/** The record that a line holds; null for anything else. */
export function keptRecord(line: Uint8Array): HttpsRecord | null {
    const read = readRecord(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString());
    return read.ok ? read.record : null;
}

/** Whether bytes can be what is left of a line that was cut: nothing else may be thrown away. */
export function beginsRecord(bytes: Uint8Array): boolean {
    const beginning = bytes.subarray(0, BEGINNING.length);
    return BEGINNING.subarray(0, beginning.length).equals(beginning);
}

export function notOurs(where: string): never {
    throw new ScanwireError('INVALID_INPUT', `Cannot go on with the output file: ${where} is not a record as this command writes it`, {
        field: 'output',
    });
}
