import { type Clock, systemClock } from '../clock.ts';
import { VERSION } from '../version.ts';
import type { Host, HostState } from './host.ts';
import type { HostWithServices } from './host-pages.ts';
import type { Service } from './resources.ts';

const STATES: Readonly<Record<HostState, string>> = { alive: 'up', down: 'down', unknown: 'unknown' };

/** Of the nmap whose document type this follows. */
const OUTPUT_VERSION = '1.05';

/**
 * Hosts and services as the XML of nmap, so that whoever reads that reads this: `readXmlScan` as well. It has what nmap has a place for; of
 * a service, name and information, of a system its name, generation, service pack and architecture.
 */
export async function* nmapXml(
    hosts: AsyncIterable<HostWithServices>,
    clock: Clock = systemClock,
): AsyncGenerator<string, void, undefined> {
    const begun = clock();
    const start = seconds(begun);
    yield `<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE nmaprun>\n${opening('nmaprun', {
        scanner: 'nmap',
        args: 'scanwire export',
        start,
        version: `scanwire ${VERSION}`,
        xmloutputversion: OUTPUT_VERSION,
    })}\n${empty('verbose', { level: 0 })}\n${empty('debugging', { level: 0 })}\n`;

    const counts = { up: 0, down: 0, total: 0 };
    for await (const host of hosts) {
        counts.total += 1;
        counts.up += host.state === 'alive' ? 1 : 0;
        counts.down += host.state === 'down' ? 1 : 0;
        yield hostElement(host);
    }

    const ended = clock();
    const elapsed = ((ended.getTime() - begun.getTime()) / 1000).toFixed(2);
    const finished = empty('finished', { time: seconds(ended), elapsed, exit: 'success' });
    yield `<runstats>${finished}${empty('hosts', counts)}</runstats>\n</nmaprun>\n`;
}

function seconds(time: Date): number {
    return Math.floor(time.getTime() / 1000);
}

/** The order of what is in it is that of nmap. */
function hostElement(host: HostWithServices): string {
    const { address, mac, name, state, services } = host;
    return [
        '<host>',
        empty('status', { state: STATES[state], reason: 'user-set', reason_ttl: 0 }),
        empty('address', { addr: address, addrtype: address.includes(':') ? 'ipv6' : 'ipv4' }),
        mac === '' ? '' : empty('address', { addr: mac, addrtype: 'mac' }),
        name === address ? '' : `<hostnames>${empty('hostname', { name, type: 'user' })}</hostnames>`,
        services.length === 0 ? '' : `<ports>${services.map(portElement).join('\n')}</ports>`,
        osElement(host),
        '</host>\n',
    ]
        .filter((part) => part !== '')
        .join('\n');
}

function portElement({ port, proto, state, name, info }: Service): string {
    const service = name === '' && info === null ? '' : serviceElement(name, info);
    return `${opening('port', { protocol: proto, portid: port })}${empty('state', { state, reason: 'user-set', reason_ttl: 0 })}${service}</port>`;
}

const IN_TLS = 'ssl/';

function serviceElement(name: string, info: string | null): string {
    const inTls = name.startsWith(IN_TLS);
    return empty('service', {
        name: inTls ? name.slice(IN_TLS.length) : name,
        product: info ?? undefined,
        tunnel: inTls ? 'ssl' : undefined,
        // What an inventory knows is no guess by the port, which readers would leave out.
        method: 'probed',
        conf: 10,
    });
}

/** Generation and system in its class, what there is no field for in the name of the match, where nmap has it too. */
function osElement({ os_name, os_flavor, os_sp, arch, detected_arch }: Host): string {
    if (os_name === '') {
        return '';
    }

    const machine = arch === 'Unknown' ? detected_arch : arch;
    const name = [os_name, os_flavor, os_sp, machine ?? ''].filter((part) => part !== '').join(' ');
    const system = { vendor: '', osfamily: os_name, osgen: os_flavor === '' ? undefined : os_flavor, accuracy: 100 };
    return `<os>${opening('osmatch', { name, accuracy: 100, line: 0 })}${empty('osclass', system)}</osmatch></os>`;
}

type Attributes = Readonly<Record<string, string | number | undefined>>;

function opening(element: string, attributes: Attributes): string {
    const written = Object.entries(attributes).map(([name, value]) => (value === undefined ? '' : ` ${name}="${escaped(String(value))}"`));
    return `<${element}${written.join('')}>`;
}

function empty(element: string, attributes: Attributes): string {
    return `${opening(element, attributes).slice(0, -1)}/>`;
}

/** What would end the attribute or be read as something else, as line breaks would as blanks, and what XML 1.0 cannot hold. */
const SPECIAL = /[&<>"\p{Cc}\p{Cs}\ufffe\uffff]/gu;
/** The control characters that XML 1.0 can hold, with those from 127 to 159, on which a terminal would act. */
const HELD = /[&<>"\t\n\r\u007f-\u009f]/;

function escaped(text: string): string {
    return text.replace(SPECIAL, (sign) => (HELD.test(sign) ? `&#${sign.charCodeAt(0)};` : '\ufffd'));
}
