import assert from 'node:assert/strict';
import type { Collection } from '../../lib/inventory/store.ts';
import type { Laws } from './contract-test.ts';
import { batches, each, fullHost, https, type InventoryFixture, MANY, manyHosts, oneHost, present, rows } from './inventory-fixture.ts';

const BEYOND_INT32 = [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, -1];

/** What the collections show. */
export const readingLaws: Laws<InventoryFixture> = {
    async 'has the workspace default from the start'({ store }) {
        const [workspace] = await rows(store.workspaces, []);

        assert.equal(workspace?.name, 'default');
        assert.deepEqual(await store.workspaces.get([], workspace.id), workspace);
    },

    async 'lists rows in ascending id, each once'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const ids = (await rows(store.hosts, [workspace.id])).map(({ id }) => id);

        assert.equal(new Set(ids).size, MANY);
        assert.ok(
            ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? 0)),
            'ids ascend',
        );
    },

    async 'gives a long list in batches'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const sizes = (await batches(store.hosts, [workspace.id])).map(({ length }) => length);

        assert.ok(sizes.length > 1, `${MANY} hosts came in ${sizes.length} batch`);
        assert.equal(
            sizes.reduce((sum, size) => sum + size, 0),
            MANY,
        );
    },

    async 'ends the reading when its signal aborts'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const controller = new AbortController();
        let seen = 0;
        await untilAborted(async () => {
            for await (const _batch of store.hosts.list([workspace.id], { signal: controller.signal })) {
                seen += 1;
                controller.abort();
            }
        });

        assert.equal(seen, 1);
    },

    async 'reads nothing when the signal was aborted before'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        let seen = 0;
        await untilAborted(async () => {
            for await (const batch of store.hosts.list([workspace.id], { signal: AbortSignal.abort() })) {
                seen += batch.length;
            }
        });

        assert.equal(seen, 0);
    },

    async 'frees what a reading held when it ends early'({ store, openReads }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const controller = new AbortController();
        for await (const _batch of store.hosts.list([workspace.id])) {
            break;
        }
        await untilAborted(async () => {
            for await (const _batch of store.hosts.list([workspace.id], { signal: controller.signal })) {
                controller.abort();
            }
        });

        assert.equal((await openReads?.()) ?? 0, 0);
        assert.equal((await rows(store.hosts, [workspace.id])).length, MANY);
    },

    async 'shows a host only below its own workspace'({ store }) {
        const { host } = await oneHost(store, fullHost);
        const other = await store.ensureWorkspace('other');

        assert.equal(await store.hosts.get([other.id], host.id), null);
        assert.deepEqual(await rows(store.hosts, [other.id]), []);
        assert.equal(await store.hosts.get([other.id + 1000], host.id), null);
        assert.deepEqual(await rows(store.hosts, [other.id + 1000]), []);
    },

    async 'shows a service only below its own host and workspace'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const { host: otherHost } = await oneHost(store, { address: '192.0.2.7' });
        const other = await store.ensureWorkspace('other');
        const services = present(store.services);
        const [service] = await rows(services, [workspace.id, host.id]);
        assert.ok(service !== undefined);

        assert.deepEqual(await services.get([workspace.id, host.id], service.id), service);
        for (const wrong of [
            [workspace.id, otherHost.id],
            [other.id, host.id],
        ]) {
            assert.equal(await services.get(wrong, service.id), null);
            assert.deepEqual(await rows(services, wrong), []);
        }
    },

    async 'takes ids beyond 32 bits for unknown, not for an error'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        for (const id of BEYOND_INT32) {
            assert.equal(await store.workspaces.get([], id), null);
            assert.equal(await store.hosts.get([workspace.id], id), null);
            assert.equal(await store.hosts.get([id], host.id), null);
            assert.deepEqual(await rows(store.hosts, [id]), []);
        }
    },

    async 'shows notes, sessions and vulnerabilities only below their own parents'({ store, add }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const { host: otherHost } = await oneHost(store, { address: '192.0.2.7' });
        const [service] = await rows(present(store.services), [workspace.id, host.id]);
        if (add === undefined || service === undefined) {
            return;
        }

        const added: [Collection<{ id: number }> | undefined, number, number[]][] = [
            [store.notes, await add.note(host.id), []],
            [store.sessions, await add.session(host.id), []],
            [store.vulns, await add.vuln(service.id), [service.id]],
        ];
        for (const [collection, id, below] of added) {
            const rightPath = [workspace.id, host.id, ...below];
            const wrongPath = [workspace.id, otherHost.id, ...below];
            assert.equal((await present(collection).get(rightPath, id))?.id, id);
            assert.equal((await rows(present(collection), rightPath)).length, 1);
            assert.equal(await present(collection).get(wrongPath, id), null);
            assert.deepEqual(await rows(present(collection), wrongPath), []);
        }
    },

    async 'counts the notes and vulnerabilities of a host'({ store, add }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const [service] = await rows(present(store.services), [workspace.id, host.id]);
        if (add === undefined || service === undefined) {
            return;
        }

        await add.note(host.id);
        await add.note(host.id);
        await add.vuln(service.id);
        const counted = await store.hosts.get([workspace.id], host.id);

        assert.deepEqual([counted?.note_count, counted?.vuln_count], [2, 1]);
    },
};

/** An aborted reading may end or reject; it must do either. */
async function untilAborted(reading: () => Promise<void>): Promise<void> {
    try {
        await reading();
    } catch (error) {
        assert.equal((error as Error).name, 'AbortError');
    }
}
