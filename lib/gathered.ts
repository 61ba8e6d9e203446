import { setImmediate } from 'node:timers/promises';

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
