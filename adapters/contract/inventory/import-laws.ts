import assert from 'node:assert/strict';
import { newHost } from '../../../lib/inventory/host.ts';
import type { InventoryWriter } from '../../../lib/inventory/store.ts';
import type { LawGroup, Laws } from '../announce.ts';
import {
    dns,
    each,
    fullHost,
    https,
    type InventoryAbility,
    type InventoryFixture,
    manyHosts,
    names,
    oneHost,
    present,
    rows,
} from './fixture.ts';
import { knownLists } from './known-rows.ts';

/** What an import leaves behind. */
const importLaws: Laws<InventoryFixture> = {
    async 'has the workspace default from the start'({ store }) {
        const [workspace] = await rows(store.workspaces, []);

        assert.equal(workspace?.name, 'default');
        assert.deepEqual(await store.workspaces.get([], workspace.id), workspace);
    },

    async 'makes a workspace once'({ store }) {
        const lab = await store.ensureWorkspace('lab 🧪');
        const { created_at, updated_at, id: _id, ...fields } = lab;

        assert.deepEqual(await store.ensureWorkspace('lab 🧪'), lab);
        assert.deepEqual(fields, { name: 'lab 🧪', boundary: null, description: null, owner_id: null, limit_to_network: false });
        assert.ok(created_at instanceof Date && updated_at instanceof Date);
        assert.deepEqual(names(await rows(store.workspaces, [])), ['default', 'lab 🧪']);
    },

    async 'gives a bare host the defaults'({ store }) {
        const { host, workspace } = await oneHost(store, { address: '192.0.2.7' });
        const { id, workspace_id, created_at, updated_at, ...fields } = host;

        assert.ok(Number.isInteger(id) && created_at instanceof Date && updated_at instanceof Date);
        assert.equal(workspace_id, workspace.id);
        assert.deepEqual(fields, newHost({ address: '192.0.2.7' }));
    },

    async 'keeps every field of a host, in any script'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);

        assert.deepEqual(host, { ...host, ...fullHost });
        assert.deepEqual(await store.hosts.get([workspace.id], host.id), host);
    },

    async 'imports nothing when the source fails half-way'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const input = [{ ...fullHost, name: 'changed', services: [dns] }, ...manyHosts()];
        await assert.rejects(store.importHosts('default', failing(input)), { message: 'the source broke' });
        await assert.rejects(store.importHosts('new', failing(input)), { message: 'the source broke' });

        // The number before the rows: Node lays out the difference of long lists at a price that grows with its square.
        const [kept, ...others] = await rows(store.hosts, [workspace.id]);
        assert.equal(others.length, 0);
        assert.deepEqual(kept, host);
        assert.deepEqual(names(await rows(store.workspaces, [])), ['default']);
    },

    async 'updates the host that has the address, with the fields that are given'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        await store.importHosts('default', each([{ address: fullHost.address, os_name: '', comments: null, state: 'alive' }]));
        const [updated, ...others] = await rows(store.hosts, [workspace.id]);
        assert.ok(updated !== undefined);

        assert.deepEqual(others, []);
        assert.ok(updated.updated_at >= host.updated_at);
        assert.deepEqual(updated, { ...host, os_name: '', comments: null, state: 'alive', updated_at: updated.updated_at });
    },

    async 'takes the same address twice in one import for one host'({ store }) {
        const { workspace, hosts } = await store.importHosts(
            'default',
            each([
                { address: '192.0.2.7', name: 'first', os_name: 'Linux', services: [https] },
                { address: '192.0.2.7', name: 'second', services: [dns, { ...https, state: 'closed' }] },
            ]),
        );
        const [host, ...others] = await rows(store.hosts, [workspace.id]);

        assert.deepEqual(others, []);
        assert.deepEqual([host?.name, host?.os_name, host?.service_count, hosts.created], ['second', 'Linux', 2, 1]);
    },

    async 'takes the same address in two workspaces for two hosts'({ store }) {
        const one = await store.importHosts('one', each([fullHost]));
        const two = await store.importHosts('two', each([fullHost]));

        assert.equal((await rows(store.hosts, [one.workspace.id])).length, 1);
        assert.equal((await rows(store.hosts, [two.workspace.id])).length, 1);
    },

    async 'keeps two imports at the same time apart'({ store }) {
        const input = manyHosts().slice(0, 50);
        const [summary] = await Promise.all([store.importHosts('default', each(input)), store.importHosts('default', each(input))]);

        assert.equal((await rows(store.hosts, [summary.workspace.id])).length, input.length);
    },

    async 'counts the services of a host'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        await store.importHosts('default', each([{ ...fullHost, services: [https, { ...https, port: 8443 }] }, { address: '192.0.2.7' }]));
        const hosts = await rows(store.hosts, [workspace.id]);

        assert.equal(host.service_count, 2);
        assert.deepEqual(
            hosts.map(({ service_count }) => service_count),
            [3, 0],
        );
    },

    async 'says how much an import made and updated'({ store }) {
        const first = await store.importHosts('lab', each([{ ...fullHost, services: [dns] }]));
        const second = await store.importHosts('lab', each([{ ...fullHost, services: [dns, https] }, { address: '192.0.2.7' }]));

        assert.deepEqual(
            [first.hosts, first.services],
            [
                { created: 1, updated: 0 },
                { created: 1, updated: 0 },
            ],
        );
        assert.deepEqual(
            [second.hosts, second.services],
            [
                { created: 1, updated: 1 },
                { created: 1, updated: 1 },
            ],
        );
        assert.deepEqual(second.workspace, await store.ensureWorkspace('lab'));
    },

    async 'makes the workspace of an empty import'({ store }) {
        const { workspace, hosts, services } = await store.importHosts('empty', each([]));

        assert.deepEqual(await store.workspaces.get([], workspace.id), workspace);
        assert.deepEqual(
            [hosts, services],
            [
                { created: 0, updated: 0 },
                { created: 0, updated: 0 },
            ],
        );
    },
};

