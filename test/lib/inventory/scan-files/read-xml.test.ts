import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import t from 'tap';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import { readXmlScan as readNmap } from '../../../../lib/inventory/scan-files/read-xml.ts';
import { collect } from '../../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

const fixture = (name: string): URL => new URL(`../../../../../fixtures/scans/${name}`, import.meta.url);
const scanOf = (...hosts: string[]): string => `<?xml version="1.0"?>\n<nmaprun scanner="nmap">\n${hosts.join('\n')}\n</nmaprun>\n`;
const ADDRESS = '<address addr="192.0.2.1" addrtype="ipv4"/>';
const UP = '<status state="up"/>';

async function hostsOf(...hosts: string[]): Promise<unknown[]> {
    return collect(readNmap(bytes(scanOf(...hosts))));
}

t.test('reads hosts, names, systems and services of a real scan', async (t) => {
    const hosts = await collect(readNmap(createReadStream(fixture('services.xml'))));
    t.same(
        hosts.map(({ address }) => address),
        ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'],
    );
    t.match(hosts[0], { name: 'localhost', state: 'alive' });
    t.match(hosts[1], { state: 'alive', os_name: 'Linux', os_flavor: '5.X' });
    t.match(hosts[1]?.services, [
        { port: 22, proto: 'tcp', state: 'closed', guessed_name: 'ssh' },
        { port: 80, proto: 'tcp', state: 'open', name: 'http', info: 'nginx 1.22.1' },
        { port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: 'nginx 1.22.1' },
    ]);
    t.match(hosts[2]?.services?.at(-1), { port: 6379, name: 'redis', info: 'Redis key-value store 7.0.15' });
});

t.test('takes what is only in the table of ports for a guess', async (t) => {
    const services = [
        '<service name="http" method="table" conf="3"/>',
        '<service name="http" method="probed" conf="10"/>',
        '<service name="http" product="nginx" method="table" conf="3"/>',
        '<service name="http"/>',
    ];
    const [host] = await hostsOf(
        `<host>${UP}${ADDRESS}<ports>${services.map((inner, index) => port(inner, index + 1)).join('')}</ports></host>`,
    );
    t.strictSame(
        (host as HostInput).services?.map(({ port: _port, proto: _proto, state: _state, ...told }) => told),
        [{ guessed_name: 'http' }, { name: 'http', info: null }, { name: 'http', info: 'nginx' }, { name: 'http', info: null }],
    );
});

t.test('reads UDP, IPv6 and ping scans', async (t) => {
    const [udp] = await collect(readNmap(createReadStream(fixture('udp.xml'))));
    t.match(udp?.services, [
        { port: 9998, proto: 'udp', state: 'closed' },
        { port: 9999, proto: 'udp', state: 'filtered' },
    ]);
    t.match(await collect(readNmap(createReadStream(fixture('ipv6.xml')))), [{ address: '::1', services: [{ port: 22 }, { port: 8080 }] }]);
    const sweep = await collect(readNmap(createReadStream(fixture('ping-sweep.xml'))));
    t.match(sweep, [{ address: '127.0.0.4', state: 'alive' }, { address: '127.0.0.5' }, { address: '127.0.0.6' }]);
    t.notOk(sweep.some((host) => 'services' in host));
});

t.test('refuses what an interrupted scan left', async (t) => {
    const error = await refusal(readNmap(createReadStream(fixture('interrupted.xml'))));
    t.equal(error.code, 'INVALID_INPUT');
    t.match(error.message, /^Line 19, column 0: the file ends before <\/nmaprun>/);
});

t.test('refuses a scan cut anywhere, and never answers it with another error', async (t) => {
    const whole = await readFile(fixture('udp.xml'));
    const end = whole.lastIndexOf('</nmaprun>') + '</nmaprun>'.length;
    for (let length = 0; length < end; length += 1) {
        const error = await refusal(readNmap(bytes(whole.subarray(0, length))));
        t.equal(error.code, 'INVALID_INPUT', `cut after ${length} bytes`);
    }
});

t.test('reads the same hosts however the bytes are cut', async (t) => {
    const text = scanOf(`<host>${UP}${ADDRESS}<hostnames><hostname name="café.example.test" type="PTR"/></hostnames></host>`);
    const whole = Buffer.from(text);
    const singly = Array.from(whole, (_, index) => whole.subarray(index, index + 1));
    t.same(await collect(readNmap(bytes(...singly))), await collect(readNmap(bytes(whole))));
});

