import { setImmediate } from 'node:timers/promises';
import { wakeUps } from '../within.ts';
import type { RecordProblem } from './check-record.ts';
import type { MendKind } from './mend-record.ts';
import type { RecordLine } from './read-records.ts';
import type { AddedRecord, AddRecordsOptions, RecordStore } from './store.ts';

/** Where records are stored, and whether they enrich an inventory. */
export interface ImportRecordsOptions extends AddRecordsOptions {
    readonly store: RecordStore;
}

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

/**
 * What a source yields, in batches of what came while the batch before was worked on: a source that trickles does not wait for a
 * batch to fill, and one that pours makes large ones. At most one batch is held besides the one that is worked on. When the source
 * fails, what came before comes out first.
 *
 * @param limits A batch grows until it has `maxItems` items, or its items have `maxSize`.
 */
export async function* batchesOf<Item>(
    source: AsyncIterable<Item>,
    { maxItems, maxSize, sizeOf }: { readonly maxItems: number; readonly maxSize: number; sizeOf(item: Item): number },
): AsyncGenerator<readonly Item[], void, undefined> {
    // The batch that grows, and the side that waits for the other; they never wait both.
    const next = { items: [] as Item[], size: 0, isLast: false, isAbandoned: false };
    const { wake, change } = wakeUps();

    const fill = async (): Promise<void> => {
        for await (const item of source) {
            next.items.push(item);
            next.size += sizeOf(item);
            wake();
            while (!next.isAbandoned && (next.items.length >= maxItems || next.size >= maxSize)) {
                await change();
            }

            if (next.isAbandoned) {
                return;
            }
        }
    };
    const filled = fill().finally(() => {
        next.isLast = true;
        wake();
    });
    filled.catch(() => undefined);

    try {
        while (!next.isLast || next.items.length > 0) {
            if (next.items.length === 0) {
                await change();
                // What came with the first item comes along.
                await setImmediate();
                continue;
            }

            const items = next.items.splice(0);
            next.size = 0;
            wake();
            yield items;
        }

        await filled;
    } finally {
        next.isAbandoned = true;
        wake();
    }
}
