import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import { assertFields, ids, only, present, underWay } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import {
    batches,
    dns,
    each,
    failing,
    fullHost,
    https,
    type InventoryFixture,
    type InventoryLaws,
    manyHosts,
    nextMillisecond,
    oneHost,
    rows,
} from './fixture.ts';

const NONE = importCounts();
const REPLACE = { replace: true } as const;
const other: HostInput = { address: '192.0.2.8', name: 'other', services: [dns, https] };

/** What an import removes that brings the whole workspace. */
const replacingLaws: Laws<InventoryFixture> = {
    async 'removes the hosts that a replacement does not name'({ store }) {
        const { workspace } = await oneHost(store, fullHost);
        await store.importHosts('default', each([other]));
        const elsewhere = await store.importHosts('elsewhere', each([other]));
        const { hosts } = await store.importHosts('default', each([fullHost, { address: '192.0.2.9' }]), REPLACE);

        assert.deepEqual(hosts, { ...NONE, new: 1, unchanged: 1, gone: 1 });
        assert.deepEqual(await addresses(store, workspace.id), [fullHost.address, '192.0.2.9']);
        assert.deepEqual(await addresses(store, elsewhere.workspace.id), [other.address]);
    },

    async 'removes none of them without being asked'({ store }) {
        const { workspace } = await oneHost(store, fullHost);
        const { hosts } = await store.importHosts('default', each([other]), { replace: false });

        assert.equal(hosts.gone, 0);
        assert.deepEqual(await addresses(store, workspace.id), [fullHost.address, other.address]);
    },

    async 'keeps the hosts that a replacement names as down'({ store }) {
        const { workspace } = await oneHost(store, { ...fullHost, state: 'alive' });
        await store.importHosts('default', each([other]));
        const down: HostInput = { address: fullHost.address, state: 'down', if_known: true };
        const input = [down, { address: other.address, state: 'down' } as const, { ...down, address: '192.0.2.9' }];
        const { hosts } = await store.importHosts('default', each(input), REPLACE);

        assert.deepEqual(hosts, { ...NONE, gone: 2 });
        assert.deepEqual(await addresses(store, workspace.id), [fullHost.address, other.address]);
    },

    async 'leaves what a replacement says that is so already as it is'({ store }) {
        const input = [fullHost, other, other];
        const { workspace } = await store.importHosts('default', each(input), REPLACE);
        const before = await rows(store.hosts, [workspace.id]);
        await nextMillisecond();
        const { hosts, services } = await store.importHosts('default', each(input), REPLACE);

        assert.deepEqual(
            [hosts, services],
            [
                { ...NONE, unchanged: 2 },
                { ...NONE, unchanged: 2 },
            ],
        );
        assert.deepEqual(await rows(store.hosts, [workspace.id]), before);
    },

    async 'empties a workspace that is replaced by nothing'({ store }) {
        const { workspace } = await oneHost(store, fullHost);
        const { hosts } = await store.importHosts('default', each([]), REPLACE);

        assert.deepEqual(hosts, { ...NONE, gone: 1 });
        assert.deepEqual(await rows(store.hosts, [workspace.id]), []);
    },

    async 'removes nothing when the source of a replacement fails half-way'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        await assert.rejects(store.importHosts('default', failing([other, ...manyHosts()]), REPLACE), { message: 'the source broke' });

        assert.deepEqual(await rows(store.hosts, [workspace.id]), [host]);
        await store.importHosts('default', each([fullHost]));
        assert.deepEqual(await rows(store.hosts, [workspace.id]), [host]);
    },

    async 'shows a replacement at once'({ store }) {
        const { workspace } = await oneHost(store, fullHost);
        await store.importHosts('default', each([other]));
        const importing = underWay(store.importHosts('default', each([{ ...fullHost, name: 'after' }, ...manyHosts()]), REPLACE));
        const seen = new Set<string>();
        while (!importing.ended()) {
            const [[first, second] = []] = await batches(store.hosts, [workspace.id]);
            seen.add(`${first?.name} ${second?.address}`);
            await turn();
        }
        await importing.result;

        const [before, after] = [`${fullHost.name} ${other.address}`, 'after 10.0.0.0'];
        assert.deepEqual(
            [...seen].filter((state) => state !== before && state !== after),
            [],
        );
    },
};

/** What goes with them, and below hosts that stay. */
const belowLaws: Laws<InventoryFixture> = {
    async 'removes the services that a replacement does not name, and counts its hosts as changed'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https, { ...dns, proto: 'udp' }] });
        await store.importHosts('default', each([other]));
        await nextMillisecond();
        const input = [
            { ...fullHost, services: [https] },
            { ...fullHost, closed_ports: { udp: [[50, 60]] } } as const,
            { address: '192.0.2.9', services: [dns] },
        ];
        const { hosts, services } = await store.importHosts('default', each<HostInput>(input), REPLACE);
        const kept = present((await rows(store.hosts, [workspace.id]))[0]);

        assert.deepEqual(hosts, { ...NONE, new: 1, changed: 1, gone: 1 });
        assert.deepEqual(services, { ...NONE, new: 1, unchanged: 1, gone: 4 });
        assert.deepEqual(kept, { ...host, service_count: 2, updated_at: kept.updated_at });
        assert.ok(kept.updated_at > host.updated_at);
        assert.deepEqual(
            (await rows(present(store.services), [workspace.id, host.id])).map(({ port, proto, state }) => [port, proto, state]),
            [
                [https.port, 'tcp', 'open'],
                [dns.port, 'udp', 'closed'],
            ],
        );
    },

    async 'counts a host that loses services as changed once'({ store }) {
        await oneHost(store, { ...fullHost, services: [dns, https] });
        const input = [
            { ...fullHost, services: [{ ...https, port: 8443 }] },
            { ...fullHost, info: 'other' },
        ];
        const { hosts, services } = await store.importHosts('default', each<HostInput>(input), REPLACE);

        assert.deepEqual(
            [hosts, services],
            [
                { ...NONE, changed: 1 },
                { ...NONE, new: 1, gone: 2 },
            ],
        );
    },
};

/** Laws of an `InventoryWriter` that replaces. */
export const replacingGroups: InventoryLaws = [
    { needs: ['imports', 'replaces'], laws: replacingLaws },
    { needs: ['imports', 'replaces', 'services'], laws: belowLaws },
    {
        needs: ['imports', 'replaces', 'services', 'notes', 'vulns'],
        laws: {
            async 'removes the vulnerabilities of a service that a replacement does not name'({ store, add }) {
                const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
                const path = [workspace.id, host.id];
                const [first, second] = await rows(present(store.services), path);
                await present(add?.note)(host.id);
                await present(add?.vuln)(present(first).id);
                const kept = await present(add?.vuln)(present(second).id);
                await store.importHosts('default', each([{ ...fullHost, services: [https] }]), REPLACE);

                assertFields(await store.hosts.get([workspace.id], host.id), { note_count: 1, vuln_count: 1, service_count: 1 });
                assert.deepEqual(ids(await rows(present(store.vulns), [...path, present(first).id])), []);
                assert.deepEqual(ids(await rows(present(store.vulns), [...path, present(second).id])), [kept]);
                assert.equal((await rows(present(store.notes), path)).length, 1);
                assert.equal(only(await rows(present(store.services), path)).id, present(second).id);
            },
        },
    },
];

async function addresses({ hosts }: InventoryFixture['store'], workspaceId: number): Promise<readonly string[]> {
    return (await rows(hosts, [workspaceId])).map(({ address }) => address);
}
