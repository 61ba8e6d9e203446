import t from 'tap';
import { inventoryContract } from '../../../adapters/contract/index.ts';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { inventoryFixture } from '../contract/inventory/fixture.ts';
import { tapTest } from '../contract/tap-test.ts';

inventoryContract(tapTest(t), () => inventoryFixture());

t.test('refuses a note, a session or a vulnerability of nothing', async (t) => {
    const store = memoryInventory();

    await t.rejects(store.addNote(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addSession(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addVuln(1, { name: 'x' }), { code: 'NOT_FOUND' });
});
