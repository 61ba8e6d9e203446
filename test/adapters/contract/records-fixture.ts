import type { RecordStoreFixture } from '../../../adapters/contract/records.ts';
import { memoryInventory } from '../../../adapters/memory/inventory.ts';
import { memoryRecords } from '../../../adapters/memory/records.ts';

/** Records in memory that enrich an inventory in memory. */
export function recordsFixture(): RecordStoreFixture {
    let now = new Date();
    const clock = (): Date => now;
    const inventory = memoryInventory({ clock });
    return {
        store: memoryRecords({ clock, inventory }),
        inventory,
        setTime(time) {
            now = time;
        },
        async stop() {},
    };
}
