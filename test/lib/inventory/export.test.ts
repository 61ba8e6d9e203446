import { SaxesParser } from 'saxes';
import t from 'tap';
import { each, fullHost, rows } from '../../../adapters/contract/inventory/fixture.ts';
import { type MemoryInventory, memoryInventory } from '../../../adapters/memory/index.ts';
import { type ExportFormat, type ExportOptions, exportWorkspace, type HostInput } from '../../../lib/inventory/index.ts';
import { readScan } from '../../../lib/inventory/scan-files/read-scan.ts';
import type { InventoryStore } from '../../../lib/inventory/store.ts';

const HOSTS: readonly HostInput[] = [
    {
        ...fullHost,
        services: [
            { port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: 'nginx "1.24", über <Debian>' },
            { port: 53, proto: 'udp', state: 'filtered', name: '', info: null },
            { port: 22, proto: 'tcp', state: 'unknown', name: 'ssh', info: '' },
        ],
        notes: [
            { ntype: 'host.comments', data: { deep: [1, { ключ: '💾\n\u009b' }] }, critical: true, seen: false },
            { ntype: null, data: {}, port: 443, proto: 'tcp' },
            { ntype: null, data: { second: true }, port: 443, proto: 'tcp' },
        ],
        vulns: [
            { name: 'CVE-2026-0001', info: 'as a whole' },
            {
                name: 'weak cipher',
                info: 'line\nReferences: CVE-2014-0160 BID-66690',
                port: 53,
                proto: 'udp',
                exploited_at: new Date('2026-11-21T09:30:00.120Z'),
                vuln_detail_count: 2,
                vuln_attempt_count: 3,
                nexpose_data_vuln_def_id: 4,
            },
        ],
    },
    { address: '192.0.2.1' },
    { address: '192.0.2.2', state: 'unknown', services: [{ port: 1, proto: 'tcp', state: 'closed' }] },
];

async function office(hosts: readonly HostInput[] = HOSTS): Promise<MemoryInventory> {
    const inventory = memoryInventory({ batchSize: 3 });
    await inventory.importHosts('other', each([{ address: '203.0.113.1', services: [{ port: 9, proto: 'tcp', state: 'open' }] }]));
    await inventory.importHosts('office', each(hosts));
    return inventory;
}

async function exported(
    inventory: InventoryStore,
    format: ExportFormat,
    options: ExportOptions = { clock: () => new Date('2026-11-24T12:00:00.500Z') },
): Promise<string> {
    let all = '';
    for await (const piece of (await exportWorkspace(inventory, { workspace: 'office', format }, options)).text) {
        all += piece;
    }
    return all;
}

const SERVER_OWNED = ['id', 'workspace_id', 'host_id', 'service_id', 'created_at', 'updated_at'];
const plain = (row: object): object => Object.fromEntries(Object.entries(row).filter(([field]) => !SERVER_OWNED.includes(field)));

/** All rows of a workspace without what the store gives again; of what is on a service, its port. */
async function contents({ hosts, workspaceServices, workspaceNotes, workspaceVulns, workspaces }: MemoryInventory, name: string) {
    const id = (await rows(workspaces, [])).find((workspace) => workspace.name === name)?.id ?? 0;
    const below = [...(await rows(workspaceServices, [id]))];
    const onService = (row: { readonly host_id: number | null; readonly service_id: number | null }): object => ({
        ...plain(row),
        on: below.find((service) => service.id === row.service_id)?.port,
    });
    return {
        hosts: (await rows(hosts, [id])).map(plain),
        services: below.map(plain),
        notes: (await rows(workspaceNotes, [id])).map(onService),
        vulns: (await rows(workspaceVulns, [id])).map(onService),
    };
}

async function* bytes(text: string): AsyncIterable<Uint8Array> {
    yield Buffer.from(text);
}

