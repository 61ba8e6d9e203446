import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { readScan } from '../../../../lib/inventory/scan-files/read-scan.ts';
import { collect } from '../../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

const fixture = (name: string): URL => new URL(`../../../../../fixtures/scans/${name}`, import.meta.url);
const metasploit = (inner: string): string =>
    `<MetasploitV4><hosts><host><address>192.0.2.1</address>${inner}</host></hosts></MetasploitV4>`;
const nessus = (inner: string, name = '192.0.2.1'): string =>
    `<NessusClientData_v2><Report><ReportHost name="${name}">${inner}</ReportHost></Report></NessusClientData_v2>`;

t.test("reads the Metasploit Framework's own sample of an export", async (t) => {
    t.match(await collect(readScan(createReadStream(fixture('metasploit-v4.xml')))), [
        {
            address: '192.0.2.75',
            mac: '00:0C:29:63:B3:95',
            name: undefined,
            os_name: 'Linux',
            os_flavor: '2.6.X',
            purpose: 'device',
            virtual_host: 'VMWare',
            state: 'alive',
            services: [{ port: 514, proto: 'tcp', state: 'open', name: 'shell', info: null }],
            notes: [{ port: undefined, ntype: 'smb.shares', data: { raw: /^BAh7.+==$/ } }],
        },
    ]);
});

