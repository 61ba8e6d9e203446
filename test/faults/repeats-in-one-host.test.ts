import t, { type Test } from 'tap';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import { bytes } from '../lib/inventory/scan-files/scan-source.ts';
import { collect } from '../support/collect.ts';

const MANY = 10_000;
/** Of the processor, in milliseconds: with the square of them it is seconds. */
const ALLOWED = 1500;

/** CPU time in milliseconds, the least of up to three: what else goes on in the machine only ever adds to it. */
async function leastCost(work: () => Promise<unknown>): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 3 && least > ALLOWED; tries += 1) {
        const before = process.cpuUsage();
        await work();
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, (user + system) / 1000);
    }
    return least;
}

async function costsWhatItsLengthCosts(t: Test, file: string, expected: object): Promise<void> {
    let found: readonly unknown[] = [];
    const spent = await leastCost(async () => {
        found = await collect(readScan(bytes(file)));
    });
    t.match(found, [expected]);
    t.ok(spent <= ALLOWED, `${spent} of ${ALLOWED} ms`);
}

t.test('a report of Nessus that says one thing many times costs no more than by its length', async (t) => {
    const item = `<ReportItem port="0" severity="3" pluginID="1" pluginName="x">${'<cve/>'.repeat(MANY)}<cve>CVE-2020-1234</cve></ReportItem>`;
    const report = `<NessusClientData_v2><Report><ReportHost name="192.0.2.1">${item}</ReportHost></Report></NessusClientData_v2>`;
    await costsWhatItsLengthCosts(t, report, { address: '192.0.2.1', vulns: [{ info: /References: CVE-2020-1234 NSS-1$/ }] });
});

t.test('a script of nmap that names one vulnerability many times costs no more than by its length', async (t) => {
    const listed = '<table><elem key="id">CVE-2020-1234</elem></table>'.repeat(MANY);
    const script = `<script id="vulners" output=""><table key="p">${listed}</table></script>`;
    const scan = `<nmaprun><host><status state="up"/><address addr="192.0.2.1"/><hostscript>${script}</hostscript></host></nmaprun>`;
    await costsWhatItsLengthCosts(t, scan, { vulns: [{ name: 'CVE-2020-1234', info: /\nReferences: CVE-2020-1234$/ }] });
});
