import Joi from 'joi';
import { batchesOf } from '../batched.ts';
import { checked, objectWith } from '../schema-validation.ts';
import type { RecordProblem } from './check-record.ts';
import type { MendKind } from './mend-record.ts';
import type { RecordLine } from './read-records.ts';
import type { AddedRecord, AddRecordsOptions, RecordStore } from './store.ts';

/** Where records are stored, and whether they enrich an inventory. */
export interface ImportRecordsOptions extends AddRecordsOptions {
    readonly store: RecordStore;
}

const optionsSchema = Joi.object<ImportRecordsOptions>({
    store: objectWith<RecordStore>('add').required(),
    enrich: Joi.any(),
}).required();

/** What became of a line. */
export type ImportedLine = Pick<RecordLine, 'line' | 'byteOffset'> &
    (
        | ({ readonly ok: true; readonly mends: readonly MendKind[] } & AddedRecord)
        | { readonly ok: false; readonly problems: readonly RecordProblem[] }
    );

/**
 * Stores the records of good lines as they come. A batch comes out when its records are stored; the next lines are read meanwhile.
 * Memory does not depend on the number of lines.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the option; what the store or the source throws. What came out before stays stored, and is not new when it is imported again.
 */
export function importRecords(
    lines: AsyncIterable<RecordLine>,
    options: ImportRecordsOptions,
): AsyncGenerator<readonly ImportedLine[], void, undefined> {
    return imported(lines, checked(optionsSchema, options, { subject: 'importRecords options', code: 'MISCONFIGURED' }));
}

async function* imported(
    lines: AsyncIterable<RecordLine>,
    { store, enrich }: ImportRecordsOptions,
): AsyncGenerator<readonly ImportedLine[], void, undefined> {
    for await (const batch of inBatches(lines)) {
        const records = batch.flatMap((line) => (line.ok ? [line.record] : []));
        const added = (await store.add(records, { enrich })).values();
        yield batch.map((result) => {
            const { line, byteOffset } = result;
            return result.ok ? { line, byteOffset, ok: true, mends: result.mends, ...(added.next().value as AddedRecord) } : result;
        });
    }
}

const BATCH_LINES = 500;
/** In characters, nearly all of which are base64. One record may exceed it. */
const BATCH_SIZE = 4 * 1_048_576;

/** Lines as they come, in batches that a store takes in one transaction and a process can hold. */
export function inBatches(lines: AsyncIterable<RecordLine>): AsyncGenerator<readonly RecordLine[], void, undefined> {
    return batchesOf(lines, { maxItems: BATCH_LINES, maxSize: BATCH_SIZE, sizeOf });
}

function sizeOf(line: RecordLine): number {
    if (!line.ok) {
        return 0;
    }

    const { data, path = '', vhost = '', subject: { OU = '', CN = '' } = {} } = line.record;
    return data.length + path.length + vhost.length + OU.length + CN.length;
}