t.test('writes JSON lines from which an import makes the same rows in another workspace', async (t) => {
    const inventory = await office();
    const text = await exported(inventory, 'jsonl');
    t.equal(text.split('\n').length, HOSTS.length + 1);
    const summary = await inventory.importHosts('copy', readScan(bytes(text)));

    t.same(await contents(inventory, 'copy'), await contents(inventory, 'office'));
    t.match(summary, { hosts: { new: 3 }, services: { new: 4 }, notes: { new: 3 }, vulns: { new: 2 } });
    const again = await inventory.importHosts('office', readScan(bytes(text)));
    t.match(again, { hosts: { unchanged: 3 }, services: { unchanged: 4 }, notes: { unchanged: 3 }, vulns: { unchanged: 2 } });
});

t.test('leaves out what a service has that has gone meanwhile, and fields that an import does not know', async (t) => {
    const inventory = await office();
    const { workspaceServices } = inventory;
    const store: InventoryStore = {
        ...inventory,
        hosts: {
            ...inventory.hosts,
            async *list(path) {
                yield (await rows(inventory.hosts, path)).slice(0, 1).map((host) => ({ ...host, rack: 7 }));
            },
        },
        workspaceServices: {
            ...workspaceServices,
            async *select(path, selection) {
                for await (const batch of workspaceServices.select?.(path, selection) ?? []) {
                    yield batch.filter(({ port }) => port !== 443);
                }
            },
        },
    };
    const [host] = (await exported(store, 'jsonl')).split('\n').map((line) => JSON.parse(line || 'null'));
    t.match(host, { services: [{ port: 53 }, { port: 22 }], notes: [{ ntype: 'host.comments' }], vulns: [{}, { port: 53, proto: 'udp' }] });
    t.equal(host.notes.length, 1);
    t.notOk('rack' in host);
});

t.test('writes CSV with a line for each service, and one for a host without', async (t) => {
    const at = new Date('2026-11-24T12:00:00.500Z');
    const inventory = memoryInventory({ clock: () => at });
    const hosts: HostInput[] = [
        {
            address: '192.0.2.1',
            name: '=1+1',
            comments: 'two\nlines, "quoted"',
            services: [
                { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null },
                { port: 53, proto: 'udp', state: 'closed', name: '', info: 'x' },
            ],
        },
        { address: '192.0.2.2' },
    ];
    await inventory.importHosts('office', each(hosts));
    const time = '2026-11-24T12:00:00+00:00';
    const front = `1,2,${time},${time},192.0.2.1,"",,'=1+1,alive,"","","",,,"",,"two\nlines, ""quoted""",,,0,0,2,0,0,0,,0,,`;
    t.equal(
        await exported(inventory, 'csv'),
        [
            'id,workspace_id,created_at,updated_at,address,mac,comm,name,state,os_name,os_flavor,os_sp,os_lang,arch,purpose,info,comments,' +
                'scope,virtual_host,note_count,vuln_count,service_count,host_detail_count,exploit_attempt_count,cred_count,' +
                'nexpose_data_asset_id,history_count,detected_arch,service_id,service_created_at,service_updated_at,service_port,' +
                'service_proto,service_state,service_name,service_info',
            `${front}1,${time},${time},22,tcp,open,ssh,`,
            `${front}2,${time},${time},53,udp,closed,"",x`,
            `2,2,${time},${time},192.0.2.2,"",,192.0.2.2,alive,"","","",,,"",,,,,0,0,0,0,0,0,,0,,,,,,,,,`,
            '',
        ].join('\r\n'),
    );
});