t.test('maps states, addresses and names', async (t) => {
    t.match(
        await hostsOf(
            `<host>${UP}${ADDRESS}<address addr="00:16:3E:5A:21:07" addrtype="mac" vendor="Xensource"/>
             <hostnames><hostname name="ptr.example.test" type="PTR"/><hostname name="asked.example.test" type="user"/></hostnames></host>`,
            '<host><status state="unknown"/><address addr="192.0.2.2"/><ports><port protocol="tcp" portid="80"/></ports></host>',
        ),
        [
            { address: '192.0.2.1', mac: /^00:16:3e:5a:21:07$/i, name: 'asked.example.test', state: 'alive' },
            { address: '192.0.2.2', state: 'unknown' },
        ],
    );
});

t.test('leaves name and info open where the scanner says only that the port is there', async (t) => {
    const ports =
        '<port protocol="tcp" portid="80"><state state="open"/></port><port protocol="tcp" portid="81"><state state="open"/><service name="http"/></port>';
    const [host] = await hostsOf(`<host>${ADDRESS}<ports>${ports}</ports></host>`);
    t.strictSame((host as { services: unknown }).services, [
        { port: 80, proto: 'tcp', state: 'open' },
        { port: 81, proto: 'tcp', state: 'open', name: 'http', info: null },
    ]);
});

t.test('takes a host of which no state is told for alive once one of its ports has answered', async (t) => {
    const host = (state: string) =>
        `<host>${ADDRESS}<ports><port protocol="tcp" portid="80"><state state="${state}"/></port></ports></host>`;
    t.match(await hostsOf(host('open'), host('closed'), host('filtered'), `<host>${ADDRESS}</host>`), [
        { state: 'alive' },
        { state: 'alive' },
        { state: undefined },
        { state: undefined },
    ]);
});

t.test('tells hosts that are down to those who know them, unless there is more to say about them', async (t) => {
    const ports = '<ports><port protocol="tcp" portid="80"><state state="filtered"/></port></ports>';
    t.match(
        await hostsOf(
            `<host><status state="down"/>${ADDRESS}</host>`,
            `<host><status state="down"/><address addr="192.0.2.2"/>${ports}</host>`,
        ),
        [
            { address: '192.0.2.1', state: 'down', if_known: true },
            { address: '192.0.2.2', state: 'down', if_known: undefined },
        ],
    );
});

t.test('tells the ports that were seen closed with others, by their list or as the rest of the scan', async (t) => {
    const hosts = async (scaninfo: string, ...summaries: string[]): Promise<unknown[]> => {
        const listed = '<port protocol="tcp" portid="22"><state state="open"/></port>';
        const found = await hostsOf(scaninfo, ...summaries.map((one) => `<host>${UP}${ADDRESS}<ports>${one}${listed}</ports></host>`));
        return found.map((host) => (host as { closed_ports?: unknown }).closed_ports);
    };
    const tcp = '<scaninfo type="syn" protocol="tcp" numservices="7" services="20-25,80"/>';
    const rest = '<extraports state="closed" count="6"><extrareasons reason="reset" count="6"/></extraports>';
    const reasons =
        '<extrareasons proto="tcp" ports="24,20-21"/><extrareasons proto="sctp" ports="9"/><extrareasons proto="udp" ports="0-2"/>';
    t.same(await hosts(tcp, rest, `<extraports state="closed" count="4">${reasons}</extraports>`), [
        {
            tcp: [
                [20, 21],
                [23, 25],
                [80, 80],
            ],
        },
        {
            tcp: [
                [20, 21],
                [24, 24],
            ],
            udp: [[1, 2]],
        },
    ]);

    const filtered = `<extraports state="filtered" count="6">${reasons}</extraports>`;
    t.same(await hosts(tcp, filtered, `${rest}${filtered}`, rest.replace('6', '5'), ''), [undefined, undefined, undefined, undefined]);
    t.same(await hosts(`${tcp}<scaninfo protocol="udp" services="53"/>`, rest), [undefined]);
    t.same(await hosts('<scaninfo/>', rest), [undefined]);
});

