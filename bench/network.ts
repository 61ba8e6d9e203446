import type { HostInput, ServiceInput } from 'scanwire/inventory';

/** The addresses of 10.0.0.0/8 in their order, from 1 on. */
export function addressOf(index: number): string {
    return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
}

type System = Required<Pick<HostInput, 'address' | 'name' | 'mac' | 'os_name' | 'os_flavor'>>;

/** Hosts with a value in most of what an index shows. */
export async function* network(count: number): AsyncGenerator<HostInput> {
    for (let index = 1; index <= count; index += 1) {
        yield {
            ...systemAt(index),
            state: 'alive',
            os_sp: '12',
            purpose: 'server',
            info: `rack ${index % 40}`,
            comments: 'seen by the weekly scan',
        };
    }
}

function systemAt(index: number): System {
    return {
        address: addressOf(index),
        name: `host-${index}.example.com`,
        mac: `00:50:56:${(index & 255).toString(16).padStart(2, '0')}:01:02`,
        os_name: 'Linux',
        os_flavor: '5.X',
    };
}

/** A host as a scan finds it, in what both JSON lines and the XML of nmap can say. */
export interface ScannedHost extends System {
    readonly services: readonly Required<Omit<ServiceInput, 'guessed_name'>>[];
}

/** Name, product and version of what is open. */
const OPEN: Readonly<Record<number, readonly [name: string, product: string, version: string]>> = {
    22: ['ssh', 'OpenSSH', '9.2p1 Debian 2+deb12u3'],
    80: ['http', 'nginx', '1.22.1'],
    443: ['ssl/http', 'nginx', '1.22.1'],
    5432: ['postgresql', 'PostgreSQL DB', '15.8'],
};

/** Its four services, in the order of their ports. */
const SERVICES: readonly Required<Omit<ServiceInput, 'guessed_name'>>[] = Object.entries(OPEN).map(([port, [name, ...info]]) => ({
    port: Number(port),
    proto: 'tcp',
    state: 'open',
    name,
    info: info.join(' '),
}));

/** So many hosts, each with four services. */
export function* scannedNetwork(count: number): Generator<ScannedHost> {
    for (let index = 1; index <= count; index += 1) {
        yield { ...systemAt(index), services: SERVICES };
    }
}

/** The same as nmap writes it. */
export function nmapElement({ address, name, mac, os_name, os_flavor }: ScannedHost): string {
    const ports = Object.entries(OPEN).map(([port, [service, product, version]]) => {
        const tunnel = service.startsWith('ssl/') ? ' tunnel="ssl"' : '';
        return (
            `<port protocol="tcp" portid="${port}"><state state="open" reason="syn-ack" reason_ttl="64"/>` +
            `<service name="${service.replace('ssl/', '')}" product="${product}" version="${version}"${tunnel} method="probed" conf="10"/></port>`
        );
    });
    return `<host starttime="1795236036" endtime="1795236049"><status state="up" reason="echo-reply" reason_ttl="64"/>
<address addr="${address}" addrtype="ipv4"/>
<address addr="${mac}" addrtype="mac" vendor="VMware"/>
<hostnames>
<hostname name="${name}" type="PTR"/>
</hostnames>
<ports><extraports state="closed" count="997">
<extrareasons reason="reset" count="997" proto="tcp" ports="1-21,23-79,81-442,444-1000"/>
</extraports>
${ports.join('\n')}
</ports>
<os><portused state="open" proto="tcp" portid="22"/>
<osmatch name="Linux 5.0 - 5.14" accuracy="100" line="68062">
<osclass type="general purpose" vendor="Linux" osfamily="${os_name}" osgen="${os_flavor}" accuracy="100"><cpe>cpe:/o:linux:linux_kernel:5</cpe></osclass>
</osmatch>
</os>
<distance value="1"/>
<times srtt="27" rttvar="237" to="100000"/>
</host>
`;
}
