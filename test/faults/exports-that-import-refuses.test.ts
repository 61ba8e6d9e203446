import t from 'tap';
import { each, rows } from '../../adapters/contract/inventory/fixture.ts';
import { type MemoryInventory, memoryInventory } from '../../adapters/memory/index.ts';
import { type ExportFormat, exportWorkspace, type HostInput } from '../../lib/inventory/index.ts';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';

/** The longest text of a field. */
const MAX = 65_536;
const LONG = 'o'.repeat(70_000);

async function* bytes(text: string): AsyncIterable<Uint8Array> {
    yield Buffer.from(text);
}

async function exported(inventory: InventoryStore, format: ExportFormat = 'jsonl'): Promise<string> {
    let all = '';
    for await (const piece of (await exportWorkspace(inventory, { workspace: 'office', format })).text) {
        all += piece;
    }
    return all;
}

async function vulnsOf({ workspaces, workspaceVulns }: MemoryInventory, name: string) {
    const id = (await rows(workspaces, [])).find((workspace) => workspace.name === name)?.id ?? 0;
    return rows(workspaceVulns, [id]);
}

const nessus = `<NessusClientData_v2><Report><ReportHost name="192.0.2.1"><ReportItem port="0" severity="3" pluginID="7" pluginName="x">
    <plugin_output>${LONG}</plugin_output><cve>CVE-2020-1234</cve></ReportItem></ReportHost></Report></NessusClientData_v2>`;
const vuln = (info: string, refs: readonly string[] = []) => JSON.stringify({ address: '192.0.2.1', vulns: [{ name: 'x', info, refs }] });

for (const [what, scan] of Object.entries({
    'a report of Nessus': nessus,
    'JSON lines': vuln('i'.repeat(MAX), ['CVE-2020-1234']),
    'JSON lines with a text that ends in half a pair where it is cut': vuln(`${'i'.repeat(MAX - 30)}${'💾'.repeat(15)}`, ['CVE-2020-1234']),
})) {
    t.test(`the text of a vulnerability is cut so that its references have room: ${what}`, async (t) => {
        const inventory = memoryInventory();
        await inventory.importHosts('office', readScan(bytes(scan)));
        const [{ info } = { info: '' }] = await vulnsOf(inventory, 'office');
        t.ok((info?.length ?? 0) <= MAX && (info?.length ?? 0) > MAX - 5, `${info?.length} characters`);
        t.match(info, /[oi](?:💾)*…\nReferences: CVE-2020-1234(?: NSS-7)?$/u);

        const text = await exported(inventory);
        t.match(await inventory.importHosts('copy', readScan(bytes(text))), { vulns: { new: 1 } });
        t.match(await inventory.importHosts('office', readScan(bytes(text))), { vulns: { unchanged: 1 } });
        t.equal((await vulnsOf(inventory, 'copy'))[0]?.info, info);
    });
}

t.test('more references than a text has room for are left out one by one', async (t) => {
    const inventory = memoryInventory();
    const refs = ['CVE-2020-1234', 'r'.repeat(MAX), ...Array.from({ length: 6_000 }, (_, index) => `CVE-2021-${100_000 + index}`), 'a'];
    await inventory.importHosts('office', readScan(bytes(vuln('said'.repeat(10), refs))));
    const [{ info } = { info: '' }] = await vulnsOf(inventory, 'office');
    t.ok((info?.length ?? 0) <= MAX);
    t.match(info, /^[said]*…\nReferences: CVE-2020-1234 CVE-2021-100000 .* a$/);
    t.match(await inventory.importHosts('office', readScan(bytes(await exported(inventory)))), { vulns: { unchanged: 1 } });
});