t.test('reads hosts, services, notes, vulnerabilities and web sites of an export of Metasploit', async (t) => {
    const hosts = await collect(readScan(createReadStream(fixture('metasploit.xml'))));
    t.strictSame(hosts, [
        {
            address: '192.0.2.10',
            mac: '00:16:3e:5a:21:07',
            name: 'web.example.test',
            os_name: 'Linux',
            os_flavor: 'Debian',
            os_sp: '12',
            arch: 'x64',
            purpose: 'server',
            comments: 'the shop & its café in C:\\x64',
            virtual_host: 'VMWare',
            state: 'alive',
            services: [
                { port: 161, proto: 'udp', state: 'unknown' },
                { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx 1.22.1' },
            ],
            notes: [
                { ntype: 'host.os.session_fingerprint', data: { raw: 'BAh7BjoJbmFtZSINd2luZG93cyA=' }, seen: true },
                { port: 443, proto: 'tcp', ntype: 'http.title', data: { title: 'Shop', port: 443 }, critical: true },
                { ntype: null, data: {} },
                { port: 443, proto: 'tcp', ntype: 'vuln.evidence', data: { raw: 'leaked 64 bytes' } },
                { ntype: 'kernel.version', data: {} },
            ],
            vulns: [
                {
                    port: 443,
                    proto: 'tcp',
                    name: 'OpenSSL Heartbeat (Heartbleed) Information Leak',
                    info: 'Module auxiliary/scanner/ssl/openssl_heartbleed successfully leaked info\nReferences: CVE-2014-0160 URL-https://heartbleed.com/',
                    exploited_at: new Date('2026-11-20T08:30:00Z'),
                    vuln_detail_count: 0,
                    vuln_attempt_count: 2,
                },
                { name: 'Old kernel', info: null },
            ],
        },
        { address: '2001:db8::8' },
        {
            address: '192.0.2.10',
            notes: [
                {
                    ntype: 'metasploit.web_site.443.web.example.test',
                    data: { vhost: 'web.example.test', port: 443, ssl: true, options: { raw: 'BAh7AA==' } },
                },
            ],
        },
        {
            address: '192.0.2.10',
            notes: [
                {
                    ntype: 'metasploit.web_site.443.shop.example.test',
                    data: { vhost: 'shop.example.test', port: 443, ssl: true, comments: 'the old shop' },
                },
            ],
        },
        {
            address: '192.0.2.10',
            vulns: [
                {
                    name: 'Reflected cross-site scripting: GET https://shop.example.test:443/search?q=shoes, parameter q',
                    info: [
                        'Risk: 3, confidence: 90, category: XSS',
                        'GET https://shop.example.test:443/search?q=shoes, parameter q',
                        'What is searched for comes back as it is.',
                        'App Developer',
                        'Payload: <b>',
                        'Proof: <b>shoes</b>',
                    ].join('\n\n'),
                },
            ],
        },
        {
            address: '2001:db8::8',
            vulns: [
                {
                    name: 'Information: http://[2001:db8::8]:8080/',
                    info: 'category: Information\n\nhttp://[2001:db8::8]:8080/',
                },
            ],
        },
    ]);
    t.notMatch(JSON.stringify(hosts), /secret|never read/);
});

t.test('takes every column of a host and of a vulnerability that has a place here', async (t) => {
    const texts = { comm: 'tap0', os_lang: 'English', scope: 'eth1', virtual_host: 'KVM', detected_arch: 'x86_64', info: 'in the cellar' };
    const columns = Object.entries({ ...texts, nexpose_data_asset_id: 12 }).map(([name, value]) => {
        const element = name.replaceAll('_', '-');
        return `<${element}>${value}</${element}>`;
    });
    const vuln = '<name>x</name><nexpose-data-vuln-def-id>9</nexpose-data-vuln-def-id>';
    t.match(await collect(readScan(bytes(metasploit(`${columns.join('')}<vulns><vuln>${vuln}</vuln></vulns>`)))), [
        { ...texts, nexpose_data_asset_id: 12, vulns: [{ name: 'x', nexpose_data_vuln_def_id: 9 }] },
    ]);
});

t.test('keeps data of notes that is no object as text', async (t) => {
    const datas = ['[1]', '5', 'plain', 'null', '{"a":', ''];
    const notes = datas.map((data) => `<note><ntype>x</ntype><data>${data}</data></note>`).join('');
    const [host] = await collect(readScan(bytes(metasploit(`<notes>${notes}</notes>`))));
    t.strictSame(
        host?.notes?.map(({ data }) => data),
        [{ raw: '[1]' }, { raw: '5' }, { raw: 'plain' }, { raw: 'null' }, { raw: '{"a":' }, {}],
    );
});

t.test('reads a report of Nessus: what is informational as notes', async (t) => {
    const [host, printer] = await collect(readScan(createReadStream(fixture('office.nessus'))));
    t.match(host, {
        address: '192.0.2.25',
        state: 'alive',
        name: 'mail.example.test',
        mac: '00:16:3E:5A:21:08',
        os_name: 'Linux Kernel 6.1 on Debian 12.0',
    });
    t.strictSame(host?.services, [
        { port: 25, proto: 'tcp', state: 'open', name: 'smtp', info: null },
        { port: 161, proto: 'udp', state: 'open' },
    ]);
    t.strictSame(host?.notes, [
        {
            ntype: 'nessus.plugin.19506',
            data: {
                name: 'Nessus Scan Information',
                family: 'Settings',
                synopsis: 'Information about the scan.',
                description: 'This plugin displays information about the scan.',
                plugin_output: 'Scan type : Normal',
            },
        },
        {
            port: 25,
            proto: 'tcp',
            ntype: 'nessus.plugin.11219',
            data: { name: 'Nessus SYN scanner', family: 'Port scanners', plugin_output: 'Port 25/tcp was found to be open' },
        },
    ]);
    t.strictSame(host?.vulns, [
        {
            port: 25,
            proto: 'tcp',
            name: 'SSL / TLS Renegotiation Handshakes MiTM Plaintext Data Injection',
            info: [
                'Severity: medium, CVSS 5.8',
                'The remote service allows insecure renegotiation.',
                'The remote service encrypts traffic & allows renegotiation.',
                'Contact the vendor.',
                'TLSv1 supports insecure renegotiation.\nReferences: CVE-2009-3555 CVE-2009-9999 BID-36935 CERT-120541 URL-http://www.example.test/one URL-http://www.example.test/two NSS-42880',
            ].join('\n\n'),
        },
        { port: 161, proto: 'udp', name: 'Plugin 1', info: 'Severity: critical, CVSS 9.8\nReferences: NSS-1' },
        {
            name: 'ICMP Timestamp Request Remote Date Disclosure',
            info: 'Severity: low\nReferences: CVE-1999-0524 NSS-10114',
        },
    ]);
    t.strictSame(printer, { address: '192.0.2.26', state: 'alive', name: 'PRINTER' });
});

t.test('takes a name of Nessus that ends with ? for a guess', async (t) => {
    const items = ['unknown', 'smtp?', 'unknown', 'www', 'http?'].map(
        (name, index) => `<ReportItem port="${index < 3 ? 25 : 80}" svc_name="${name}" protocol="tcp" severity="0" pluginID="1"/>`,
    );
    const [host] = await collect(readScan(bytes(nessus(items.join('')))));
    t.strictSame(host?.services, [
        { port: 25, proto: 'tcp', state: 'open', guessed_name: 'smtp' },
        { port: 80, proto: 'tcp', state: 'open', name: 'www', info: null },
    ]);
});

t.test('reads the id of a host in Nexpose', async (t) => {
    for (const [element, expected] of [
        ['<nexpose-data-asset-id>4711</nexpose-data-asset-id>', { address: '192.0.2.1', nexpose_data_asset_id: 4711 }],
        ['<nexpose-data-asset-id/>', { address: '192.0.2.1' }],
        ['<nexpose-data-asset-id>NULL</nexpose-data-asset-id>', { address: '192.0.2.1' }],
    ] as const) {
        const [host] = await collect(readScan(bytes(metasploit(element))));
        t.strictSame(host, expected, element);
    }
    await t.rejects(collect(readScan(bytes(metasploit('<nexpose-data-asset-id>x</nexpose-data-asset-id>')))), {
        message: /nexpose_data_asset_id/,
    });
});

t.test('cuts off what a scanner says of a vulnerability at the length that is kept', async (t) => {
    const long = '😀'.repeat(40_000);
    const ofNessus = nessus(
        `<ReportItem port="0" protocol="tcp" severity="2" pluginID="1" pluginName="x"><plugin_output>${long}</plugin_output><cve>CVE-2026-0001</cve></ReportItem>`,
    );
    for (const [text, end] of [
        [ofNessus, /😀…\nReferences: CVE-2026-0001 NSS-1$/],
        [metasploit(`<vulns><vuln><name>x</name><info>${long}</info></vuln></vulns>`), /😀…$/],
    ] as const) {
        const [host] = await collect(readScan(bytes(text)));
        t.match(host?.vulns?.[0]?.info, end);
    }
});

t.test('reads a report whose policy lists more plugins than a tag may be long, and a long output', async (t) => {
    const plugins = '123456;'.repeat(400_000);
    const policy = `<Policy><policyName>x</policyName><Preferences><preference><name>plugin_set</name><value>${plugins}</value></preference></Preferences></Policy>`;
    const item = `<ReportItem port="0" severity="0" pluginID="1" pluginName="x"><plugin_output>${plugins}</plugin_output></ReportItem>`;
    const report = nessus(item).replace('<Report>', `${policy}<Report>`);
    const [host] = await collect(readScan(bytes(report)));
    t.strictSame(host?.notes?.[0]?.data, { name: 'x', family: '', plugin_output: plugins });

    for (const text of [
        report.replace('<value>', `<value>${plugins.repeat(3)}`),
        report.replace('<plugin_output>', `<plugin_output>${plugins.repeat(3)}`),
        report.replace('<value>', `x<value x="${plugins.repeat(3)}">`),
        report.replace('<plugin_output>', `x<plugin_output x="${plugins.repeat(3)}">`),
    ]) {
        t.match((await refusal(readScan(bytes(text)))).message, /a single tag, text or comment is longer than 8 MiB/);
    }
});

t.test('refuses what is broken in them, with the line and the reason', async (t) => {
    const cases: [string, RegExp][] = [
        [metasploit('<services><service><port>x</port><proto>tcp</proto></service></services>'), /services\[0\].port/],
        [metasploit('<vulns><vuln><name/></vuln></vulns>'), /vulns\[0\].name/],
        [metasploit('<vulns><vuln><name>x</name><exploited-at>soon</exploited-at></vuln></vulns>'), /vulns\[0\].exploited_at/],
        [metasploit('').replace('192.0.2.1', 'nowhere'), /address/],
        ['<MetasploitV5><web_sites><web_site><port>80</port></web_site></web_sites></MetasploitV5>', /address is required/],
        ['<MetasploitV5><web_vulns><web_vuln><name>x</name></web_vuln></web_vulns></MetasploitV5>', /address is required/],
        [metasploit('').replace('</MetasploitV4>', ''), /the file ends before <\/MetasploitV4>/],
        [metasploit('<notes>'.repeat(80)), /nested deeper than 64/],
        [metasploit('&bomb;'), /undefined entity/],
        [nessus('', 'a.example.test'), /address is required/],
        [nessus('<ReportItem port="x" protocol="tcp" severity="1"/>'), /services\[0\].port/],
        [nessus('<ReportItem port="99999" protocol="tcp" severity="0"/>'), /services\[0\].port/],
        [nessus('').replace('</Report>', ''), /unexpected close tag/],
        ['<NessusClientData/>', /this is XML, but not a scan of nmap, Metasploit or Nessus/],
    ];
    for (const [text, message] of cases) {
        const error = await refusal(readScan(bytes(text)));
        t.equal(error.code, 'INVALID_INPUT');
        t.match(error.message, /^Line \d+, column \d+: /);
        t.match(error.message, message);
    }
});

t.test('refuses them cut anywhere, and never answers with another error', async (t) => {
    for (const name of ['metasploit.xml', 'metasploit-v4.xml', 'office.nessus']) {
        const whole = await readFile(fixture(name));
        for (let length = 0; length < whole.length - 2; length += 7) {
            t.equal((await refusal(readScan(bytes(whole.subarray(0, length))))).code, 'INVALID_INPUT', `${name} cut after ${length} bytes`);
        }
    }
});
