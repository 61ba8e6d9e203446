import assert from 'node:assert/strict';
import { compareDeletions, type Deletion, type DeletionSelection } from '../../../lib/inventory/deletions.ts';
import type { Collection } from '../../../lib/inventory/store.ts';
import { ids, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, each, failing, https, type InventoryFixture, type InventoryLaws, nextMillisecond, rows } from './fixture.ts';

type Deleting = Pick<Collection<{ readonly id: number }>, 'deletions'> | undefined;

/** What a store tells of a collection. By default all that it knows. */
async function deleted(
    collection: Deleting,
    path: readonly number[],
    selection: DeletionSelection = { since: new Date(0) },
): Promise<Deletion[]> {
    const told: Deletion[] = [];
    for await (const batch of present(collection?.deletions).select(path, selection)) {
        told.push(...batch);
    }
    return told;
}

const ROOM = { address: '192.0.2.1', services: [dns, https] };
const HOSTS = [ROOM, ...Array.from({ length: 6 }, (_, index) => ({ address: `192.0.2.${index + 2}` }))];

const deletingLaws: Laws<InventoryFixture> = {
    async 'tells which hosts were removed, in the order in which they were'({ store }) {
        const { id } = (await store.importHosts('default', each(HOSTS))).workspace;
        const listed = await rows(store.hosts, [id]);
        assert.deepEqual(await deleted(store.hosts, [id]), []);
        const known = await present(store.hosts.deletions).since();
        for (const { address } of listed.toReversed().slice(0, 4)) {
            await nextMillisecond();
            await present(store.removeHosts)('default', { address: { first: address, last: address } });
        }

        const told = await deleted(store.hosts, [id]);
        assert.deepEqual(ids(told), ids(listed).toReversed().slice(0, 4));
        assert.deepEqual(told, told.toSorted(compareDeletions));
        assert.ok(told.every(({ deleted_at }) => deleted_at instanceof Date && deleted_at >= known));
        const { deleted_at: since } = present(told[1]);
        assert.deepEqual(await deleted(store.hosts, [id], { since }), told.slice(1));
        assert.deepEqual(await deleted(store.hosts, [id], { since, limit: 2 }), told.slice(1, 3));
        assert.deepEqual(await deleted(store.hosts, [id], { since, after: present(told[2]), limit: 2 }), told.slice(3));
        assert.deepEqual(await deleted(store.hosts, [id + 1000]), []);
        assert.deepEqual(await deleted(store.hosts, [2 ** 40]), []);
    },

    async 'tells removed hosts in pages, though all of them were removed at once'({ store }) {
        const { id } = (await store.importHosts('default', each(HOSTS))).workspace;
        const listed = ids(await rows(store.hosts, [id]));
        await present(store.removeHosts)('default', {});

        const read: Deletion[] = [];
        for (let page: Deletion[] | null = null; page === null || page.length === 3; read.push(...page)) {
            const last = read.at(-1);
            page = await deleted(store.hosts, [id], { since: new Date(0), limit: 3, ...(last && { after: last }) });
        }
        assert.deepEqual(
            ids(read).toSorted((one, other) => one - other),
            listed,
        );
    },

    async 'tells removed workspaces, and nothing of what was in them besides'({ store }) {
        const { id } = (await store.importHosts('other', each(HOSTS))).workspace;
        await store.importHosts('default', each(HOSTS));
        const before = ids(await deleted(store.workspaces, []));
        await present(store.removeWorkspace)('other');

        assert.deepEqual(ids(await deleted(store.workspaces, [])), [...before, id]);
    },

    async 'tells nothing of what was never shown'({ store }) {
        const { id } = (await store.importHosts('default', each(HOSTS))).workspace;
        await assert.rejects(store.importHosts('default', failing([{ address: '192.0.2.99' }])));
        await assert.rejects(store.importHosts('new', failing([ROOM])));

        assert.deepEqual([await deleted(store.hosts, [id]), await deleted(store.workspaces, [])], [[], []]);
    },
};