t.test('warns once of hosts of which a file tells how many ports are closed, and not which', async (t) => {
    const warnings = async (scaninfo: string, ...summaries: string[]): Promise<string[]> => {
        const told: string[] = [];
        const scan = scanOf(scaninfo, ...summaries.map((one) => `<host>${UP}${ADDRESS}<ports>${one}</ports></host>`));
        await collect(readNmap(bytes(scan), { onWarning: (message) => told.push(message) }));
        return told;
    };
    const tcp = '<scaninfo type="syn" protocol="tcp" numservices="6" services="20-25"/>';
    const udp = '<scaninfo type="udp" protocol="udp" numservices="1" services="53"/>';
    const summary = (state: string, reasons: string): string => `<extraports state="${state}" count="6">${reasons}</extraports>`;
    const [old, listed] = [
        '<extrareasons reason="reset" count="6"/>',
        '<extrareasons reason="reset" count="6" proto="tcp" ports="20-25"/>',
    ];
    const [closed, filtered] = [summary('closed', old), summary('filtered', old)];
    const known = [closed, summary('closed', listed), `${summary('closed', listed)}${filtered}`, filtered, ''];
    t.same(await warnings(tcp, ...known), []);
    t.same(await warnings('<scaninfo type="sctpinit" protocol="sctp" numservices="6" services="20-25"/>', closed), []);

    const warning = (hosts: number): string =>
        `Hosts of which the scan says how many ports are closed, and not which: ${hosts}. Services on these ports stay as they are`;
    t.same(await warnings(tcp, ...known, `${closed}${filtered}`, `${filtered}${closed}`), [warning(2)]);
    t.same(await warnings(`${tcp}${udp}`, closed, summary('closed', listed)), [warning(1)]);
});

t.test('makes no hosts of addresses that a list scan names and does not probe', async (t) => {
    const listed = (address: string): string => `<host><status state="unknown"/><address addr="${address}"/></host>`;
    t.same(await hostsOf(listed('192.0.2.1'), listed('192.0.2.2')), []);
});

t.test('leaves out hosts without an address, port 0 and protocols that have no ports here', async (t) => {
    const port = (protocol: string, id: number): string => `<port protocol="${protocol}" portid="${id}"><state state="open"/></port>`;
    const hosts = await hostsOf(
        `<host>${UP}</host>`,
        `<host>${UP}${ADDRESS}<ports>${port('sctp', 5)}${port('ip', 1)}${port('tcp', 0)}${port('tcp', 7)}</ports></host>`,
    );
    t.equal(hosts.length, 1);
    t.match(hosts, [{ services: [{ port: 7 }] }]);
    t.equal((hosts as { services: unknown[] }[])[0]?.services.length, 1);
});

t.test('keeps a port once', async (t) => {
    const port = '<port protocol="tcp" portid="80"><state state="open"/></port>';
    const [host] = (await hostsOf(`<host>${UP}${ADDRESS}<ports>${port.repeat(1000)}</ports></host>`)) as { services: unknown[] }[];
    t.equal(host?.services.length, 1);
});

t.test('writes a service as nmap prints it', async (t) => {
    const [host] = await hostsOf(
        `<host>${UP}${ADDRESS}<ports><port protocol="tcp" portid="22"><state state="unfiltered"/>
         <service name="ssh" product="OpenSSH" version="9.2p1 Debian 2" extrainfo="protocol 2.0" ostype="Linux"/></port></ports></host>`,
    );
    t.match(host, {
        os_name: 'Linux',
        services: [{ state: 'unknown', name: 'ssh', info: 'OpenSSH 9.2p1 Debian 2 (protocol 2.0)' }],
    });
});