/** Of nmap's document type, as far as it is used: what an element holds, in its order, and its attributes, `!` for those that must be there. */
const DOCUMENT_TYPE: Readonly<Record<string, readonly [content: RegExp, ...attributes: string[]]>> = {
    nmaprun: [/^verbose debugging (?:host )*runstats $/, 'scanner!', 'args', 'start', 'version!', 'xmloutputversion!'],
    verbose: [/^$/, 'level'],
    debugging: [/^$/, 'level'],
    host: [/^status address (?:(?:address|hostnames|ports|os) )*$/, 'starttime', 'endtime', 'comment'],
    status: [/^$/, 'state!', 'reason!', 'reason_ttl!'],
    address: [/^$/, 'addr!', 'addrtype', 'vendor'],
    hostnames: [/^(?:hostname )*$/],
    hostname: [/^$/, 'name', 'type'],
    ports: [/^(?:extraports )*(?:port )*$/],
    port: [/^state (?:owner )?(?:service )?(?:script )*$/, 'protocol!', 'portid!'],
    state: [/^$/, 'state!', 'reason!', 'reason_ttl!', 'reason_ip'],
    service: [/^(?:cpe )*$/, 'name!', 'conf!', 'method!', 'version', 'product', 'extrainfo', 'tunnel'],
    os: [/^(?:portused )*(?:osmatch )*(?:osfingerprint )*$/],
    osmatch: [/^(?:osclass )*$/, 'name!', 'accuracy!', 'line!'],
    osclass: [/^(?:cpe )*$/, 'vendor!', 'osgen', 'type', 'accuracy!', 'osfamily!'],
    runstats: [/^finished hosts $/],
    finished: [/^$/, 'time!', 'timestr', 'elapsed!', 'summary', 'exit', 'errormsg'],
    hosts: [/^$/, 'up', 'down', 'total!'],
};
const CHOICES: Readonly<Record<string, readonly string[]>> = {
    'status state': ['up', 'down', 'unknown', 'skipped'],
    'address addrtype': ['ipv4', 'ipv6', 'mac'],
    'hostname type': ['user', 'PTR'],
    'port protocol': ['ip', 'tcp', 'udp', 'sctp'],
    'service method': ['table', 'probed'],
    'service tunnel': ['ssl'],
    'finished exit': ['error', 'success'],
    'nmaprun scanner': ['nmap'],
};

