import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { type MemoryInventory, memoryInventory } from '../../../../adapters/memory/index.ts';
import type { Host } from '../../../../lib/inventory/host.ts';
import { inventoryFixture } from '../../contract/inventory/fixture.ts';
import { tapTest } from '../../contract/tap-test.ts';

inventoryContract(tapTest(t), () => inventoryFixture());

async function hostsSeen(store: MemoryInventory, workspaceId: number): Promise<(Host & { readonly last_seen?: Date | null })[]> {
    const seen = [];
    for await (const batch of store.hosts.select?.([workspaceId], { extras: ['last_seen'] }) ?? []) {
        seen.push(...batch);
    }
    return seen;
}

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
    t.match(await hostsSeen(store, 2), [
        { address: '192.0.2.7', updated_at: now, last_seen: before },
        { address: '192.0.2.9', last_seen: now },
    ]);
});

t.test('sees a host no later than it writes it, however the clock goes on meanwhile', async (t) => {
    let now = Date.parse('2026-11-21T09:30:00Z');
    const store = memoryInventory({ clock: () => new Date(now++) });
    await store.importHosts('default', [{ address: '192.0.2.1' }] as never);
    const [host] = await hostsSeen(store, 1);
    t.equal(host?.last_seen?.getTime(), host?.updated_at.getTime());
});
