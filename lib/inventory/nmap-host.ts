import type { HostState, ServiceInput } from './host.ts';
import { type Attributes, osGuesses } from './nmap-os.ts';

/** What a scan says about a host, before it is normalised. */
export type ScannedHost = Readonly<Record<string, unknown>>;

/** Takes the elements inside of a `host` as they open; knows nothing of those it does not use. */
export interface NmapHost {
    open(element: string, attributes: Attributes): void;
    /** The host; null for one that is down and of which nothing else is known, or that has no address. */
    finish(): ScannedHost | null;
}

const STATES: Readonly<Record<string, HostState>> = { up: 'alive', down: 'down' };
const PORT_STATES: Readonly<Record<string, ServiceInput['state']>> = {
    open: 'open',
    closed: 'closed',
    filtered: 'filtered',
    'open|filtered': 'filtered',
    'closed|filtered': 'filtered',
};

interface Port {
    readonly port: number;
    readonly proto: string;
    state: ServiceInput['state'];
    name: string;
    info: string | null;
}

/** One `host` element. A port that is named twice is kept once, so that what is held stays bounded. */
export function nmapHost(): NmapHost {
    const addresses: { ip?: string; mac?: string } = {};
    const names: { user?: string; dns?: string } = {};
    const ports = new Map<string, Port>();
    const os = osGuesses();
    let serviceOs = '';
    let state: HostState | undefined;
    let port: Port | null = null;

    const open: Readonly<Record<string, (attributes: Attributes) => void>> = {
        status: (attributes) => {
            state = STATES[attributes.state ?? ''] ?? 'unknown';
        },
        address: ({ addr = '', addrtype = 'ipv4' }) => {
            if (addrtype === 'mac') {
                addresses.mac ??= addr;
            } else {
                addresses.ip ??= addr;
            }
        },
        hostname: ({ name = '', type }) => {
            if (name !== '') {
                names[type === 'user' ? 'user' : 'dns'] ??= name;
            }
        },
        port: ({ portid, protocol = '' }) => {
            port = { port: Number(portid), proto: protocol, state: 'unknown', name: '', info: null };
            // Scans of the IP protocol or of SCTP have no place in the inventory, and neither has port 0.
            if ((protocol === 'tcp' || protocol === 'udp') && port.port !== 0) {
                ports.set(`${protocol}/${port.port}`, port);
            }
        },
        state: (attributes) => {
            if (port !== null) {
                port.state = PORT_STATES[attributes.state ?? ''] ?? 'unknown';
            }
        },
        service: (attributes) => {
            serviceOs ||= attributes.ostype ?? '';
            if (port !== null) {
                port.name = serviceName(attributes);
                port.info = serviceInfo(attributes);
            }
        },
        osmatch: os.match,
        osclass: os.classify,
    };

    return {
        open(element, attributes) {
            if (Object.hasOwn(open, element)) {
                open[element]?.(attributes);
            }
        },

        finish() {
            const address = addresses.ip;
            if (address === undefined || (state === 'down' && ports.size === 0)) {
                return null;
            }

            const name = names.user ?? names.dns;
            return {
                address,
                ...(addresses.mac !== undefined && { mac: addresses.mac }),
                ...(name !== undefined && { name }),
                ...(state !== undefined && { state }),
                ...(serviceOs !== '' && { os_name: serviceOs }),
                ...os.best(),
                ...(ports.size > 0 && { services: [...ports.values()] }),
            };
        },
    };
}

/** As nmap prints it: `ssl/http` for HTTP inside of TLS. */
function serviceName({ name = '', tunnel = '' }: Attributes): string {
    return tunnel === '' ? name : `${tunnel}/${name}`;
}

/** As nmap prints it: `OpenSSH 9.2p1 Debian 2 (protocol 2.0)`. */
function serviceInfo({ product = '', version = '', extrainfo = '' }: Attributes): string | null {
    const info = [product, version, extrainfo && `(${extrainfo})`].filter((part) => part !== '').join(' ');
    return info === '' ? null : info;
}
