import t from 'tap';
import { each } from '../../../adapters/contract/inventory/fixture.ts';
import { type MemoryInventory, memoryInventory } from '../../../adapters/memory/index.ts';
import {
    type HostsQuery,
    hostAt,
    hostsPage,
    type NamedInventory,
    shownWorkspace,
    workspaceNamed,
} from '../../../lib/inventory/host-pages.ts';

async function office(): Promise<MemoryInventory & NamedInventory> {
    const inventory = memoryInventory();
    const hosts = Array.from({ length: 7 }, (_, index) => ({
        address: `192.0.2.${index + 1}`,
        state: index === 6 ? ('down' as const) : ('alive' as const),
        ...(index === 0 && { services: [{ port: 443, proto: 'tcp' as const, state: 'open' as const, name: 'https', info: null }] }),
    }));
    await inventory.importHosts('office', each(hosts));
    return inventory as MemoryInventory & NamedInventory;
}

t.test('goes through the hosts of a workspace page by page', async (t) => {
    const inventory = await office();
    const seen: string[] = [];
    let next: number | null = 0;
    for (let pages = 0; next !== null; pages += 1) {
        const page: Awaited<ReturnType<typeof hostsPage>> = await hostsPage(inventory, { workspace: 'office', after: next, limit: 3 });
        seen.push(...page.hosts.map(({ address }) => address));
        next = page.next;
        t.ok(pages < 3);
    }
    t.same(
        seen,
        Array.from({ length: 7 }, (_, index) => `192.0.2.${index + 1}`),
    );
    t.equal((await hostsPage(inventory, { workspace: 'office', limit: 7 })).next, null, 'a page that is full and the last');
});

t.test('shows what was asked for, with services where they are wanted', async (t) => {
    const inventory = await office();
    const { hosts } = await hostsPage(inventory, { workspace: 'office', address: '192.0.2.0/30', services: true });
    t.match(hosts, [{ address: '192.0.2.1', services: [{ port: 443 }] }, { services: [] }, { address: '192.0.2.3' }]);
    t.equal(hosts.length, 3);
    t.match(await hostsPage(inventory, { workspace: 'office', state: 'down' }), { hosts: [{ address: '192.0.2.7' }] });
    t.notOk('services' in ((await hostsPage(inventory, { workspace: 'office', limit: 1 })).hosts[0] ?? {}));
});

t.test('refuses to go on behind an id that no host has', async (t) => {
    await t.rejects(hostsPage(await office(), { workspace: 'office', after: 2 ** 31 }), { code: 'INVALID_INPUT', field: 'after' });
});

t.test('shows nothing in place of what a store cannot choose', async (t) => {
    const { hosts, ...others } = await office();
    const { filters: _, ...less } = hosts;
    const inventory = { ...others, hosts: less } as NamedInventory;
    t.equal((await hostsPage(inventory, { workspace: 'office' })).hosts.length, 7);
    await t.rejects(hostsPage(inventory, { workspace: 'office', state: 'down' }), { code: 'INVALID_INPUT', field: 'state' });
    await t.rejects(hostAt(inventory, 'office', '192.0.2.7'), { code: 'INVALID_INPUT', field: 'address' });
});

t.test('shows a workspace with how much it holds, as far as the store counts', async (t) => {
    const inventory = await office();
    t.match(await shownWorkspace(inventory, 'office'), { name: 'office', hosts: 7, services: 1, notes: 0, vulns: 0 });
    const { workspaces, hosts } = inventory;
    t.match(await shownWorkspace({ workspaces, hosts }, 'office'), { hosts: 7, services: null });
    await t.rejects(shownWorkspace(inventory, 'attic'), { code: 'NOT_FOUND', field: 'workspace' });
});

t.test('shows a host with all that is known of it', async (t) => {
    const inventory = await office();
    const { id } = await workspaceNamed(inventory, 'office');
    const { hosts } = await hostsPage(inventory, { workspace: 'office', limit: 1 });
    const [host] = hosts;
    const { value } = await inventory.services
        .list([id, host?.id ?? 0])
        [Symbol.asyncIterator]()
        .next();
    await inventory.addNote(host?.id ?? 0, { ntype: 'host.comments' });
    await inventory.addVuln(value[0].id, { name: 'weak cipher' });
    t.match(await hostAt(inventory, 'office', '192.0.2.1'), {
        address: '192.0.2.1',
        services: [{ name: 'https' }],
        notes: [{ ntype: 'host.comments' }],
        vulns: [{ name: 'weak cipher' }],
    });
});

t.test('shows the vulnerabilities of a host as a whole, where the store has them', async (t) => {
    const inventory = memoryInventory();
    const services = [{ port: 443, proto: 'tcp' as const, state: 'open' as const }];
    const vulns = [
        { name: 'old kernel', info: null },
        { port: 443, proto: 'tcp' as const, name: 'weak cipher', info: null },
    ];
    await inventory.importHosts('office', each([{ address: '192.0.2.1', services, vulns, notes: [{ ntype: 'uptime', data: {} }] }]));
    const { hostVulns: _, ...others } = inventory as MemoryInventory & NamedInventory;
    t.match(await hostAt(inventory as MemoryInventory & NamedInventory, 'office', '192.0.2.1'), {
        notes: [{ ntype: 'uptime', service_id: null }],
        vulns: [
            { name: 'old kernel', service_id: null },
            { name: 'weak cipher', service_id: 1 },
        ],
    });
    t.same(
        (await hostAt(others, 'office', '192.0.2.1')).vulns.map(({ name }) => name),
        ['weak cipher'],
    );
    const { vulns: __, ...neither } = others;
    t.same((await hostAt(neither, 'office', '192.0.2.1')).vulns, []);
});

t.test('says what it does not find, and what it does not understand', async (t) => {
    const inventory = await office();
    await t.rejects(hostsPage(inventory, { workspace: 'nowhere' }), { code: 'NOT_FOUND', field: 'workspace' });
    await t.rejects(hostAt(inventory, 'office', '192.0.2.99'), { code: 'NOT_FOUND', field: 'address' });
    await t.rejects(hostAt(inventory, 'office', '192.0.2.0/30'), { code: 'NOT_FOUND', field: 'address' });
    await t.rejects(hostAt(inventory, 'office', 'printer'), { code: 'INVALID_INPUT', field: 'address' });
    const wrong: readonly [string, unknown][] = [
        ['state', 'dead'],
        ['address', '192.0.2.0/33'],
        ['limit', 501],
        ['after', -1],
    ];
    for (const [field, value] of wrong) {
        const query = { workspace: 'office', [field]: value } as unknown as HostsQuery;
        await t.rejects(hostsPage(inventory, query), { code: 'INVALID_INPUT', field });
    }
});
