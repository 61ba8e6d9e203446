import assert from 'node:assert/strict';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, each, type InventoryFixture, type InventoryLaws, nextMillisecond, rows } from './fixture.ts';

const expiringLaws: Laws<InventoryFixture> = {
    async 'removes the hosts that no import has seen for a while, with all below them'({ store }) {
        const expireHosts = present(store.expireHosts);
        const gone = { address: '192.0.2.1', services: [dns] };
        const { id } = (await store.importHosts('default', each([gone, { address: '192.0.2.2' }]))).workspace;
        const [first] = await rows(store.hosts, [id]);
        // By the store's own clock.
        const notSeenSince = new Date(present(first).updated_at.getTime() + 1);
        await nextMillisecond();
        await store.importHosts('default', each([{ address: '192.0.2.2' }, { address: '192.0.2.1', state: 'down', if_known: true }]));

        assert.deepEqual(await expireHosts('default', { notSeenSince, dryRun: true }), { hosts: 1 });
        assert.equal((await rows(store.hosts, [id])).length, 2);
        assert.deepEqual(await expireHosts('default', { notSeenSince }), { hosts: 1 });
        assert.deepEqual(
            (await rows(store.hosts, [id])).map(({ address }) => address),
            ['192.0.2.2'],
        );
        assert.deepEqual(await rows(present(store.services), [id, present(first).id]), []);
        assert.deepEqual(await expireHosts('default', { notSeenSince }), { hosts: 0 });
        await assert.rejects(async () => expireHosts('other', { notSeenSince }), { code: 'NOT_FOUND' });

        const { hosts, services } = await store.importHosts('default', each([gone]));
        assert.deepEqual([hosts.new, services.new], [1, 1]);
    },
};

const removingLaws: Laws<InventoryFixture> = {
    async 'removes the hosts of an address, of a range or all, with all below them'({ store }) {
        const removeHosts = present(store.removeHosts);
        const input = ['192.0.2.1', '192.0.2.2', '192.0.2.9', '2001:db8::1'].map((address) => ({ address, services: [dns] }));
        const { id } = (await store.importHosts('default', each(input))).workspace;
        await store.importHosts('other', each(input));
        const [first] = await rows(store.hosts, [id]);
        const left = async (): Promise<string[]> => (await rows(store.hosts, [id])).map(({ address }) => address);

        const address = { first: '192.0.2.0', last: '192.0.2.2' };
        assert.deepEqual(await removeHosts('default', { address, dryRun: true }), { hosts: 2 });
        assert.equal((await left()).length, 4);
        assert.deepEqual(await removeHosts('default', { address }), { hosts: 2 });
        assert.deepEqual(await left(), ['192.0.2.9', '2001:db8::1']);
        assert.deepEqual(await rows(present(store.services), [id, present(first).id]), []);
        assert.deepEqual(await removeHosts('default', { address: { first: '2001:db8::1', last: '2001:db8::1' } }), { hosts: 1 });
        assert.deepEqual(await removeHosts('default', {}), { hosts: 1 });
        assert.deepEqual(await left(), []);

        const others = (await rows(store.workspaces, [])).filter(({ name }) => name === 'other');
        assert.equal((await rows(store.hosts, [present(others[0]).id])).length, 4);
        await assert.rejects(async () => removeHosts('neither', {}), { code: 'NOT_FOUND' });
        const { hosts, services } = await store.importHosts('default', each(input));
        assert.deepEqual([hosts.new, services.new], [4, 4]);
    },

    async 'removes a workspace with all that is in it'({ store }) {
        const removeWorkspace = present(store.removeWorkspace);
        const input = [{ address: '192.0.2.1', services: [dns] }, { address: '192.0.2.2' }];
        await store.importHosts('default', each(input));
        const { id } = (await store.importHosts('other', each(input))).workspace;
        const [first] = await rows(store.hosts, [id]);

        assert.deepEqual(await removeWorkspace('other'), { hosts: 2 });
        assert.deepEqual(
            (await rows(store.workspaces, [])).map(({ name }) => name),
            ['default'],
        );
        assert.equal(await store.workspaces.get([], id), null);
        assert.deepEqual(await rows(store.hosts, [id]), []);
        assert.equal(await store.hosts.get([id], present(first).id), null);
        await assert.rejects(async () => removeWorkspace('other'), { code: 'NOT_FOUND' });

        const again = await store.importHosts('other', each(input));
        assert.deepEqual([again.hosts.new, again.services.new, again.workspace.id === id], [2, 1, false]);
    },
};

/** Laws of stores from which hosts and workspaces can be removed. */
export const removalGroups: InventoryLaws = [
    { needs: ['imports', 'services', 'expires'], laws: expiringLaws },
    { needs: ['imports', 'services', 'removes'], laws: removingLaws },
];
