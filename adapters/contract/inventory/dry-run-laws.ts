import assert from 'node:assert/strict';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
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

/** Laws of an `InventoryWriter` that says what it would change. */
export const dryRunGroups: InventoryLaws = [{ needs: ['imports', 'dryRuns'], laws: dryRunLaws }];
