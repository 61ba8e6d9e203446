import { announce, type ContractTest } from './contract-test.ts';
import { enrichingLaws } from './record-enriching.ts';
import { storingLaws } from './record-storing.ts';
import type { RecordStoreFixture } from './records-fixture.ts';

export type { RecordStoreFixture } from './records-fixture.ts';

/** The laws of `RecordStore`: each one becomes a test. */
export function recordStoreContract(test: ContractTest, create: () => RecordStoreFixture | Promise<RecordStoreFixture>): void {
    announce(test, create, { ...storingLaws, ...enrichingLaws });
}
