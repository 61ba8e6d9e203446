import assert from 'node:assert/strict';
import { type HostInput, newHost, type ServiceInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Service } from '../../../lib/inventory/resources.ts';
import type { InventoryWriter } from '../../../lib/inventory/store.ts';
import { assertFields, only, present, underWay } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import {
    dns,
    each,
    failing,
    fullHost,
    https,
    type InventoryFixture,
    type InventoryLaws,
    MANY,
    manyHosts,
    names,
    nextMillisecond,
    oneHost,
    rows,
} from './fixture.ts';
import { knownList } from './known-rows.ts';

const NONE = importCounts();

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

    async 'shows an import at once'({ store }) {
        const { workspace } = await oneHost(store, { ...fullHost, name: 'before' });
        const importing = underWay(store.importHosts('default', each([...manyHosts(), { ...fullHost, name: 'after' }])));
        while (!importing.ended()) {
            for await (const [first, ...others] of store.hosts.list([workspace.id])) {
                assert.deepEqual([first?.name, others.length > 0], first?.name === 'before' ? ['before', false] : ['after', true]);
                break;
            }
        }
        await importing.result;

        assert.equal((await rows(store.hosts, [workspace.id])).length, MANY + 1);
    },

    async 'updates the host that has the address, with the fields that are given'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        await store.importHosts('default', each([{ address: fullHost.address, os_name: '', comments: null, state: 'alive' }]));
        const updated = only(await rows(store.hosts, [workspace.id]));

        assert.ok(updated.updated_at >= host.updated_at);
        assert.deepEqual(updated, { ...host, os_name: '', comments: null, state: 'alive', updated_at: updated.updated_at });
    },

    async 'takes the same address twice in one import for one host'({ store }) {
        const input: HostInput[] = [
            { address: '192.0.2.7', name: 'first', os_name: 'Linux', services: [https] },
            { address: '192.0.2.7', name: 'second', services: [dns, { ...https, state: 'closed' }] },
        ];
        const { workspace, hosts } = await store.importHosts('default', each(input));

        assertFields(only(await rows(store.hosts, [workspace.id])), { name: 'second', os_name: 'Linux', service_count: 2 });
        assert.equal(hosts.new, 1);
    },

    async 'judges an address that is named twice by what all say together, so that the same again writes nothing'({ store }) {
        const input: HostInput[] = [
            {
                address: '192.0.2.7',
                name: 'first',
                state: 'alive',
                os_name: 'Linux',
                services: [https, dns],
                closed_ports: { tcp: [[1, 1000]] },
            },
            ...manyHosts(400).map((host) => ({ ...host, services: [dns] })),
            {
                address: '192.0.2.7',
                name: 'second',
                services: [{ ...https, name: 'other', info: null }],
                closed_ports: { tcp: [[1, 1000]] },
            },
            { address: '192.0.2.7', state: 'down', if_known: true },
            { address: manyHosts(1)[0]?.address ?? '', comments: 'again', services: [{ ...dns, state: 'filtered' }] },
        ];
        const first = await store.importHosts('default', each(input));
        const before = await rows(store.hosts, [first.workspace.id]);
        await nextMillisecond();
        const second = await store.importHosts('default', each(input));
        const after = await rows(store.hosts, [first.workspace.id]);

        assertFields(first, { hosts: { ...NONE, new: 401 }, services: { ...NONE, new: 402 } });
        assertFields(second, { hosts: { ...NONE, unchanged: 401 }, services: { ...NONE, unchanged: 402 } });
        assertFields(after[0], { name: 'second', os_name: 'Linux', state: 'down', service_count: 2 });
        assert.ok(after.every(({ updated_at }, index) => updated_at.getTime() === before[index]?.updated_at.getTime()));
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
        const counts = (await rows(store.hosts, [workspace.id])).map(({ service_count }) => service_count);

        assert.equal(host.service_count, 2);
        assert.deepEqual(counts, [3, 0]);
    },

    async 'says what has become of each host and service'({ store }) {
        const kept = { address: '192.0.2.8' };
        const first = await store.importHosts('lab', each([{ ...fullHost, state: 'alive', services: [dns] }, kept]));
        const more = { ...fullHost, state: 'alive', services: [dns, https] } as const;
        const closed = {
            ...fullHost,
            services: [
                { ...dns, state: 'closed' },
                { ...https, info: 'x' },
            ],
        } as const;
        const second = await store.importHosts('lab', each([more, { address: '192.0.2.7' }, kept]));
        const third = await store.importHosts('lab', each([closed, closed, { address: fullHost.address, name: 'other' }]));

        assertFields(first, { hosts: { ...NONE, new: 2 }, services: { ...NONE, new: 1 } });
        assertFields(second, { hosts: { ...NONE, new: 1, changed: 1, unchanged: 1 }, services: { ...NONE, new: 1, unchanged: 1 } });
        assertFields(third, {
            hosts: { ...NONE, gone: 1 },
            services: { ...NONE, changed: 1, gone: 1 },
        });
        assert.deepEqual(second.workspace, await store.ensureWorkspace('lab'));
    },

    async 'leaves a host that is so already as it is, the time of its change included'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns] });
        await nextMillisecond();
        const same = { address: fullHost.address, name: fullHost.name, comments: fullHost.comments };
        await store.importHosts(
            'default',
            each([{ ...fullHost, services: [{ ...dns, state: 'filtered' }] }, same, { address: host.address }]),
        );

        assert.deepEqual(await rows(store.hosts, [workspace.id]), [host]);
    },

    async 'moves the time of the change of a host with its fields and the number of its services'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        await nextMillisecond();
        await store.importHosts('default', each([{ ...fullHost, services: [dns] }]));
        const grown = only(await rows(store.hosts, [workspace.id]));
        await nextMillisecond();
        await store.importHosts('default', each([{ ...fullHost, info: null }]));
        const changed = only(await rows(store.hosts, [workspace.id]));

        assert.deepEqual(grown, { ...host, service_count: 1, updated_at: grown.updated_at });
        assert.ok(host.updated_at < grown.updated_at && grown.updated_at < changed.updated_at);
    },

    async 'makes no host of which nothing is said but for those who know it'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, state: 'alive' });
        const down = (address: string): HostInput => ({ address, state: 'down', if_known: true });
        const { hosts } = await store.importHosts('default', each([down(host.address), down('192.0.2.7'), down(host.address)]));
        const kept = only(await rows(store.hosts, [workspace.id]));

        assert.deepEqual(hosts, { ...NONE, gone: 1 });
        assert.deepEqual(kept, { ...host, state: 'down', updated_at: kept.updated_at });
    },

    async 'spends no id on what is there'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns] });
        await store.importHosts(
            'default',
            each([
                { ...fullHost, name: 'changed', services: [dns] },
                { ...fullHost, services: [dns] },
            ]),
        );
        await store.importHosts('default', each([{ ...fullHost, services: [dns, https] }, { address: '192.0.2.7' }]));

        assert.deepEqual(
            (await rows(store.hosts, [workspace.id])).map(({ id }) => id),
            [host.id, host.id + 1],
        );
    },

    async 'makes the workspace of an empty import'({ store }) {
        const summary = await store.importHosts('empty', each([]));

        assert.deepEqual(await store.workspaces.get([], summary.workspace.id), summary.workspace);
        assertFields(summary, { hosts: NONE, services: NONE });
    },
};

