import t from 'tap';
import { inventoryContract } from '../../../adapters/contract/inventory.ts';
import { memoryInventory } from '../../../adapters/memory/inventory.ts';
import { inventoryFixture } from '../contract/inventory-fixture.ts';

inventoryContract(
    (name, law) => t.test(name, law),
    () => inventoryFixture(memoryInventory()),
);

t.test('refuses a note, a session or a vulnerability of nothing', async (t) => {
    const store = memoryInventory();

    await t.rejects(store.addNote(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addSession(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addVuln(1, { name: 'x' }), { code: 'NOT_FOUND' });
});
