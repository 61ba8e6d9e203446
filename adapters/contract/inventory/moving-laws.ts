import assert from 'node:assert/strict';
import type { Workspace } from '../../../lib/inventory/resources.ts';
import type { Filters } from '../../../lib/inventory/selection.ts';
import type { Collection } from '../../../lib/inventory/store.ts';
import { assertFields, ids, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, each, https, type InventoryFixture, type InventoryLaws, nextMillisecond, rows } from './fixture.ts';

type Store = InventoryFixture['store'];

const ROOM = { address: '192.0.2.1', services: [dns, https] };

/** The workspaces `default`, which holds two hosts, and `other`, which holds another. */
async function twoWorkspaces(store: Store): Promise<readonly [from: Workspace, to: Workspace]> {
    const from = (await store.importHosts('default', each([ROOM, { address: '192.0.2.2' }]))).workspace;
    const to = (await store.importHosts('other', each([{ address: '192.0.2.9' }]))).workspace;
    return [from, to];
}

async function addresses({ hosts }: Store, { id }: Workspace): Promise<string[]> {
    return (await rows(hosts, [id])).map(({ address }) => address);
}

const movingLaws: Laws<InventoryFixture> = {
    async 'moves hosts into another workspace with their services'({ store }) {
        const moveHosts = present(store.moveHosts);
        const services = present(store.services);
        const [from, to] = await twoWorkspaces(store);
        const [host, second] = await rows(store.hosts, [from.id]);
        const { id } = present(host);
        const before = await rows(services, [from.id, id]);

        assert.deepEqual(await moveHosts([id], 'other'), { hosts: 1 });
        assert.deepEqual([await addresses(store, from), await addresses(store, to)], [['192.0.2.2'], ['192.0.2.1', '192.0.2.9']]);
        assert.equal(await store.hosts.get([from.id], id), null);
        const { updated_at: _at, ...same } = present(host);
        assertFields(await store.hosts.get([to.id], id), { ...same, workspace_id: to.id });
        assert.deepEqual(await rows(services, [from.id, id]), []);
        assert.deepEqual(ids(await rows(services, [to.id, id])), ids(before));

        await assert.rejects(moveHosts([id, present(second).id], 'default'), { code: 'CONFLICT' });
        assert.deepEqual(await moveHosts([id, id], 'default'), { hosts: 1 });
        assert.deepEqual(await addresses(store, from), ['192.0.2.1', '192.0.2.2']);
        const again = await store.importHosts('default', each([ROOM]));
        assert.deepEqual([again.hosts.unchanged, again.services.unchanged], [1, 2]);
        const { hosts } = await store.importHosts('other', each([ROOM]));
        assert.equal(hosts.new, 1);
    },

    async 'refuses by name addresses that the workspace holds already, and moves none'({ store }) {
        const moveHosts = present(store.moveHosts);
        const [from, to] = await twoWorkspaces(store);
        await store.importHosts('other', each([{ address: '192.0.2.2' }]));
        const before = [await rows(store.hosts, [from.id]), await rows(store.hosts, [to.id])];
        const third = (await store.importHosts('third', each([{ address: '192.0.2.1' }]))).workspace;
        const [twin] = await rows(store.hosts, [third.id]);

        await assert.rejects(moveHosts(ids(await rows(store.hosts, [from.id])), 'other'), {
            code: 'CONFLICT',
            message: 'The workspace "other" holds 192.0.2.2 already',
        });
        await assert.rejects(moveHosts([present(before[0]?.[0]).id, present(twin).id], 'other'), {
            code: 'CONFLICT',
            message: /192\.0\.2\.1/,
        });
        assert.deepEqual([await rows(store.hosts, [from.id]), await rows(store.hosts, [to.id])], before);
    },

    async 'moves nothing for a host or a workspace that is not there'({ store }) {
        const moveHosts = present(store.moveHosts);
        const [from, to] = await twoWorkspaces(store);
        const [host] = await rows(store.hosts, [from.id]);
        const { id } = present(host);

        await assert.rejects(moveHosts([id, id + 1000], 'other'), {
            code: 'NOT_FOUND',
            message: `There is no host with the id ${id + 1000}`,
        });
        await assert.rejects(moveHosts([id], 'neither'), { code: 'NOT_FOUND', message: 'Unknown workspace "neither"' });
        await assert.rejects(async () => moveHosts([], 'other'), { code: 'INVALID_INPUT', field: 'ids' });
        assert.deepEqual([await addresses(store, from), await addresses(store, to)], [['192.0.2.1', '192.0.2.2'], ['192.0.2.9']]);
        assert.equal((await rows(store.workspaces, [])).length, 2);
    },
};

