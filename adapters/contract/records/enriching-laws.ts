import assert from 'node:assert/strict';
import type { Laws } from '../announce.ts';
import { dns, each, fullHost, https } from '../inventory/fixture.ts';
import { all, FIRST, manyRecords, type RecordStoreFixture, record, SECOND, seenIn } from './fixture.ts';

const enrich = { workspace: 'default' };
const opened = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null };

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

        assert.deepEqual(
            hosts.map(({ address, name, state, service_count, created_at, updated_at }) => [
                address,
                name,
                state,
                service_count,
                created_at,
                updated_at,
            ]),
            [
                ['192.0.2.7', 'www.example.com', 'alive', 2, FIRST, FIRST],
                ['2001:db8::7', '2001:db8::7', 'alive', 1, FIRST, FIRST],
            ],
        );
        assert.deepEqual(
            services['192.0.2.7']?.map(({ port, proto, state, name, info }) => ({ port, proto, state, name, info })),
            [opened, { ...opened, port: 8443 }],
        );
        assert.equal(services['2001:db8::7']?.length, 1);
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

        assert.deepEqual(
            hosts.map(({ address, service_count }) => [address, service_count]),
            [['192.0.2.7', 1]],
        );
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

/** What a store does that enriches none. */
export const notEnrichingLaws: Laws<RecordStoreFixture> = {
    async 'refuses to enrich where it cannot'({ store }) {
        await assert.rejects(store.add([record()], { enrich }), { name: 'ScanwireError', code: 'MISCONFIGURED' });
        assert.deepEqual([store.enriches, await all(store)], [false, []]);
    },
};