t.test('takes the likeliest operating system apart', async (t) => {
    const match = (name: string, accuracy: number, classes: string): string =>
        `<host>${UP}${ADDRESS}<os><osmatch name="Other" accuracy="80"><osclass vendor="X" osfamily="Y" accuracy="80"/></osmatch>
         <osmatch name="${name}" accuracy="${accuracy}">${classes}</osmatch></os></host>`;
    const windows = '<osclass type="general purpose" vendor="Microsoft" osfamily="Windows" osgen="7" accuracy="96"/>';
    t.match(await hostsOf(match('Microsoft Windows 7 SP1', 96, windows)), [{ os_name: 'Microsoft Windows', os_flavor: '7', os_sp: 'SP1' }]);

    const bsd = '<osclass vendor="OpenBSD" osfamily="OpenBSD" osgen="4.X" accuracy="99"/>';
    t.match(await hostsOf(match('OpenBSD 4.0 (x86)', 99, bsd)), [
        { os_name: 'OpenBSD', os_flavor: '4.X', arch: 'x86', detected_arch: 'x86' },
    ]);
    t.match(await hostsOf(match('Microsoft Windows Server 2012 (X64)', 99, windows)), [{ arch: 'x64', detected_arch: 'X64' }]);
    t.match(await hostsOf(match('Linux 5.4 (arm64)', 99, '')), [{ arch: 'Unknown', detected_arch: 'arm64' }]);
    t.match(await hostsOf(match('Some appliance', 99, '')), [{ os_name: 'Some appliance' }]);
    t.match(await hostsOf(match('Unlikely', 10, '')), [{ os_name: 'X Y' }]);
});

t.test('reads the older form with classes beside their match', async (t) => {
    const os =
        '<os><osclass vendor="Linux" osfamily="Linux" osgen="2.6.X" accuracy="100"/><osmatch name="Linux 2.6.9" accuracy="100"/></os>';
    t.match(await hostsOf(`<host>${UP}${ADDRESS}${os}</host>`), [{ os_name: 'Linux', os_flavor: '2.6.X' }]);
});

t.test('refuses what is not a scan, with line and column', async (t) => {
    const cases: [string, RegExp][] = [
        ['', /^Line 1, column 0: the file ends/],
        ['no xml', /^Line 1, column 6: not well-formed XML: text data outside of root node$/],
        ['<html></html>', /^Line 1, column 6: .*not a scan of nmap/],
        ['<nmaprun>\n<host></hots></nmaprun>', /^Line 2, column 13: not well-formed XML: unexpected close tag/],
        [scanOf('<host>&bomb;</host>'), /^Line 3, .*undefined entity/],
        ['<!DOCTYPE nmaprun [<!ENTITY a "b">]><nmaprun>&a;</nmaprun>', /document type with declarations/],
        [scanOf('<a>'.repeat(100)), /nested deeper than 64/],
        [`${scanOf()}<nmaprun/>`, /only one root/],
        [scanOf(`<host>${UP}<address addr="nonsense"/></host>`), /^Line 3, column 59: in the host that ends here, .*address/],
        [scanOf(`<host>${UP}${ADDRESS}<ports><port protocol="tcp" portid="7e9"/></ports></host>`), /services/],
    ];
    for (const [text, message] of cases) {
        const error = await refusal(readNmap(bytes(text)));
        t.equal(error.code, 'INVALID_INPUT');
        t.match(error.message, message);
        t.notMatch(error.message, '\n');
        t.notMatch(error.message, 'nonsense');
    }
});

t.test('takes control characters that a scanner wrote, though XML has none', async (t) => {
    const [host] = (await hostsOf(
        `<host>${UP}${ADDRESS}<hostscript>${script('x', '\u0001', 'a\u0001\u007fb&#x1;')}</hostscript></host>`,
    )) as HostInput[];
    t.match(host?.notes, [{ data: { output: 'a\u0001\u007fb&#x1;' } }]);
});

t.test('takes no time of its own for each control character', async (t) => {
    const length = 512 * 1024;
    const taken = async (text: string): Promise<number> => {
        const costs: number[] = [];
        for (let time = 0; time < 3; time += 1) {
            const before = process.cpuUsage();
            await hostsOf(`<host>${UP}${ADDRESS}<hostscript>${script('x', 'y', text)}</hostscript>${text}</host>`);
            const { user, system } = process.cpuUsage(before);
            costs.push((user + system) / 1000);
        }
        return Math.min(...costs);
    };

    // With an error for each of them it was 3 s, 300 times as much as other text.
    const plain = Math.max(await taken('a'.repeat(length)), 5);
    for (const hostile of ['\u0001', '\uffff', '&#1;']) {
        const text = hostile.repeat(length / Buffer.byteLength(hostile));
        const spent = await taken(text);
        t.ok(spent < 50 * plain, `${JSON.stringify(hostile)}: ${spent} ms, plain text ${plain}`);
    }
});

