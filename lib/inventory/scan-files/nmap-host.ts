import { type ClosedPorts, countPorts, mergedRanges, type PortRange, portRanges, withoutPorts } from '../closed-ports.ts';
import type { HostState, ServiceInput } from '../host.ts';
import { nmapScripts } from './nmap-script.ts';
import type { Attributes, HostElements, ScannedHost, XmlForm } from './read-xml.ts';
import { bannerService, serviceText, withoutByteEscapes } from './scanner-text.ts';

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
    readonly proto: ServiceInput['proto'];
    state: ServiceInput['state'];
    /** Both or none: where the scan only says that the port is there, a service keeps those that it has. */
    name?: string;
    info?: string | null;
    guessed_name?: string;
}

/** The ports that a scan went through, by protocol; of {@link OTHER} none. */
type ScannedPorts = ReadonlyMap<string, readonly PortRange[]>;

/** Every protocol that is not known, however many a file names. */
const OTHER = 'other';

/** The XML of nmap. */
export const nmapForm: XmlForm = {
    paths: ['host'],
    reader(fail) {
        const scanned = new Map<string, readonly PortRange[]>();
        let unclear = 0;
        return {
            host: () =>
                nmapHost(scanned, () => {
                    unclear += 1;
                }),
            warning: () => (unclear === 0 ? null : unclearPorts(unclear)),
            beside(element, { protocol = '', services = '', exit }) {
                // When nmap dies it ends all elements first.
                if (element === 'finished' && exit === 'error') {
                    throw fail('nmap ended with an error (<finished exit="error">): the scan did not finish');
                }

                if (element === 'scaninfo') {
                    const isKnown = isKnownProtocol(protocol);
                    scanned.set(isKnown ? protocol : OTHER, isKnown ? portRanges(services) : []);
                }
            },
        };
    },
};

function unclearPorts(hosts: number): string {
    return `Hosts of which the scan says how many ports are closed, and not which: ${hosts}. Services on these ports stay as they are`;
}

/**
 * One `host` element. A port that is named twice is kept once, so that what is held stays bounded. One that has no address or was never probed is left out.
 * One of which nothing is known but that it is down is told to those who know it.
 *
 * @param onUnclear Called when it has closed ports of which the number alone is known.
 */
function nmapHost(scanned: ScannedPorts, onUnclear: () => void): HostElements {
    const addresses: { ip?: string; mac?: string } = {};
    const names: { user?: string; dns?: string } = {};
    const ports = new Map<string, Port>();
    const os = osGuesses();
    const summaries = portSummaries(scanned);
    const scripts = nmapScripts();
    let serviceOs = '';
    let state: HostState | undefined;
    let port: Port | null = null;

    const elements: Readonly<Record<string, (attributes: Attributes) => void>> = {
        status: (attributes) => {
            state = STATES[attributes.state ?? ''] ?? 'unknown';
        },
        address: ({ addr = '', addrtype = 'ipv4' }) => {
            addresses[addrtype === 'mac' ? 'mac' : 'ip'] ??= addr;
        },
        hostname: ({ name = '', type }) => {
            if (name !== '') {
                names[type === 'user' ? 'user' : 'dns'] ??= name;
            }
        },
        port: ({ portid, protocol = '' }) => {
            port = { port: Number(portid), proto: protocol as Port['proto'], state: 'unknown' };
            // Nor does it know a port 0.
            if (isKnownProtocol(protocol) && port.port !== 0) {
                ports.set(`${protocol}/${port.port}`, port);
            }
        },
        state: (attributes) => {
            if (port !== null) {
                port.state = PORT_STATES[attributes.state ?? ''] ?? 'unknown';
            }
        },
        extraports: summaries.open,
        extrareasons: summaries.give,
        service: (attributes) => {
            serviceOs ||= attributes.ostype ?? '';
            if (port !== null) {
                Object.assign(port, serviceOf(attributes));
            }
        },
        osmatch: os.match,
        osclass: os.classify,
    };
    const onOpen = new Map(Object.entries(elements));

    const scriptsPlace = (): Partial<Pick<Port, 'port' | 'proto'>> | null => {
        if (port === null) {
            return {};
        }
        return ports.get(`${port.proto}/${port.port}`) === port ? { port: port.port, proto: port.proto } : null;
    };

    return {
        open(element, attributes) {
            if (!scripts.open(element, attributes, scriptsPlace)) {
                onOpen.get(element)?.(attributes);
            }
        },

        close(element) {
            scripts.close(element);
            port = element === 'port' ? null : port;
        },

        text: scripts.text,

        finish() {
            const address = addresses.ip;
            if (address === undefined || (state === 'unknown' && ports.size === 0)) {
                return null;
            }

            if (state === 'down' && ports.size === 0) {
                return { address, state, if_known: true };
            }

            const closed = summaries.closed([...ports.values()]);
            if (closed === null) {
                onUnclear();
            }

            const name = names.user ?? names.dns;
            // masscan says of no host that it is up: it names those alone of which a port has answered.
            const isAlive = state === undefined && [...ports.values()].some((one) => one.state === 'open' || one.state === 'closed');
            return {
                address,
                ...(addresses.mac !== undefined && { mac: addresses.mac }),
                ...(name !== undefined && { name }),
                ...(state !== undefined && { state }),
                ...(isAlive && { state: 'alive' }),
                ...(serviceOs !== '' && { os_name: serviceOs }),
                ...os.best(),
                ...(ports.size > 0 && { services: [...ports.values()] }),
                ...(closed !== null && Object.keys(closed).length > 0 && { closed_ports: closed }),
                ...scripts.findings(),
            };
        },
    };
}

/** So many ranges are merged before there are more: twice as many as there can be of merged ones, and so not with each that comes. */
const MANY = 65_536;