/** What it leaves behind in a store that shows services. */
const serviceLaws: Laws<InventoryFixture> = {
    async 'finds a service by its port and protocol'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        const [other, changed] = [{ ...dns, proto: 'udp' } as const, { ...https, state: 'closed', info: 'x' } as const];
        await store.importHosts('default', each([{ ...fullHost, services: [other, changed] }]));
        const found = await rows(present(store.services), [workspace.id, host.id]);

        assert.equal(found.length, 3);
        for (const [index, expected] of [dns, changed, other].entries()) {
            assertFields(found[index], { ...expected, host_id: host.id });
        }
        assert.ok(found.every(({ created_at, updated_at }) => updated_at >= created_at));
    },

    async 'keeps name and info of a service that is told without them'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        const { port, proto } = dns;
        const told = {
            ...fullHost,
            services: [
                { port, proto, state: 'open' },
                { port: 22, proto: 'tcp', state: 'open' },
            ],
        } as const;
        const { services } = await store.importHosts('default', each<HostInput>([told, told]));
        await store.importHosts('default', each<HostInput>([{ ...fullHost, services: [{ ...https, state: 'filtered' }] }]));

        assert.deepEqual(services, { ...NONE, new: 1, unchanged: 1 });
        assert.deepEqual(
            (await rows(present(store.services), [workspace.id, host.id])).map(({ port, state, name, info }) => ({
                port,
                state,
                name,
                info,
            })),
            [
                { port, state: 'open', name: dns.name, info: dns.info },
                { port: https.port, state: 'filtered', name: https.name, info: https.info },
                { port: 22, state: 'open', name: '', info: null },
            ],
        );
    },

    async 'takes a guessed name for a service of which none is known, and for no other'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, { ...https, name: '', info: null }] });
        const guessed = (port: number): ServiceInput => ({ port, proto: 'tcp', state: 'open', guessed_name: `guess ${port}` });
        const told = { ...fullHost, services: [guessed(dns.port), guessed(https.port), guessed(22)] };
        const { services } = await store.importHosts('default', each<HostInput>([told]));
        const again = await store.importHosts('default', each<HostInput>([told]));
        await store.importHosts('default', each<HostInput>([{ ...fullHost, services: [{ ...guessed(22), name: 'ssh', info: 'x' }] }]));
        await store.importHosts('default', each<HostInput>([told]));

        assert.deepEqual(services, { ...NONE, new: 1, changed: 1, unchanged: 1 });
        assert.deepEqual(again.services, { ...NONE, unchanged: 3 });
        const found = await rows(present(store.services), [workspace.id, host.id]);
        assert.deepEqual(
            found.map(({ name, info }) => [name, info]),
            [
                [dns.name, dns.info],
                ['guess 443', null],
                ['ssh', 'x'],
            ],
        );
        assert.ok(found.every((service) => !('guessed_name' in service)));
    },

    async 'leaves a service that is so already as it is, and spends no id on it'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns] });
        const below = (): Promise<Service[]> => rows(present(store.services), [workspace.id, host.id]);
        const before = only(await below());
        await nextMillisecond();
        await store.importHosts(
            'default',
            each([
                { ...fullHost, name: 'other', services: [dns] },
                { ...fullHost, services: [dns, https] },
            ]),
        );
        const [kept, added] = await below();

        assert.deepEqual([kept, added?.id], [before, before.id + 1]);
        await nextMillisecond();
        await store.importHosts('default', each([{ ...fullHost, services: [{ ...dns, info: null }] }]));
        assert.ok(present((await below())[0]).updated_at > before.updated_at);
    },

    async 'closes the services that were seen closed with others, unless they are told otherwise'({ store }) {
        const told = [dns, https, { ...dns, proto: 'udp' }, { ...https, port: 8443 }] as const;
        const { host, workspace } = await oneHost(store, { ...fullHost, services: told });
        const closed_ports = {
            tcp: [
                [8000, 9000],
                [1, 60],
                [50, 443],
                [8443, 8443],
            ],
        } as const;
        const input = { address: host.address, closed_ports, services: [{ ...https, name: 'other' }] };
        const { services } = await store.importHosts('default', each([input, input, { address: '192.0.2.7', closed_ports }]));
        const found = await rows(present(store.services), [workspace.id, host.id]);

        assert.deepEqual(services, { ...NONE, gone: 2, changed: 1 });
        assert.deepEqual(
            found.map(({ state, name, info }) => [state, name, info]),
            [
                ['closed', dns.name, dns.info],
                ['open', 'other', null],
                ['open', dns.name, dns.info],
                ['closed', https.name, null],
            ],
        );
        assert.equal((await rows(store.hosts, [workspace.id])).length, 2);
    },

    async 'imports no service when the source fails half-way'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const failed = store.importHosts('default', failing([{ ...fullHost, services: [dns] }, ...manyHosts()]));
        await assert.rejects(failed, { message: 'the source broke' });

        assertFields(only(await rows(present(store.services), [workspace.id, host.id])), { port: https.port });
    },
};

/** Laws of `InventoryWriter`. */
export const importGroups: InventoryLaws = [
    { needs: ['imports'], laws: importLaws },
    { needs: ['imports', 'services'], laws: serviceLaws },
    {
        needs: ['imports', 'services', 'notes', 'vulns'],
        laws: {
            async 'counts the notes and vulnerabilities of a host'(fixture) {
                const { path } = await knownList(fixture, 'notes');
                const [workspaceId = 0, hostId = 0] = path;

                assertFields(await fixture.store.hosts.get([workspaceId], hostId), { note_count: 2, vuln_count: 1 });
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