/** All that a document may be made of: tags with attributes, blanks between them, and of XML's characters those that need no reference. */
const WELL_FORMED = /^<\?xml [^?]+\?>(?:\n|<!DOCTYPE nmaprun>|<\/?[a-z]+(?: [a-z_]+="(?:[^"<&\p{Cc}\p{Cs}\ufffe\uffff]|&#\d+;)*")*\/?>)*$/u;

/** What of a document breaks the document type. */
function violations(xml: string): readonly string[] {
    if (!WELL_FORMED.test(xml)) {
        return ['not well-formed'];
    }

    const found: string[] = [];
    const open: { readonly name: string; content: string }[] = [{ name: '', content: '' }];
    const parser = new SaxesParser();
    parser.on('opentag', ({ name, attributes }) => {
        const known: readonly string[] = DOCUMENT_TYPE[name]?.slice(1).map(String) ?? [];
        const given = Object.keys(attributes);
        found.push(...given.filter((each) => !known.includes(each) && !known.includes(`${each}!`)).map((each) => `${name} has ${each}`));
        found.push(
            ...known.filter((each) => each.endsWith('!') && !given.includes(each.slice(0, -1))).map((each) => `${name} lacks ${each}`),
        );
        for (const [key, value] of Object.entries(attributes)) {
            if (CHOICES[`${name} ${key}`]?.includes(String(value)) === false) {
                found.push(`${name} ${key} is ${value}`);
            }
        }
        (open.at(-1) as { content: string }).content += `${name} `;
        open.push({ name, content: '' });
    });
    parser.on('closetag', () => {
        const { name, content } = open.pop() as (typeof open)[number];
        if (DOCUMENT_TYPE[name]?.[0].test(content) !== true) {
            found.push(`${name} holds ${content}`);
        }
    });
    parser.write(xml).close();
    return [...found, ...(open[0]?.content === 'nmaprun ' ? [] : ['no nmaprun'])];
}

t.test('knows what breaks the document type of nmap', async (t) => {
    t.same(violations('<?xml version="1.0"?>\n<nmaprun scanner="masscan"><host><address/></host></nmaprun>'), [
        'nmaprun lacks version!',
        'nmaprun lacks xmloutputversion!',
        'nmaprun scanner is masscan',
        'address lacks addr!',
        'host holds address ',
        'nmaprun holds host ',
    ]);
    for (const text of ['<', '&', '&amp', '\0', '\t', '\ufffe', '\ud800', 'a"b']) {
        t.same(violations(`<?xml version="1.0"?>\n<nmaprun args="${text}"></nmaprun>`), ['not well-formed'], JSON.stringify(text));
    }
});

t.test('writes the XML of nmap, by its document type, from which an import makes the hosts and services', async (t) => {
    const windows: HostInput = {
        address: '2001:db8::7',
        os_name: 'Microsoft Windows',
        os_flavor: '7',
        os_sp: 'SP1',
        arch: 'x64',
        detected_arch: 'x64',
        services: [{ port: 3389, proto: 'tcp', state: 'open', name: 'ms-wbt-server', info: null }],
    };
    const inventory = await office([...HOSTS, windows, { address: '192.0.2.3', state: 'down' }, { address: '192.0.2.4', os_flavor: '7' }]);
    const xml = await exported(inventory, 'nmap-xml');
    t.same(violations(xml), []);
    t.match(xml, '<runstats><finished time="1795521600" elapsed="0.00" exit="success"/><hosts up="3" down="2" total="6"/></runstats>');

    const read: HostInput[] = [];
    for await (const host of readScan(bytes(xml))) {
        read.push(host);
    }
    const info = 'nginx "1.24", über <Debian>';
    t.same(read, [
        {
            address: 'fe80::1',
            mac: '00:50:56:aa:bb:cc',
            name: 'köln 🖥 主机',
            state: 'down',
            os_name: 'Linux',
            os_flavor: 'Debian',
            services: [
                { port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info },
                { port: 53, proto: 'udp', state: 'filtered' },
                { port: 22, proto: 'tcp', state: 'unknown', name: 'ssh', info: null },
            ],
        },
        { address: '192.0.2.1', state: 'alive' },
        { address: '192.0.2.2', state: 'unknown', services: [{ port: 1, proto: 'tcp', state: 'closed' }] },
        { ...windows, state: 'alive' },
        { address: '192.0.2.3', state: 'down', if_known: true },
        { address: '192.0.2.4', state: 'alive' },
    ]);
});

/** The rows of a store of the application's own, which may have texts that no store of ours takes. */
function withTexts(inventory: MemoryInventory, known: string, text: string): InventoryStore {
    async function* replaced<Row extends object>(batches: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
        const shown = (row: Row): Row =>
            Object.fromEntries(Object.entries(row).map(([key, value]) => [key, value === known ? text : value])) as Row;
        for await (const batch of batches) {
            yield batch.map(shown);
        }
    }
    const { hosts, workspaceServices } = inventory;
    return {
        ...inventory,
        hosts: { ...hosts, list: (path, options) => replaced(hosts.list(path, options)) },
        workspaceServices: {
            ...workspaceServices,
            select: (path, selection, options) =>
                replaced(workspaceServices.select?.(path, selection, options) ?? workspaceServices.list(path)),
        },
    } as InventoryStore;
}

t.test('writes well-formed XML of hostile texts', async (t) => {
    const hostile = '\0\u0001\u001b[31m]]><!--&amp;"\'\t\r\n\u0085\u009b\u2028\ud800x\udc00\ufffe\uffff💾';
    const known = 'a text';
    const inventory = await office([]);
    const [service] = [{ port: 1, proto: 'tcp' as const, state: 'open' as const, name: known, info: known }];
    await inventory.importHosts('office', each([{ address: '192.0.2.1', name: known, mac: known, os_name: known, services: [service] }]));
    const xml = await exported(withTexts(inventory, known, hostile), 'nmap-xml');
    t.same(violations(xml), []);
    t.notMatch(xml, /[^\P{Cc}\n]|[\ufffe\uffff]/u);

    const read: HostInput[] = [];
    for await (const host of readScan(bytes(xml))) {
        read.push(host);
    }
    const shown = '\ufffd\ufffd\ufffd[31m]]><!--&amp;"\'\t\r\n\u0085\u009b\u2028\ufffdx\ufffd\ufffd\ufffd💾';
    t.match(read, [{ name: shown, mac: shown, services: [{ name: shown, info: shown }] }]);
});

t.test('goes out in pieces, and frees the reading when it ends early', async (t) => {
    const many = Array.from({ length: 2000 }, (_, index): HostInput => ({ address: `10.0.${index >> 8}.${index & 255}` }));
    const inventory = await office(many);
    let ended = false;
    const store: InventoryStore = {
        ...inventory,
        hosts: {
            ...inventory.hosts,
            async *list(path, options) {
                try {
                    yield* inventory.hosts.list(path, options);
                } finally {
                    ended = true;
                }
            },
        },
    };
    const { text } = await exportWorkspace(store, { workspace: 'office', format: 'jsonl' });
    const { value } = await text.next();
    t.ok((value ?? '').length >= 65_536 && (value ?? '').length < 70_000);
    t.equal(ended, false);
    await text.return();
    t.equal(ended, true);
});

t.test('ends when its signal aborts', async (t) => {
    const controller = new AbortController();
    const signal = controller.signal;
    controller.abort();
    for (const format of ['jsonl', 'csv'] as const) {
        await t.rejects(exported(await office(), format, { signal }), { name: 'AbortError' });
    }
});

t.test('writes the same where the store reads what is below one host after the other', async (t) => {
    const ports = Array.from({ length: 1200 }, (_, index) => ({ port: index + 1, proto: 'tcp' as const, state: 'open' as const }));
    const many = Array.from({ length: 130 }, (_, index): HostInput => ({ address: `198.51.100.${index}`, services: ports.slice(0, 9) }));
    const inventory = await office([...HOSTS, { address: '203.0.113.7', services: ports }, ...many]);
    const { workspaceServices: _, workspaceNotes: __, workspaceVulns: ___, ...others } = inventory;
    for (const format of ['jsonl', 'csv', 'nmap-xml'] as const) {
        const text = await exported(inventory, format);
        t.equal(await exported(others, format), text);
        t.ok(text.includes('198.51.100.129'));
    }
    const { services, notes, vulns } = await contents(inventory, 'office');
    const hosts = (await exported(inventory, 'jsonl'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    t.equal(hosts.flatMap((host) => host.services).length, services.length);
    t.equal(hosts.flatMap((host) => host.notes).length, notes.length);
    t.equal(hosts.flatMap((host) => host.vulns).length, vulns.length);
});

t.test('exports a store that has nothing below its hosts', async (t) => {
    const { workspaces, hosts } = await office();
    const lines = (await exported({ workspaces, hosts }, 'jsonl')).trim().split('\n');
    t.match(
        lines.map((line) => JSON.parse(line)),
        HOSTS.map(({ address }) => ({ address, services: [], notes: [], vulns: [] })),
    );
});

t.test('says what it does not find, and what it does not know', async (t) => {
    const inventory = await office();
    await t.rejects(exportWorkspace(inventory, { workspace: 'attic', format: 'csv' }), {
        code: 'NOT_FOUND',
        field: 'workspace',
        message: 'Unknown workspace "attic"',
    });
    await t.rejects(exportWorkspace(inventory, { workspace: 'office', format: 'xlsx' as 'csv' }), {
        code: 'INVALID_INPUT',
        field: 'format',
        message: /format must be one of \[jsonl, csv, nmap-xml\]/,
    });
});
