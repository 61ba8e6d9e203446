import assert from 'node:assert/strict';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, each, fullHost, https, type InventoryFixture, type InventoryLaws, rows } from './fixture.ts';

const NONE = importCounts();
const known: HostInput = { ...fullHost, services: [dns, https], notes: [{ ntype: 'a', data: {} }], vulns: [{ name: 'b', info: null }] };
const other: HostInput = { address: '192.0.2.1', services: [dns] };

/** What an import leaves out. */
const boundaryLaws: Laws<InventoryFixture> = {
    async 'leaves out and counts what is outside of the boundary of a workspace'({ store, add }) {
        const limit = present(add?.boundary);
        const { workspace } = await store.importHosts('default', each([other]));
        await limit(workspace.id, '192.0.2.0/30, 198.51.100.1-198.51.100.9,203.0.113.5-7 2001:db8::/64');
        const inside = ['192.0.2.3', '198.51.100.9', '203.0.113.5', '203.0.113.7', '2001:db8::1'].map((address) => ({ address }));
        const outside = ['192.0.2.4', '198.51.100.10', '203.0.113.8', '2001:db8:0:1::1'].map((address) => ({
            address,
            services: [dns, https],
        }));
        const { hosts, services } = await store.importHosts('default', each([...outside, ...inside, other]));

        assert.deepEqual(
            [hosts, services],
            [
                { ...NONE, new: 5, unchanged: 1, refused: 4 },
                { ...NONE, unchanged: 1, refused: 8 },
            ],
        );
        const found = (await rows(store.hosts, [workspace.id])).map(({ address }) => address);
        assert.deepEqual(found, [other.address, ...inside.map(({ address }) => address)]);
    },

    async 'leaves nothing out where the boundary is empty'({ store, add }) {
        const { id } = await store.ensureWorkspace('default');
        await present(add?.boundary)(id, ' ');

        assert.deepEqual((await store.importHosts('default', each([known]))).hosts, { ...NONE, new: 1 });
    },

    async 'imports nothing where the boundary is none'({ store, add }) {
        const { id } = await store.ensureWorkspace('default');
        await present(add?.boundary)(id, 'the office');

        await assert.rejects(store.importHosts('default', each([known])), { code: 'CONFLICT', field: 'boundary' });
        assert.deepEqual(await rows(store.hosts, [id]), []);
    },
};

const unlimitedLaws: Laws<InventoryFixture> = {
    async 'leaves nothing out where a workspace is not limited to its boundary'({ store, add }) {
        const { id } = await store.ensureWorkspace('default');
        await present(add?.boundary)(id, '198.51.100.0/24');
        await present(store.updateWorkspace)('default', { limit_to_network: false });
        const { hosts } = await store.importHosts('default', each([other, { address: '198.51.100.1' }]));

        assert.deepEqual(hosts, { ...NONE, new: 2 });
    },

    async 'lets nothing in from outside of a boundary that is set while the hosts are read'({ store }) {
        const update = present(store.updateWorkspace);
        const { id } = await store.ensureWorkspace('default');
        async function* source(): AsyncIterable<HostInput> {
            yield other;
            await update('default', { boundary: '198.51.100.0/24', limit_to_network: true });
            yield known;
        }
        const refused = await store.importHosts('default', source()).then(
            ({ hosts }) => hosts.refused,
            ({ code }) => code,
        );

        assert.ok(refused === 2 || refused === 'CONFLICT', `${refused}`);
        assert.deepEqual(await rows(store.hosts, [id]), []);
    },
};

/** Laws of an `InventoryWriter` that keeps within boundaries. */
export const boundaryGroups: InventoryLaws = [
    { needs: ['imports', 'keepsBoundaries'], laws: boundaryLaws },
    { needs: ['imports', 'keepsBoundaries', 'updatesWorkspaces'], laws: unlimitedLaws },
];
