import type { RecordStoreFixture } from '../../../../adapters/contract/index.ts';
import { memoryInventory, memoryRecords } from '../../../../adapters/memory/index.ts';
import type { HttpsRecord } from '../../../../lib/records/record.ts';
import type { RecordStore } from '../../../../lib/records/store.ts';

/** Records in memory that enrich an inventory in memory. */
export function recordsFixture(): Required<Omit<RecordStoreFixture, 'start' | 'stop'>> {
    let now = new Date();
    const clock = (): Date => now;
    const inventory = memoryInventory({ clock });
    return {
        store: memoryRecords({ clock, inventory }),
        inventory,
        setTime(time) {
            now = time;
        },
    };
}

/** Replaces methods of an honest store, which enriches the inventory. */
export type Mutation = (store: RecordStore, inventory: NonNullable<RecordStoreFixture['inventory']>) => Partial<RecordStore>;

export function brokenRecords(mutate: Mutation): () => RecordStoreFixture {
    return () => {
        const fixture = recordsFixture();
        return { ...fixture, store: { ...fixture.store, ...mutate(fixture.store, fixture.inventory) } };
    };
}

/** The store with other records in its place. */
export function adding(change: (record: HttpsRecord, index: number) => HttpsRecord): Mutation {
    return (store) => ({ add: (records, options) => store.add(records.map(change), options) });
}