t.test('a text that was stored with references beyond its limit is taken, and cut', async (t) => {
    const inventory = memoryInventory();
    const stored = `${'i'.repeat(MAX)}\nReferences: CVE-2020-1234 BID-7`;
    await inventory.importHosts('office', each([{ address: '192.0.2.1', vulns: [{ name: 'x', info: stored }] }]));
    await inventory.importHosts('copy', readScan(bytes(await exported(inventory))));
    await inventory.importHosts('again', readScan(bytes(vuln(stored))));
    for (const name of ['copy', 'again']) {
        const [{ info } = { info: '' }] = await vulnsOf(inventory, name);
        t.equal(info?.length, MAX);
        t.match(info, /i…\nReferences: CVE-2020-1234 BID-7$/);
    }

    for (const text of ['i'.repeat(MAX + 1), `${'i'.repeat(MAX + 1)}\nReferences: A`, `${'i'.repeat(MAX)}\nreferences`]) {
        await t.rejects(inventory.importHosts('other', readScan(bytes(vuln(text)))), {
            field: 'vulns[0].info',
            message: 'Line 1: vulns[0].info length must be less than or equal to 65536 characters long',
        });
    }
});

/** A store of another maker, which may hold what no import of ours lets in: here services by their ports, protocols and names. */
async function foreignStore(services: readonly (readonly [port: number, proto: string, name: string])[]) {
    const inventory = memoryInventory();
    const given = services.map((_, index): NonNullable<HostInput['services']>[number] => ({
        port: index + 1,
        proto: 'tcp',
        state: 'open',
    }));
    const on = given.map(({ port, proto }) => ({ port, proto }));
    const notes = on.map((at, index) => ({ ...at, ntype: `note ${index}`, data: {} }));
    const vulns = on.map((at, index) => ({ ...at, name: `vuln ${index}`, info: null }));
    await inventory.importHosts('office', each([{ address: '192.0.2.1', comments: 'long', services: given, notes, vulns }]));
    const { hosts, workspaceServices } = inventory;
    const store = {
        ...inventory,
        hosts: {
            ...hosts,
            async *list(path: readonly number[]) {
                yield (await rows(hosts, path)).map((host) => ({ ...host, comments: `${LONG}💾` }));
            },
        },
        workspaceServices: {
            ...workspaceServices,
            async *select(path: readonly number[]) {
                yield (await rows(workspaceServices, path)).map((row, index) => {
                    const [port, proto, name] = services[index] ?? [];
                    return { ...row, port, proto, name, info: LONG };
                });
            },
        },
    } as unknown as InventoryStore;
    return { inventory, store };
}

const FOREIGN = [
    [443, 'tcp', 'tcp'],
    [443, 'tcp', 'ssl'],
    [443, 'udp', 'quic'],
    [443, 'tcp', 'http'],
    [5060, 'sctp', 'sip'],
    [0, 'icmp', 'ping'],
    [0, 'tcp', 'none'],
] as const;

t.test('of several services of one port the first is exported, with what is on the others', async (t) => {
    const { inventory, store } = await foreignStore(FOREIGN);
    const text = await exported(store);
    const [host] = text.split('\n').map((line) => JSON.parse(line || 'null'));
    t.match(host.services, [
        { port: 443, proto: 'tcp', name: 'tcp' },
        { port: 443, proto: 'udp', name: 'quic' },
    ]);
    t.equal(host.services.length, 2);
    const places = [...[443, 443, 443, 443].map((port, index) => [port, index === 2 ? 'udp' : 'tcp']), ...[0, 1, 2].map(() => [])];
    for (const [kind, key] of [
        ['notes', 'ntype'],
        ['vulns', 'name'],
    ] as const) {
        t.strictSame(
            host[kind].map((row: Record<string, unknown>) => [row[key], ...(row.port === undefined ? [] : [row.port, row.proto])]),
            places.map((place, index) => [`${kind.slice(0, -1)} ${index}`, ...place]),
        );
    }
    t.match(await inventory.importHosts('copy', readScan(bytes(text))), {
        ...{ hosts: { new: 1 }, services: { new: 2 } },
        ...{ notes: { new: 7 }, vulns: { new: 7 } },
    });
    t.equal(host.comments, `${'o'.repeat(MAX - 1)}…`);
});

t.test('the XML of nmap has the same services', async (t) => {
    const { store } = await foreignStore(FOREIGN);
    const hosts: HostInput[] = [];
    for await (const host of readScan(bytes(await exported(store, 'nmap-xml')))) {
        hosts.push(host);
    }
    t.match(hosts, [
        {
            services: [
                { port: 443, proto: 'tcp', name: 'tcp' },
                { port: 443, proto: 'udp', name: 'quic' },
            ],
        },
    ]);
    t.equal(hosts[0]?.services?.length, 2);
});