t.test('refuses text that is not UTF-8', async (t) => {
    const error = await refusal(readNmap(bytes('<nmaprun>\n', Uint8Array.of(0xff), '</nmaprun>')));
    t.match(error.message, /^Line 2, column 0: not UTF-8 text/);
});

t.test('bounds a single tag, text or comment', async (t) => {
    async function* endless(start: string, middle: string): AsyncGenerator<Uint8Array> {
        yield Buffer.from(start);
        const block = Buffer.from(middle.repeat(64 * 1024));
        for (let written = 0; written < 16 * 1024 * 1024; written += block.byteLength) {
            yield block;
        }

        t.fail('was read to its end');
    }

    for (const [start, middle] of [
        ['<nmaprun args="', 'x'],
        ['<nmaprun ', 'a'],
        ['<nmaprun>', 'text'],
        ['<nmaprun><!--', 'x'],
        ['<nmaprun><![CDATA[', 'x'],
        ['<nmaprun><?pi ', 'x'],
        ['<!DOCTYPE ', 'x'],
        ['<nmaprun>&', 'x'],
    ] as const) {
        const error = await refusal(readNmap(endless(start, middle)));
        t.equal(error.code, 'INVALID_INPUT', start);
    }
});

t.test('passes over the long output of a script', async (t) => {
    const script = `<hostscript><script id="x" output="${'x'.repeat(300_000)}"/></hostscript>`;
    t.match(await hostsOf(`<host>${UP}${ADDRESS}${script}</host>`), [{ address: '192.0.2.1' }]);
});

t.test('answers anything with hosts or a ScanwireError', async (t) => {
    const whole = await readFile(fixture('services.xml'));
    const mutation = fc.record({
        at: fc.nat(whole.byteLength - 1),
        drop: fc.nat(40),
        insert: fc.oneof(fc.string(), fc.constantFrom('<', '>', '"', '&', ']]>')),
    });
    await fc.assert(
        fc.asyncProperty(fc.array(mutation, { minLength: 1, maxLength: 3 }), async (mutations) => {
            let text = whole.toString('latin1');
            for (const { at, drop, insert } of mutations) {
                text = text.slice(0, at) + insert + text.slice(at + drop);
            }

            try {
                await collect(readNmap(bytes(text)));
            } catch (error) {
                t.ok(error instanceof ScanwireError, String(error));
            }
        }),
        { numRuns: 200 },
    );
});

const script = (id: string, inner = '', output = 'out'): string => `<script id="${id}" output="${output}">${inner}</script>`;
const port = (inner: string, portid = 80, protocol = 'tcp'): string =>
    `<port protocol="${protocol}" portid="${portid}"><state state="open"/>${inner}</port>`;

t.test('makes notes of what scripts say of ports and of the host', async (t) => {
    const table = `<table key="keys">
        <table><elem key="type">rsa</elem><elem key="bits">2048</elem></table>
        <table><elem>one</elem><elem>t&amp;<![CDATA[<wo>]]></elem></table>
    </table><elem key="keys">again</elem><elem>unnamed</elem>`;
    const [host] = await hostsOf(
        `<host>${UP}${ADDRESS}<ports>${port(script('ssh-hostkey', table))}${port(script('none'), 9, 'sctp')}</ports>
        <hostscript>${script('clock-skew', '', '1s&#xa;2s')}</hostscript></host>`,
    );
    t.strictSame((host as { notes?: unknown }).notes, [
        {
            ...{ port: 80, proto: 'tcp' },
            ntype: 'nmap.nse.ssh-hostkey',
            data: {
                output: 'out',
                elements: { keys: [{ type: 'rsa', bits: '2048' }, ['one', 't&<wo>']], 'keys (2)': 'again', '3': 'unnamed' },
            },
        },
        { ntype: 'nmap.nse.clock-skew', data: { output: '1s\n2s' } },
    ]);
    t.notOk('vulns' in (host as object));
});

t.test('reads over what scripts say of no host, and makes no vulnerability of text alone', async (t) => {
    const vulnerable = script('ssl-poodle', '', '&#xa;  VULNERABLE:&#xa;  State: VULNERABLE&#xa;  IDs:  CVE:CVE-2014-3566');
    const hosts = await hostsOf(
        `<prescript>${script('broadcast-ping')}</prescript>`,
        `<host>${UP}${ADDRESS}<ports>${port(vulnerable)}</ports></host>`,
        `<postscript>${script('ssh-hostkey')}</postscript>`,
    );
    const [host] = hosts as HostInput[];
    t.same([hosts.length, host?.notes?.map(({ ntype }) => ntype), host?.vulns], [1, ['nmap.nse.ssl-poodle'], undefined]);
});