const childLaws: Laws<InventoryFixture> = {
    async 'moves the notes, sessions and vulnerabilities of a host with it'({ store, add }) {
        const [from, to] = await twoWorkspaces(store);
        const [host] = await rows(store.hosts, [from.id]);
        const { id } = present(host);
        const [service] = await rows(present(store.services), [from.id, id]);
        await present(add?.note)(id);
        await present(add?.session)(id);
        await present(add?.vuln)(present(service).id);
        const path = [id, present(service).id];

        await present(store.moveHosts)([id], 'other');
        for (const [collection, below] of [
            [store.notes, [id]],
            [store.sessions, [id]],
            [store.vulns, path],
        ] as readonly (readonly [Collection<{ readonly id: number }>, readonly number[]])[]) {
            assert.equal((await rows(present(collection), [from.id, ...below])).length, 0);
            assert.equal((await rows(present(collection), [to.id, ...below])).length, 1);
        }
        assertFields((await rows(present(store.notes), [to.id, id]))[0], { workspace_id: to.id, host_id: id });
        assertFields(await store.hosts.get([to.id], id), { note_count: 1, vuln_count: 1, service_count: 2 });
    },
};

const findingLaws: Laws<InventoryFixture> = {
    async 'finds the notes and vulnerabilities of a moved host again by the next import'({ store }) {
        const to = await store.ensureWorkspace('other');
        const found = { ...ROOM, notes: [{ ntype: 'uptime', data: { days: 7 } }], vulns: [{ name: 'CVE-2026-0001', info: null }] };
        // Several times, so that the other workspace has seen fewer imports.
        for (const day of [1, 2, 3]) {
            await store.importHosts('default', each([{ ...found, notes: [{ ntype: `uptime ${day}`, data: {} }, ...found.notes] }]));
        }
        const { id } = await store.ensureWorkspace('default');
        const [host] = await rows(store.hosts, [id]);
        await present(store.moveHosts)([present(host).id], 'other');

        const { hosts, services, notes, vulns } = await store.importHosts('other', each([found]));
        assert.deepEqual([hosts.unchanged, services.unchanged, notes?.unchanged, vulns?.unchanged], [1, 2, 1, 1]);
        assertFields((await rows(store.hosts, [to.id]))[0], { note_count: 4, vuln_count: 1, service_count: 2 });
    },
};

const changeLaws: Laws<InventoryFixture> = {
    async 'shows a moved host and its services among the changes of its new workspace, and of the other no more'({ store }) {
        const [from, to] = await twoWorkspaces(store);
        const [host] = await rows(store.hosts, [from.id]);
        const [last] = await rows(store.hosts, [to.id]);
        // By the store's own clock.
        const where: Filters = { updated_since: new Date(present(last).updated_at.getTime() + 1) };
        await nextMillisecond();
        const changed = async (collection: Collection<{ readonly id: number }> | undefined, { id }: Workspace): Promise<number[]> => {
            const found: number[] = [];
            for await (const batch of present(collection?.select)([id], { where })) {
                found.push(...ids(batch));
            }
            return found;
        };

        await present(store.moveHosts)([present(host).id], 'other');
        assert.deepEqual(await changed(store.hosts, to), [present(host).id]);
        assert.deepEqual(await changed(store.hosts, from), []);
        assert.equal((await changed(store.workspaceServices, to)).length, 2);
        assert.equal((await changed(store.workspaceServices, from)).length, 0);
    },
};

const sightingLaws: Laws<InventoryFixture> = {
    async 'takes a moved host for seen when it was seen before'({ store }) {
        const [from, to] = await twoWorkspaces(store);
        const seen = async ({ id }: Workspace, address: string): Promise<unknown> => {
            const found: { readonly address: string; readonly last_seen?: Date }[] = [];
            for await (const batch of present(store.hosts.select)([id], { extras: ['last_seen'] })) {
                found.push(...batch);
            }
            return found.find((one) => one.address === address)?.last_seen;
        };
        const before = await seen(from, ROOM.address);
        const [host] = await rows(store.hosts, [from.id]);
        await nextMillisecond();

        await present(store.moveHosts)([present(host).id], 'other');
        assert.deepEqual(await seen(to, ROOM.address), before);
    },
};

