import { setImmediate } from 'node:timers/promises';
import type { RecordProblem } from './check-record.ts';
import type { MendKind } from './mend-record.ts';
import type { RecordLine } from './read-records.ts';
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

const LINES = 500;
/** In characters, most of which are base64. One record may exceed it. */
const SIZE = 4 * 1_048_576;

/** Lines as they come, in batches of a size that a store takes at once and a process can hold. */
export function inBatches(lines: AsyncIterable<RecordLine>): AsyncGenerator<readonly RecordLine[], void, undefined> {
    return gathered(lines, { maxItems: LINES, maxSize: SIZE, sizeOf });
}

function sizeOf(line: RecordLine): number {
    if (!line.ok) {
        return 0;
    }

    const { data, path = '', vhost = '', subject: { OU = '', CN = '' } = {} } = line.record;
    return data.length + path.length + vhost.length + OU.length + CN.length;
}

export interface GatherLimits<Item> {
    /** Most items of a batch. */
    readonly maxItems: number;
    /** A batch grows until its items have this size. */
    readonly maxSize: number;
    sizeOf(item: Item): number;
}

interface Gathering<Item> {
    items: Item[];
    size: number;
    state: 'open' | 'ended' | 'abandoned';
    failure: { readonly error: unknown } | null;
    /** Wakes the side that waits for the other; they never wait both. */
    wake(): void;
}

/**
 * What a source gives, in batches of what came while the batch before was worked on: a source that trickles does not wait for a
 * batch to fill, and one that pours makes large ones. At most one batch is held besides the one that was taken. When the source
 * fails, what came before comes out first.
 */
export async function* gathered<Item>(
    source: AsyncIterable<Item>,
    limits: GatherLimits<Item>,
): AsyncGenerator<readonly Item[], void, undefined> {
    const gathering: Gathering<Item> = { items: [], size: 0, state: 'open', failure: null, wake() {} };
    void gather(source, gathering, limits);
    try {
        while (gathering.state === 'open' || gathering.items.length > 0) {
            if (gathering.items.length === 0) {
                await change(gathering);
                // What came with the first item comes along.
                await setImmediate();
                continue;
            }

            const taken = gathering.items;
            gathering.items = [];
            gathering.size = 0;
            gathering.wake();
            yield taken;
        }

        if (gathering.failure !== null) {
            throw gathering.failure.error;
        }
    } finally {
        gathering.state = 'abandoned';
        gathering.wake();
    }
}

/** Never rejects. */
async function gather<Item>(
    source: AsyncIterable<Item>,
    gathering: Gathering<Item>,
    { maxItems, maxSize, sizeOf }: GatherLimits<Item>,
): Promise<void> {
    try {
        for await (const item of source) {
            gathering.items.push(item);
            gathering.size += sizeOf(item);
            gathering.wake();
            while (gathering.state === 'open' && (gathering.items.length >= maxItems || gathering.size >= maxSize)) {
                await change(gathering);
            }

            if (gathering.state === 'abandoned') {
                return;
            }
        }
    } catch (error) {
        gathering.failure = { error };
    }

    gathering.state = 'ended';
    gathering.wake();
}

function change<Item>(gathering: Gathering<Item>): Promise<void> {
    return new Promise((resolve) => {
        gathering.wake = resolve;
    });
}
