import t from 'tap';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import { bytes } from '../lib/inventory/scan-files/scan-source.ts';
import { collect } from '../support/collect.ts';

const LONG = 'x'.repeat(70_000);
const CUT = `${'x'.repeat(65_535)}…`;
/** What a server may say, and what is kept of it. */
const SAID = [
    ['a\0b', 'a\ufffdb'],
    ['a\ud800b', 'a\ufffdb'],
    [LONG, CUT],
] as const;

/** A line of each scanner whose server says that. */
const LINES: Readonly<Record<string, (text: string) => object>> = {
    httpx: (text) => ({ url: 'https://b.example', status_code: 200, host: '192.0.2.2', port: '443', scheme: 'https', webserver: text }),
    'the lines of masscan': (text) => ({
        ip: '192.0.2.2',
        port: 443,
        proto: 'tcp',
        rec_type: 'banner',
        data: { service_name: 'http', banner: text },
    }),
    'the list of masscan': (text) => ({ ip: '192.0.2.2', ports: [{ port: 443, proto: 'tcp', service: { name: 'http', banner: text } }] }),
    naabu: (text) => ({ ip: '192.0.2.2', port: 443, protocol: 'tcp', name: 'http', product: text }),
};

for (const [scanner, line] of Object.entries(LINES)) {
    t.test(`what one server says of itself does not make a file of ${scanner} fail`, async (t) => {
        for (const [text, info] of SAID) {
            const lines = [{ address: '192.0.2.1' }, line(text)].map((one) => `${JSON.stringify(one)}\n`).join('');
            t.match(await collect(readScan(bytes(lines))), [
                { address: '192.0.2.1' },
                { address: '192.0.2.2', services: [{ port: 443, info }] },
            ]);
        }
    });
}

t.test('nor does it make a file of zgrab2 or of naabu fail by the name of the service', async (t) => {
    for (const [text, name] of SAID) {
        const lines = [
            { ip: '192.0.2.1', data: { x: { status: 'success', port: 80, protocol: text } } },
            { ip: '192.0.2.1', port: 80, protocol: 'tcp', name: text },
        ];
        const hosts = await collect(readScan(bytes(lines.map((one) => `${JSON.stringify(one)}\n`).join(''))));
        t.match(hosts, [{ services: [{ name }] }, { services: [{ name }] }]);
    }
});

const port = (service: string) =>
    `<nmaprun><host><address addr="192.0.2.1"/><ports><port protocol="tcp" portid="80"><state state="open"/>${service}</port></ports></host></nmaprun>`;
const item = (name: string) =>
    `<NessusClientData_v2><Report><ReportHost name="192.0.2.1"><ReportItem port="80" protocol="tcp" svc_name="${name}" severity="0" pluginID="1"/></ReportHost></Report></NessusClientData_v2>`;
const row = (text: string) =>
    `<MetasploitV5><hosts><host><address>192.0.2.1</address><services><service><port>80</port><proto>tcp</proto><name>${text}</name><info>${text}</info></service></services></host></hosts></MetasploitV5>`;

t.test('nor a scan in XML', async (t) => {
    for (const [file, service] of [
        [port(`<service name="http" product="${LONG}" method="probed"/>`), { name: 'http', info: CUT }],
        [port(`<service name="${LONG}" method="probed"/>`), { name: CUT }],
        [port(`<service name="${LONG}" method="table"/>`), { guessed_name: CUT }],
        [port('<service name="http" product="a\0b" method="probed"/>'), { info: 'a\ufffdb' }],
        [port(`<service name="http" banner="${LONG}"/>`), { info: CUT }],
        [item(LONG), { name: CUT }],
        [item('a\0b?'), { guessed_name: 'a\ufffdb' }],
        [row(LONG), { name: CUT, info: CUT }],
        [row('a\0b'), { name: 'a\ufffdb', info: 'a\ufffdb' }],
    ] as const) {
        t.match(await collect(readScan(bytes(file))), [{ address: '192.0.2.1', services: [service] }], file.slice(0, 40));
    }
});
