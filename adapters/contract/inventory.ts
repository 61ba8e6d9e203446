import { announce, type ContractTest } from './contract-test.ts';
import type { InventoryFixture } from './inventory-fixture.ts';
import { importLaws } from './inventory-import.ts';
import { readingLaws } from './inventory-reading.ts';

export type { InventoryFixture } from './inventory-fixture.ts';

/** The laws of `InventoryStore` and `InventoryWriter`: each one becomes a test. */
export function inventoryContract(test: ContractTest, create: () => InventoryFixture | Promise<InventoryFixture>): void {
    announce(test, create, { ...readingLaws, ...importLaws });
}
