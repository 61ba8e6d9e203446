import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { memoryInventory } from '../../../../adapters/memory/index.ts';
import { inventoryFixture } from '../../contract/inventory/fixture.ts';
import { tapTest } from '../../contract/tap-test.ts';

inventoryContract(tapTest(t), () => inventoryFixture());

t.test('refuses a note, a session or a vulnerability of nothing', async (t) => {
    const store = memoryInventory();

    await t.rejects(store.addNote(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addSession(1, {}), { code: 'NOT_FOUND' });
    await t.rejects(store.addVuln(1, { name: 'x' }), { code: 'NOT_FOUND' });
});

t.test('takes a moved host that a record has brought for seen when that came', async (t) => {
    let now = new Date('2026-11-21T09:30:00Z');
    const store = memoryInventory({ clock: () => now });
    store.addEndpoints('default', [{ address: '192.0.2.7', port: 443, name: null, isNew: true }]);
    const before = now;
    now = new Date('2026-11-22T09:30:00Z');
    await store.importHosts('other', [{ address: '192.0.2.9' }] as never);
    await store.moveHosts([1], 'other');
    const seen: unknown[] = [];
    for await (const batch of store.hosts.select?.([2], { extras: ['last_seen'] }) ?? []) {
        seen.push(...batch);
    }
    t.match(seen, [
        { address: '192.0.2.7', updated_at: now, last_seen: before },
        { address: '192.0.2.9', last_seen: now },
    ]);
});
