import t, { type Test } from 'tap';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import { bytes, refusal } from '../lib/inventory/scan-files/scan-source.ts';

const MANY = 200_000;
/** Of the processor, in milliseconds: where each is looked at before they are counted it is seconds. */
const ALLOWED = 1500;

async function refusedSoon(t: Test, file: string, field: string, most: number): Promise<void> {
    let [spent, tries] = [Number.POSITIVE_INFINITY, 0];
    for (; spent > ALLOWED && tries < 3; tries += 1) {
        const before = process.cpuUsage();
        const error = await refusal(readScan(bytes(file)));
        const { user, system } = process.cpuUsage(before);
        spent = (user + system) / 1000;
        t.match(error, { code: 'INVALID_INPUT', field });
        t.match(error.message, `${field} must contain less than or equal to ${most} items`);
    }
    t.ok(spent <= ALLOWED, `${spent} of ${ALLOWED} ms`);
}

const NESSUS = ['<NessusClientData_v2><Report><ReportHost name="192.0.2.1">', '</ReportHost></Report></NessusClientData_v2>'] as const;
const METASPLOIT = ['<MetasploitV5><hosts><host><address>192.0.2.1</address>', '</host></hosts></MetasploitV5>'] as const;

t.test('more below a host than it may have is refused before each is looked at', async (t) => {
    const line = (field: string, each: string): string => `{"address":"192.0.2.1","${field}":[${Array(MANY).fill(each).join()}]}\n`;
    await refusedSoon(t, line('notes', '{"data":{}}'), 'notes', 16_384);
    await refusedSoon(t, line('vulns', '{"name":"x","info":""}'), 'vulns', 16_384);
    await refusedSoon(t, line('services', '{"port":1}'), 'services', 131_070);
});

t.test('also in the reports of Nessus, Metasploit and nmap', async (t) => {
    await refusedSoon(t, NESSUS.join('<ReportItem/>'.repeat(MANY)), 'notes', 16_384);
    await refusedSoon(t, NESSUS.join('<ReportItem severity="1"/>'.repeat(MANY)), 'vulns', 16_384);
    await refusedSoon(t, METASPLOIT.join(`<notes>${'<note/>'.repeat(MANY)}</notes>`), 'notes', 16_384);
    await refusedSoon(t, METASPLOIT.join(`<vulns>${'<vuln/>'.repeat(MANY)}</vulns>`), 'vulns', 16_384);
    await refusedSoon(t, METASPLOIT.join(`<vulns><vuln><notes>${'<note/>'.repeat(MANY)}</notes></vuln></vulns>`), 'notes', 16_384);
    const scripts = '<script id="x" output=""/>'.repeat(MANY);
    await refusedSoon(t, `<nmaprun><host><address addr="192.0.2.1"/>${scripts}</host></nmaprun>`, 'notes', 16_384);
});

t.test('what is behind such a host is still looked at', async (t) => {
    const items = '<ReportItem/>'.repeat(20_000);
    const host = (name: string, inside: string): string => `<ReportHost name="${name}">${inside}</ReportHost>`;
    const hosts = [host('192.0.2.1', items), host('', ''), host('192.0.2.3', items)];
    const { problems } = await refusal(readScan(bytes(`<NessusClientData_v2><Report>${hosts.join('\n')}</Report></NessusClientData_v2>`)));
    t.match(problems, [
        { line: 1, field: 'notes' },
        { line: 2, field: 'address' },
        { line: 3, field: 'notes' },
    ]);
});