/** What it leaves behind in a store that shows services. */
const serviceLaws: Laws<InventoryFixture> = {
    async 'finds a service by its port and protocol'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        await store.importHosts(
            'default',
            each([
                {
                    ...fullHost,
                    services: [
                        { ...dns, proto: 'udp' },
                        { ...https, state: 'closed', info: 'x' },
                    ],
                },
            ]),
        );
        const found = await rows(present(store.services), [workspace.id, host.id]);

        assert.deepEqual(
            found.map(({ port, proto, state, name, info }) => ({ port, proto, state, name, info })),
            [dns, { ...https, state: 'closed', info: 'x' }, { ...dns, proto: 'udp' }],
        );
        assert.ok(found.every(({ host_id, created_at, updated_at }) => host_id === host.id && updated_at >= created_at));
    },

    async 'imports no service when the source fails half-way'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const failed = store.importHosts('default', failing([{ ...fullHost, services: [dns] }, ...manyHosts()]));
        await assert.rejects(failed, { message: 'the source broke' });

        const found = await rows(present(store.services), [workspace.id, host.id]);
        assert.deepEqual(
            found.map(({ port }) => port),
            [https.port],
        );
    },
};

/** Laws of `InventoryWriter`. */
export const importGroups: readonly LawGroup<InventoryFixture, InventoryAbility>[] = [
    { needs: ['imports'], laws: importLaws },
    { needs: ['imports', 'services'], laws: serviceLaws },
    {
        needs: ['imports', 'services', 'notes', 'vulns'],
        laws: {
            async 'counts the notes and vulnerabilities of a host'(fixture) {
                const lists = await knownLists(fixture);
                const notes = present(lists.find(({ name }) => name === 'notes'));
                const vulns = present(lists.find(({ name }) => name === 'vulns'));
                const [workspaceId = 0, hostId = 0] = notes.path;
                const host = await fixture.store.hosts.get([workspaceId], hostId);

                assert.deepEqual([host?.note_count, host?.vuln_count], [notes.known.length, vulns.known.length]);
                assert.deepEqual([notes.known.length, vulns.known.length], [2, 1]);
            },
        },
    },
    {
        lacks: 'imports',
        laws: {
            async 'has no half of an import'({ store }) {
                const { ensureWorkspace, importHosts }: Partial<InventoryWriter> = store;
                assert.deepEqual([ensureWorkspace, importHosts], [undefined, undefined]);
            },
        },
    },
];

async function* failing<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
    throw new Error('the source broke');
}
