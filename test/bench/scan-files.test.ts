import { createReadStream, readFileSync } from 'node:fs';
import t from 'tap';
import { COPIED, scanFiles } from '../../bench/scan-files.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';

async function hostsIn(file: string): Promise<readonly HostInput[]> {
    const hosts: HostInput[] = [];
    for await (const { closed_ports: _, state = 'alive', ...host } of readScan(createReadStream(file))) {
        hosts.push({ ...host, state });
    }
    return hosts;
}

t.test('JSON lines, XML and the rows to copy say the same', async (t) => {
    const { jsonl, xml, rows, close } = await scanFiles(300);
    t.teardown(close);
    const hosts = await hostsIn(jsonl);
    t.equal(hosts.length, 300);
    t.strictSame(await hostsIn(xml), hosts);

    const linesOf = (table: 'hosts' | 'services'): readonly Readonly<Record<string, string>>[] =>
        readFileSync(rows[table], 'utf8')
            .trimEnd()
            .split('\n')
            .map((line) => Object.fromEntries(line.split('\t').map((value, index) => [COPIED[table][index], value])));
    const services = linesOf('services');
    const copied = linesOf('hosts').map(({ id, address, name, mac, os_name, os_flavor, service_count }) => {
        const own = services.filter(({ host_id }) => host_id === id);
        t.equal(service_count, String(own.length));
        const rest = own.map(({ port, proto, state, name, info }) => ({ port: Number(port), proto, state, name, info }));
        return { address, name, mac, os_name, os_flavor, services: rest, state: 'alive' };
    });
    t.strictSame(copied, hosts);
});