/**
 * What is said of ports that are not told one by one: their state and number, and by newer versions which they are. Else they can be told where
 * all the rest of what the scan went through is in one state.
 */
function portSummaries(scanned: ScannedPorts) {
    const given = new Map<string, PortRange[]>();
    let summaries = 0;
    let isClosed = false;
    /** Whether ports are closed that are not listed. */
    let isUnlisted = false;
    let count = 0;

    return {
        open(attributes: Attributes): void {
            summaries += 1;
            isClosed = attributes.state === 'closed';
            isUnlisted ||= isClosed;
            count = Number(attributes.count);
        },

        give({ proto = '', ports = '' }: Attributes): void {
            if (!isClosed || ports === '') {
                return;
            }

            isUnlisted = false;
            if (isKnownProtocol(proto)) {
                const all = given.get(proto) ?? [];
                for (const range of portRanges(ports)) {
                    all.push(range);
                }
                given.set(proto, all.length > MANY ? [...mergedRanges(all)] : all);
            }
        },

        /** Null where ports of ours are closed and nobody can tell which. */
        closed(told: readonly Port[]): ClosedPorts | null {
            if (!isUnlisted) {
                return Object.fromEntries([...given].map(([proto, ranges]) => [proto, mergedRanges(ranges)]));
            }

            const [[proto, ranges] = ['', []], another] = [...scanned];
            if (summaries === 1 && another === undefined && isKnownProtocol(proto)) {
                const rest = withoutPorts(
                    ranges,
                    told.map(({ port }) => port),
                );
                return countPorts(rest) === count ? { [proto]: rest } : null;
            }

            return scanned.size > 0 && ![...scanned.keys()].some(isKnownProtocol) ? {} : null;
        },
    };
}

/** The inventory knows no scans of the IP protocol or of SCTP. */
function isKnownProtocol(protocol: string): protocol is ServiceInput['proto'] {
    return protocol === 'tcp' || protocol === 'udp';
}

/**
 * Only masscan writes banners, each in a host of its own, with bytes as `\\x0d`. What nmap takes from its table of ports was said by no service:
 * that is all a scan without `-sV` has.
 */
function serviceOf(attributes: Attributes): object {
    const { name, banner, method } = attributes;
    if (banner !== undefined) {
        return bannerService(name, withoutByteEscapes(banner, BYTES));
    }

    const [called, info] = [serviceName(attributes), serviceInfo(attributes)];
    return method === 'table' && info === null ? { guessed_name: called } : { name: called, info };
}

const BYTES = /(?:\\x[0-9a-f]{2})+/g;

/** As nmap prints it: `ssl/http` for HTTP inside of TLS. */
export function serviceName({ name = '', tunnel = '' }: Attributes): string {
    return serviceText(tunnel === '' ? name : `${tunnel}/${name}`);
}

/** As nmap prints it: `OpenSSH 9.2p1 Debian 2 (protocol 2.0)`. */
export function serviceInfo({ product = '', version = '', extrainfo = '' }: Attributes): string | null {
    const info = [product, version, extrainfo && `(${extrainfo})`].filter((part) => part !== '').join(' ');
    return info === '' ? null : serviceText(info);
}

type Guess = ReturnType<typeof guessOf>;

const SERVICE_PACK = /\b(?:SP|Service Pack )(\d{1,2})\b/;
const ARCHITECTURE = /\b(x86_64|amd64|x64|x86|i[3-6]86|aarch64|arm64|arm|mips(?:el)?|sparc(?:64)?|powerpc|ppc(?:64)?|alpha|ia64)\b/i;

/** Collects the guesses of one host and keeps the likeliest: accuracies are equal often, the first one wins then. */
function osGuesses() {
    let match: Guess | null = null;
    let classification: Guess | null = null;

    return {
        /** An `osmatch`: the name of a system, for example `Microsoft Windows 7 SP1`. */
        match(attributes: Attributes): void {
            const guess = guessOf(attributes);
            if (match === null || guess.accuracy > match.accuracy) {
                // The classes of a less likely match are worth nothing now; those before the first match belong to it.
                classification = match === null ? classification : null;
                match = guess;
            }
        },

        /** An `osclass`, inside of its `osmatch` (since nmap 6) or beside it (before). */
        classify(attributes: Attributes): void {
            const guess = guessOf(attributes);
            if (classification === null || guess.accuracy > classification.accuracy) {
                classification = guess;
            }
        },

        best: (): ScannedHost => describe(match?.attributes.name ?? '', classification?.attributes ?? {}),
    };
}

function guessOf(attributes: Attributes) {
    const accuracy = Number(attributes.accuracy);
    return { accuracy: Number.isFinite(accuracy) ? accuracy : 0, attributes };
}

/** The fields of the host that the guess fills; what it does not say is absent. */
function describe(matchName: string, { vendor = '', osfamily = '', osgen = '' }: Attributes): ScannedHost {
    const osName = systemName(vendor, osfamily) || matchName;
    const servicePack = SERVICE_PACK.exec(matchName)?.[1];
    const architecture = ARCHITECTURE.exec(matchName)?.[1];
    return {
        ...(osName !== '' && { os_name: osName }),
        ...(osgen !== '' && { os_flavor: osgen }),
        ...(servicePack !== undefined && { os_sp: `SP${servicePack}` }),
        ...(architecture !== undefined && { arch: architecture.toLowerCase(), detected_arch: architecture }),
    };
}

/** `Microsoft` and `Windows` are `Microsoft Windows`; `Linux` and `Linux` are `Linux`. */
function systemName(vendor: string, family: string): string {
    return family.toLowerCase().startsWith(vendor.toLowerCase()) ? family : `${vendor} ${family}`.trim();
}
