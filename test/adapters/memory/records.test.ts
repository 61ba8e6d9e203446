import t from 'tap';
import { recordStoreContract } from '../../../adapters/contract/index.ts';
import { record } from '../../../adapters/contract/records/fixture.ts';
import { memoryInventory, memoryRecords } from '../../../adapters/memory/index.ts';
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

t.test('stores nothing where the boundary of the workspace is none', async (t) => {
    const inventory = memoryInventory();
    await inventory.limitWorkspace(1, 'the office');
    const store = memoryRecords({ inventory });
    await t.rejects(store.add([record()], { enrich: { workspace: 'default' } }), { code: 'CONFLICT', field: 'boundary' });
    t.same(await store.list({ limit: 10 }), []);
});
