import assert from 'node:assert/strict';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, each, failing, fullHost, https, type InventoryFixture, type InventoryLaws, manyHosts, names, rows } from './fixture.ts';

const NONE = importCounts();
const DRY = { dryRun: true } as const;
const known: HostInput = { ...fullHost, services: [dns, https], notes: [{ ntype: 'a', data: {} }], vulns: [{ name: 'b', info: null }] };
const other: HostInput = { address: '192.0.2.1', services: [dns] };

/** What an import does that is a dry run. */
const dryRunLaws: Laws<InventoryFixture> = {
    async 'says in a dry run what an import would change, and changes nothing'({ store }) {
        const { workspace } = await store.importHosts('default', each([known, { address: '192.0.2.9' }]));
        const before = await rows(store.hosts, [workspace.id]);
        const input: HostInput[] = [
            { ...known, name: 'changed', services: [dns, { ...https, port: 8443 }], notes: [{ ntype: 'a', data: { more: 1 } }] },
            other,
            ...manyHosts(300),
        ];
        const dry = await store.importHosts('default', each(input), { dryRun: true, replace: store.replaces === true });

        assert.equal((await rows(store.hosts, [workspace.id])).length, before.length);
        assert.deepEqual(await rows(store.hosts, [workspace.id]), before);
        const { workspace: _workspace, ...counts } = await store.importHosts('default', each(input), { replace: store.replaces === true });
        const { workspace: _same, ...dryCounts } = dry;
        assert.deepEqual(dryCounts, counts);
        const { hosts, services } = counts;
        assert.deepEqual([hosts.new, hosts.changed, services.new], [301, 1, 2]);
    },

    async 'makes no workspace in a dry run'({ store }) {
        const { workspace, hosts } = await store.importHosts('new', each([known]), DRY);

        assert.deepEqual([workspace.name, hosts], ['new', { ...NONE, new: 1 }]);
        assert.deepEqual(names(await rows(store.workspaces, [])), ['default']);
        await assert.rejects(store.importHosts('new', failing([known]), DRY), { message: 'the source broke' });
        assert.deepEqual((await store.importHosts('new', each([known]))).hosts, { ...NONE, new: 1 });
    },
};

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

/** Laws of an `InventoryWriter` that imports less than it is given. */
export const sparingGroups: InventoryLaws = [
    { needs: ['imports', 'dryRuns'], laws: dryRunLaws },
    { needs: ['imports', 'keepsBoundaries'], laws: boundaryLaws },
];
