import t from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';

/** As nmap ends its file when it dies: every element closed. */
const scan = (finished: string) => `<?xml version="1.0"?>
<nmaprun scanner="nmap"><scaninfo type="syn" protocol="tcp" numservices="1" services="80"/>
<host><status state="up"/><address addr="192.0.2.1" addrtype="ipv4"/></host>
<runstats>${finished}<hosts up="1" down="0" total="1"/></runstats></nmaprun>
`;

async function* bytes(text: string): AsyncIterable<Uint8Array> {
    yield Buffer.from(text);
}

t.test('a scan that nmap itself has given up removes no host', async (t) => {
    const inventory = memoryInventory();
    const imported = (finished: string) => inventory.importHosts('office', readScan(bytes(scan(finished))), { replace: true });
    await imported('<finished time="1" exit="success"/>');
    await inventory.importHosts('office', readScan(bytes('{"address":"192.0.2.2"}\n')));

    await t.rejects(imported('<finished time="1" exit="error" errormsg="dnet: Failed to open SECRET"/>'), {
        code: 'INVALID_INPUT',
        message: /^Line 4, column \d+: nmap ended with an error \(<finished exit="error">\): the scan did not finish$/,
    });
    t.match(await imported('<finished time="1"/>'), { hosts: { unchanged: 1, gone: 1 } });
});