t.test('makes vulnerabilities of what vulners and the scripts of the vulns library report', async (t) => {
    const library = (state: string, title = '<elem key="title">A title</elem>'): string => `<table key="CVE-2014-3566">${title}
        <elem key="state">${state}</elem><table key="ids"><elem>CVE:CVE-2014-3566</elem><elem>BID:70574</elem><elem>odd</elem></table>
        <table key="description"><elem>&#xa;Of it.</elem></table>
        <table key="refs"><elem>https://example.test/a</elem></table></table>`;
    const vulners = `<table key="cpe:/a:openbsd:openssh:7.4">
        <table><elem key="id">CVE-2018-15919</elem><elem key="type">cve</elem><elem key="cvss">5.0</elem></table>
        <table><elem key="id">EDB-ID:45233</elem><elem key="type">exploitdb</elem><elem key="is_exploit">true</elem></table>
        <table><elem key="id">CVE-2018-15919</elem></table></table><elem key="cpe:/a:x">text</elem>`;
    const [host] = await hostsOf(
        `<host>${UP}${ADDRESS}<ports>${port(script('vulners', vulners) + script('ssl-poodle', library('VULNERABLE (Exploitable)')))}</ports>
        <hostscript>${script('smb-vuln-ms10-054', library('NOT VULNERABLE'))}${script('smb-vuln', library('LIKELY VULNERABLE', ''))}</hostscript></host>`,
    );
    const { vulns, notes = [] } = host as { vulns?: unknown; notes?: unknown[] };
    t.strictSame(vulns, [
        { port: 80, proto: 'tcp', name: 'CVE-2018-15919', info: 'CVSS 5.0, cpe:/a:openbsd:openssh:7.4\nReferences: CVE-2018-15919' },
        {
            ...{ port: 80, proto: 'tcp', name: 'A title' },
            info: 'State: VULNERABLE (Exploitable)\nOf it.\nReferences: CVE-2014-3566 BID-70574 odd URL-https://example.test/a',
        },
        {
            name: 'CVE-2014-3566',
            info: 'State: LIKELY VULNERABLE\nOf it.\nReferences: CVE-2014-3566 BID-70574 odd URL-https://example.test/a',
        },
    ]);
    t.equal(notes.length, 4);
});

t.test('refuses a second scan in the same file, and a host without an end', async (t) => {
    t.match((await refusal(readNmap(bytes('<nmaprun/><again/>')))).message, /only one root/);
    async function* endless(): AsyncGenerator<Uint8Array> {
        yield Buffer.from(`<nmaprun><host>${ADDRESS}`);
        const part = Buffer.from(script('x', '', 'y'.repeat(500_000)));
        for (let count = 0; count < 200; count += 1) {
            yield part;
        }
    }
    t.match((await refusal(readNmap(endless(), { maxHost: 2 }))).message, /a single host is longer than 2 MiB/);
});

t.test('reads the scripts of a real scan', async (t) => {
    const [host, other] = await collect(readNmap(createReadStream(fixture('scripts.xml'))));
    t.match(
        host?.notes?.map(({ port, ntype }) => [port, ntype]),
        [
            [8000, 'nmap.nse.http-methods'],
            [8000, 'nmap.nse.http-title'],
            [8443, 'nmap.nse.ssl-dh-params'],
            [8443, 'nmap.nse.ssl-cert'],
            [undefined, 'nmap.nse.fcrdns'],
        ],
    );
    t.match(host?.notes?.[1]?.data, { output: 'Example', elements: { title: 'Example' } });
    t.match(host?.vulns, [
        {
            port: 8443,
            name: 'Diffie-Hellman Key Exchange Insufficient Group Strength',
            info: /^State: VULNERABLE\nTransport.*\nReferences: URL-https:\/\/weakdh.org$/s,
        },
    ]);
    t.equal(host?.vulns?.length, 1);
    t.match(other?.notes, [{ ntype: 'nmap.nse.fcrdns' }]);
});