const replacingLaws: Laws<InventoryFixture> = {
    async 'tells what a replacement removes, of hosts that stay as well'({ store }) {
        const { id } = (await store.importHosts('default', each([ROOM, { address: '192.0.2.2', services: [dns] }]))).workspace;
        const [room, gone] = await rows(store.hosts, [id]);
        const host = present(room).id;
        const lost = (await rows(present(store.services), [id, host])).find(({ port }) => port === https.port);
        await store.importHosts('default', each([{ ...ROOM, services: [dns] }]), { replace: true });

        assert.deepEqual(ids(await deleted(store.hosts, [id])), [present(gone).id]);
        assert.deepEqual(ids(await deleted(store.services, [id, host])), [present(lost).id]);
        assert.deepEqual(await deleted(store.services, [id, present(gone).id]), []);
        if (store.workspaceServices !== undefined) {
            assert.deepEqual(ids(await deleted(store.workspaceServices, [id])), [present(lost).id]);
        }
    },
};

const dryLaws: Laws<InventoryFixture> = {
    async 'tells nothing of a dry run'({ store }) {
        const { id } = (await store.importHosts('default', each(HOSTS))).workspace;
        await store.importHosts('default', each([{ address: '192.0.2.99' }]), { replace: true, dryRun: true });

        assert.deepEqual(await deleted(store.hosts, [id]), []);
    },
};

const findingLaws: Laws<InventoryFixture> = {
    async 'tells the notes and vulnerabilities that a replacement removes'({ store }) {
        const found = { ntype: 'uptime', data: {} };
        const vuln = { name: 'CVE-2026-0001', info: null, port: dns.port, proto: dns.proto };
        const [one, other] = [{ ...ROOM, notes: [found], vulns: [vuln] }, ROOM];
        const { id } = (await store.importHosts('default', each([one]))).workspace;
        const host = present((await rows(store.hosts, [id]))[0]).id;
        const service = (await rows(present(store.services), [id, host])).find(({ port }) => port === vuln.port);
        const paths = [
            [store.notes, [id, host]],
            [store.workspaceNotes, [id]],
            [store.vulns, [id, host, present(service).id]],
            [store.hostVulns, [id, host]],
            [store.workspaceVulns, [id]],
        ] as const;
        await store.importHosts('default', each([other]), { replace: true });

        for (const [collection, path] of paths.filter(([of]) => of?.deletions !== undefined)) {
            assert.equal((await deleted(collection, path)).length, 1, `below ${path}`);
        }
    },
};

const movingLaws: Laws<InventoryFixture> = {
    async 'tells a host that was moved where it was, until it is there again'({ store }) {
        const moveHosts = present(store.moveHosts);
        const from = (await store.importHosts('default', each(HOSTS))).workspace;
        const to = await store.ensureWorkspace('other');
        const host = present((await rows(store.hosts, [from.id]))[0]).id;
        const lost = (await rows(present(store.services), [from.id, host])).find(({ port }) => port === https.port);
        await moveHosts([host], 'other');
        assert.deepEqual([ids(await deleted(store.hosts, [from.id])), ids(await deleted(store.hosts, [to.id]))], [[host], []]);

        await store.importHosts('other', each([{ ...ROOM, services: [dns] }]), { replace: true });
        await moveHosts([host], 'default');
        assert.deepEqual([ids(await deleted(store.hosts, [from.id])), ids(await deleted(store.hosts, [to.id]))], [[], [host]]);
        assert.deepEqual(ids(await deleted(store.services, [from.id, host])), [present(lost).id], 'it goes with its host');
    },
};

/** Laws of stores that tell what was deleted. */
export const deletionGroups: InventoryLaws = [
    { needs: ['imports', 'tellsDeletions', 'removes'], laws: deletingLaws },
    { needs: ['imports', 'tellsDeletions', 'replaces', 'services'], laws: replacingLaws },
    { needs: ['imports', 'tellsDeletions', 'replaces', 'dryRuns'], laws: dryLaws },
    { needs: ['imports', 'tellsDeletions', 'replaces', 'keepsFindings', 'services', 'notes', 'vulns'], laws: findingLaws },
    { needs: ['imports', 'tellsDeletions', 'replaces', 'moves', 'services'], laws: movingLaws },
];
