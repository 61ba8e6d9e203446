import t from 'tap';
import { recordStoreContract } from '../../../adapters/contract/index.ts';
import { memoryRecords } from '../../../adapters/memory/index.ts';
import { recordsFixture } from '../contract/records/fixture.ts';
import { tapTest } from '../contract/tap-test.ts';

recordStoreContract(tapTest(t), recordsFixture);

t.test('keeps the laws without an inventory', async (t) => {
    recordStoreContract(tapTest(t), () => {
        let now = new Date();
        return {
            store: memoryRecords({ clock: () => now }),
            setTime(time) {
                now = time;
            },
        };
    });
});
