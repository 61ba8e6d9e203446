import type { InventoryFixture } from '../../../adapters/contract/inventory.ts';
import type { MemoryInventory } from '../../../adapters/memory/inventory.ts';

/** A fixture around a memory inventory that shows every ability that a law can ask for. */
export function inventoryFixture(store: MemoryInventory): InventoryFixture {
    let open = 0;
    const hosts: MemoryInventory['hosts'] = {
        get: store.hosts.get,
        async *list(path, options) {
            open += 1;
            try {
                yield* store.hosts.list(path, options);
            } finally {
                open -= 1;
            }
        },
    };

    return {
        store: { ...store, hosts },
        openReads: () => open,
        add: {
            note: async (hostId) => (await store.addNote(hostId, {})).id,
            session: async (hostId) => (await store.addSession(hostId, {})).id,
            vuln: async (serviceId) => (await store.addVuln(serviceId, { name: 'CVE-2026-0001' })).id,
        },
        async stop() {},
    };
}
