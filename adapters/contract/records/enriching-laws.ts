import assert from 'node:assert/strict';
import { assertFields, only, present } from '../assertions.ts';
import { dns, each, fullHost, https } from '../inventory/fixture.ts';
import type { Laws } from '../register-laws.ts';
import { all, FIRST, manyRecords, type RecordStoreFixture, record, SECOND, seenIn } from './fixture.ts';

const enrich = { workspace: 'default' };

/** What records do to the inventory of a store that enriches one. */
export const enrichingLaws: Laws<Required<RecordStoreFixture>> = {
    async 'makes a host for an address and a service for a port'({ store, setTime, inventory }) {
        setTime(FIRST);
        await store.add(
            [
                record({ host: '192.0.2.7' }),
                record(),
                record({ port: 8443 }),
                record({ ip: '2001:DB8::7', host: '2001:db8::7' }),
                record({ ip: '2001:db8:0::7', host: '2001:db8::7', path: '/again' }),
            ],
            { enrich },
        );
        const { hosts, services } = await seenIn(inventory, 'default');

        const made = { state: 'alive', created_at: FIRST, updated_at: FIRST } as const;
        const [v4, v6, ...others] = hosts;
        assertFields(v4, { ...made, address: '192.0.2.7', name: 'www.example.com', service_count: 2 });
        assertFields(v6, { ...made, address: '2001:db8::7', name: '2001:db8::7', service_count: 1 });
        const [first, second, ...more] = services['192.0.2.7'] ?? [];
        assertFields(first, https);
        assertFields(second, { ...https, port: 8443 });
        assert.equal(services['2001:db8::7']?.length, 1);
        assert.deepEqual([others, more], [[], []]);
    },

    async 'leaves the inventory alone unless asked to enrich it'({ store, inventory }) {
        await store.add([record()]);

        assert.deepEqual((await seenIn(inventory, 'default')).hosts, []);
    },

    async 'enriches a workspace that it makes'({ store, inventory }) {
        await store.add([record()], { enrich: { workspace: 'web' } });

        assert.equal((await seenIn(inventory, 'web')).hosts.length, 1);
        assert.deepEqual((await seenIn(inventory, 'default')).hosts, []);
    },

    async 'keeps what is known of a host and a service'({ store, setTime, inventory }) {
        setTime(FIRST);
        const known = { ...https, state: 'closed', name: '', info: 'nginx' } as const;
        await inventory.importHosts('default', each([{ ...fullHost, services: [dns, known] }]));
        const before = await seenIn(inventory, 'default');
        setTime(SECOND);
        await store.add([record({ ip: fullHost.address })], { enrich });
        const { hosts, services } = await seenIn(inventory, 'default');
        const [domain, web] = before.services[fullHost.address] ?? [];

        assert.deepEqual(hosts, [{ ...before.hosts[0], updated_at: SECOND }]);
        assert.deepEqual(services[fullHost.address], [domain, { ...web, state: 'open', name: 'https', updated_at: SECOND }]);
    },

    async 'changes nothing with records that come again'({ store, setTime, inventory }) {
        setTime(FIRST);
        await store.add(manyRecords(5), { enrich });
        await inventory.importHosts('default', each([{ address: '10.0.0.1', services: [{ ...https, name: 'ssl/http' }] }]));
        const before = await seenIn(inventory, 'default');
        setTime(SECOND);
        await store.add(manyRecords(5), { enrich });

        assert.equal(before.hosts.length, 5);
        assert.deepEqual(await seenIn(inventory, 'default'), before);
    },

    async 'enriches with records that were there before'({ store, inventory }) {
        await store.add([record()]);
        await store.add([record()], { enrich });
        const { hosts, services } = await seenIn(inventory, 'default');

        assertFields(only(hosts), { address: '192.0.2.7', service_count: 1 });
        assert.equal(services['192.0.2.7']?.length, 1);
    },

    async 'makes a host and a service of several batches at the same time once'({ store, inventory }) {
        const records = manyRecords(100);
        const others = records.map((one) => ({ ...one, path: '/other' })).reverse();
        const imported = inventory.importHosts('default', each(records.map(({ ip }) => ({ address: ip, services: [dns] }))));
        await Promise.all([store.add(records, { enrich }), store.add(others, { enrich }), imported]);
        const { hosts, services } = await seenIn(inventory, 'default');

        assert.equal(hosts.length, records.length);
        assert.ok(hosts.every(({ address, service_count }) => service_count === 2 && services[address]?.length === 2));
    },
};

const inside = record({ ip: '10.0.0.7' });
const outside = record({ ip: '203.0.113.5' });

async function limit({ inventory }: Required<RecordStoreFixture>): Promise<void> {
    await present(inventory.updateWorkspace)('default', { boundary: '10.0.0.0/8', limit_to_network: true });
}

/** What a store does that enriches an inventory with boundaries. */
export const boundedLaws: Laws<Required<RecordStoreFixture>> = {
    async 'makes no host outside of the boundary of a workspace'(fixture) {
        await limit(fixture);
        await fixture.store.add([outside, inside], { enrich });
        const { hosts, services } = await seenIn(fixture.inventory, 'default');

        assertFields(only(hosts), { address: inside.ip, service_count: 1 });
        assert.equal(services[inside.ip]?.length, 1);
    },

    async 'changes no host outside of the boundary of a workspace'(fixture) {
        const { store, inventory, setTime } = fixture;
        setTime(FIRST);
        await store.add([outside], { enrich });
        const before = await seenIn(inventory, 'default');
        await limit(fixture);
        setTime(SECOND);
        await store.add([record({ ip: outside.ip, port: 8443 }), record({ ip: outside.ip, path: '/new' })], { enrich });

        assert.equal(before.hosts.length, 1);
        assert.deepEqual(await seenIn(inventory, 'default'), before);
    },

    async 'stores the record of a host outside of the boundary'(fixture) {
        await limit(fixture);
        const added = await fixture.store.add([outside, inside], { enrich });

        assert.deepEqual(
            added.map(({ isNew }) => isNew),
            [true, true],
        );
        assert.deepEqual(
            (await all(fixture.store)).map((stored) => stored.record),
            [outside, inside],
        );
    },

    async 'says of which records the inventory took nothing'(fixture) {
        const { store } = fixture;
        const added = await store.add([outside], { enrich });
        await limit(fixture);
        const limited = await store.add([outside, inside, record({ ip: '2001:DB8::7' })], { enrich });
        const stored = await store.add([outside]);

        assert.deepEqual(
            [added, limited, stored].map((some) => some.map(({ refused }) => refused)),
            [[undefined], [true, undefined, true], [undefined]],
        );
    },
};

/** What a store does that enriches none. */
export const notEnrichingLaws: Laws<RecordStoreFixture> = {
    async 'refuses to enrich where it cannot'({ store }) {
        await assert.rejects(store.add([record()], { enrich }), { name: 'ScanwireError', code: 'MISCONFIGURED' });
        assert.deepEqual([store.enriches, await all(store)], [false, []]);
    },
};
