import type { RecordProblem } from './check-record.ts';
import { inBatches } from './in-batches.ts';
import type { MendKind } from './mend-record.ts';
import type { RecordLine } from './read-lines.ts';
import type { AddedRecord, Enrichment, RecordStore } from './store.ts';

export interface ImportRecordsOptions {
    readonly store: RecordStore;
    readonly enrich?: Enrichment | undefined;
}

/** What became of a line. */
export type ImportedLine = {
    /** From 1; blank lines count. */
    readonly line: number;
    /** Where the line begins, in bytes from the start. */
    readonly byteOffset: number;
} & (
    | ({ readonly ok: true; readonly mends: readonly MendKind[] } & AddedRecord)
    | { readonly ok: false; readonly problems: readonly RecordProblem[] }
);

/**
 * Stores the good ones of lines as they come. A batch comes out when its records are stored, so what was said to be stored
 * is; the next lines are read meanwhile. Memory does not depend on the number of lines.
 *
 * @throws What the store or the source throws. What came out before stays stored, and is not new when it is imported again.
 */
export async function* importRecords(
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