const boundaryLaws: Laws<InventoryFixture> = {
    async 'moves no host over the boundary of a workspace'({ store, add }) {
        const [from, to] = await twoWorkspaces(store);
        await present(add?.boundary)(to.id, '192.0.2.2-192.0.2.9');
        const [host, inside] = await rows(store.hosts, [from.id]);

        await assert.rejects(present(store.moveHosts)([present(inside).id, present(host).id], 'other'), {
            code: 'CONFLICT',
            message: 'The boundary of the workspace "other" leaves out 192.0.2.1',
        });
        assert.deepEqual(await addresses(store, from), ['192.0.2.1', '192.0.2.2']);
        assert.deepEqual(await present(store.moveHosts)([present(inside).id], 'other'), { hosts: 1 });
    },
};

const updatingLaws: Laws<InventoryFixture> = {
    async 'changes of a workspace what is said and nothing else'({ store }) {
        const updateWorkspace = present(store.updateWorkspace);
        const before = await store.ensureWorkspace('other');
        await nextMillisecond();

        const limited = await updateWorkspace('other', { boundary: ' 192.0.2.0/24, 2001:db8::1-2001:db8::9 ', limit_to_network: true });
        const { updated_at } = limited;
        assert.ok(updated_at > before.updated_at);
        const changed = { boundary: '192.0.2.0/24, 2001:db8::1-2001:db8::9', limit_to_network: true };
        assert.deepEqual(limited, { ...before, ...changed, updated_at });
        assert.deepEqual(await store.workspaces.get([], before.id), limited);
        assertFields(await updateWorkspace('other', { boundary: null }), { boundary: null, limit_to_network: true });
        assertFields(await updateWorkspace('other', { limit_to_network: false }), { boundary: null, limit_to_network: false });
        assertFields(await updateWorkspace('other', { boundary: '', limit_to_network: true }), { boundary: null, limit_to_network: true });

        const refused = { code: 'INVALID_INPUT', field: 'boundary' };
        await assert.rejects(async () => updateWorkspace('other', { boundary: '192.0.2.0/24, printer' }), refused);
        await assert.rejects(async () => updateWorkspace('neither', { limit_to_network: true }), { code: 'NOT_FOUND' });
        assertFields(await store.workspaces.get([], before.id), { boundary: null, limit_to_network: true });
    },
};

const renamingLaws: Laws<InventoryFixture> = {
    async 'renames a workspace with all that is in it, and gives its name away'({ store }) {
        const renameWorkspace = present(store.renameWorkspace);
        const [, before] = await twoWorkspaces(store);
        await nextMillisecond();

        const renamed = await renameWorkspace('other', ' lab 🧪 ');
        const { updated_at } = renamed;
        assert.ok(updated_at > before.updated_at);
        assert.deepEqual(renamed, { ...before, name: 'lab 🧪', updated_at });
        assert.deepEqual(await store.workspaces.get([], before.id), renamed);
        const seen = await store.importHosts('lab 🧪', each([{ address: '192.0.2.10' }]));
        assert.equal(seen.workspace.id, before.id);
        assert.deepEqual(await addresses(store, before), ['192.0.2.9', '192.0.2.10']);
        const another = await store.ensureWorkspace('other');
        assert.notEqual(another.id, before.id);
        assert.equal((await renameWorkspace('lab 🧪', 'third')).id, before.id);
    },

    async 'refuses a name that a workspace has, or that is none'({ store }) {
        const renameWorkspace = present(store.renameWorkspace);
        const [from, to] = await twoWorkspaces(store);
        for (const name of ['default', 'other']) {
            const taken = { code: 'CONFLICT', field: 'to', message: `There is a workspace "${name}" already` };
            await assert.rejects(async () => renameWorkspace('other', name), taken);
        }
        await assert.rejects(async () => renameWorkspace('other', ' '), { code: 'INVALID_INPUT', field: 'to' });
        await assert.rejects(async () => renameWorkspace('neither', 'lab'), { code: 'NOT_FOUND' });
        assert.deepEqual(await rows(store.workspaces, []), [from, to]);
    },
};

/** Laws of stores that move hosts, and that change or rename workspaces. */
export const movingGroups: InventoryLaws = [
    { needs: ['imports', 'moves', 'services'], laws: movingLaws },
    { needs: ['imports', 'moves', 'services', 'notes', 'sessions', 'vulns'], laws: childLaws },
    { needs: ['imports', 'moves', 'keepsFindings'], laws: findingLaws },
    { needs: ['imports', 'moves', 'changes', 'workspaceServices'], laws: changeLaws },
    { needs: ['imports', 'moves', 'sightings'], laws: sightingLaws },
    { needs: ['imports', 'moves', 'keepsBoundaries'], laws: boundaryLaws },
    { needs: ['imports', 'updatesWorkspaces'], laws: updatingLaws },
    { needs: ['imports', 'renames'], laws: renamingLaws },
];
