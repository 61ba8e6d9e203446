import { isIP } from 'node:net';
import { isLoopback, normalName, sameAddress, withBrackets } from '../../addresses.ts';
import type { EgressGuard } from '../../egress/guard.ts';
import { hostOf, parseOutgoingUrl, portOf, type UrlFault } from '../../egress/outgoing-url.ts';
import { type OwnHost, ownHost } from '../../egress/own-host.ts';
import { ScanwireError } from '../../errors.ts';
import type { Exporter } from './exporter.ts';

const MAX_LENGTH = 2048;

const REFUSALS: Readonly<Record<UrlFault, string>> = {
    too_long: `must be at most ${MAX_LENGTH} characters`,
    control_characters: 'must not contain control characters',
    not_absolute: 'must be an absolute http or https URL',
    credentials: 'must not contain a user name or password: use an additional header',
    backslash: 'must not contain a backslash before the query',
    malformed: 'is not a valid URL',
    host_too_long: 'has a host name of more than 253 characters',
    host_invalid: 'has a host that is neither a name nor an IP address',
    port_zero: 'must not have port 0',
};

/** Ports of services that take no webhooks, by the names of these services. A POST there fails at best; at worst it is taken for commands. */
const CLOSED_PORTS: Readonly<Record<string, readonly number[]>> = {
    mail: [25, 110, 143, 465, 587, 993, 995, 4190],
    'shells and desktops': [22, 23, 512, 513, 514, 992, 3389, 5900, 5901, 5985, 5986, 6000],
    'files and directories': [20, 21, 69, 111, 135, 137, 138, 139, 389, 445, 548, 631, 636, 873, 989, 990, 2049, 3268, 3269],
    'names, times and networks': [53, 67, 68, 123, 161, 162, 179, 853],
    databases: [
        1433, 1434, 1521, 3050, 3306, 5432, 5433, 5984, 6379, 6380, 7473, 7474, 7687, 9042, 9160, 9200, 9300, 11211, 27017, 27018, 27019,
        28015, 29015, 33060,
    ],
    'message queues and chats': [1883, 2181, 4222, 5671, 5672, 6667, 6697, 8883, 9092, 9093, 61613, 61616],
    orchestrators: [
        2375, 2376, 2377, 2379, 2380, 4646, 4647, 4648, 6443, 8300, 8301, 8302, 8500, 8501, 8502, 10248, 10249, 10250, 10255, 10256, 10257,
        10259,
    ],
};

/** Ends of names that clusters give to what runs in them. `cluster.local` is internal wherever it is called. */
const CLUSTER_SUFFIXES: readonly string[] = ['svc', 'pod', 'consul', 'nomad'];

/**
 * The receiver's URL as it is saved: normalised, and only when its host may be called and its port may be a webhook's. A name is not
 * resolved here; the addresses it leads to are vetted at each connect.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `url`, with the reason but never the URL: it may hold a secret.
 */
export function checkReceiverUrl(text: string, guard: Pick<EgressGuard, 'allow' | 'vetHost'>, own: OwnHost = ownHost()): string {
    const url = parseReceiverUrl(text);
    const [host, port] = [hostOf(url), portOf(url)];
    const refusal = guard.vetHost(host, port);
    if (refusal !== null) {
        throw refused(
            `points to ${refusal}, which is not open to receivers; whoever runs the server can open it: egress.allow, or SCANWIRE_EGRESS_ALLOW`,
        );
    }

    const allow = new Set(guard.allow?.map((entry) => normalName(entry.trim())));
    const isNamed = allow.has(host) || allow.has(`${withBrackets(host)}:${port}`);
    const inside = isNamed ? null : (insideName(host, own) ?? listedName(host, own, (address) => guard.vetHost(address, port) === null));
    if (inside !== null) {
        throw refused(`points to ${inside}: name it in egress.allow (SCANWIRE_EGRESS_ALLOW) to open it`);
    }

    const [use] = Object.entries(CLOSED_PORTS).find(([, ports]) => ports.includes(port)) ?? [];
    if (use !== undefined && !allow.has(`*:${port}`) && !allow.has(`${withBrackets(host)}:${port}`)) {
        throw refused(`has port ${port}, one of those for ${use}: *:${port} in egress.allow (SCANWIRE_EGRESS_ALLOW) opens it`);
    }

    return url.href;
}

/** What hosts files call the machine itself, in whatever domain: `localhost6.localdomain6`. */
const LOCALHOST = /^localhost\d?\./;

/** What kind of internal name a host is: one that public name servers do not know, or one of this machine's. Null for any other. */
function insideName(host: string, own: OwnHost): string | null {
    if (isIP(host) !== 0) {
        return isOwn(host, own) ? 'an address of this host' : null;
    }

    const name = normalName(own.name);
    if (name === host || (host.startsWith(`${name}.`) && host === `${name}.${own.domain()}`)) {
        return 'the name of this host';
    }

    if (!host.includes('.')) {
        return 'a name without a dot, which means something else on every network';
    }

    if (LOCALHOST.test(host)) {
        return 'a name of this host';
    }

    return CLUSTER_SUFFIXES.some((suffix) => host.endsWith(`.${suffix}`)) ? 'a name of the cluster' : null;
}

function isOwn(address: string, { addresses }: OwnHost): boolean {
    return addresses.some((own) => sameAddress(own, address));
}

/** The same of what the hosts file leads to this machine. A loopback address that is open is so by that name as well. */
function listedName(host: string, own: OwnHost, isOpen: (address: string) => boolean): string | null {
    const listed = isIP(host) === 0 ? own.listed(host) : [];
    return listed.some((address) => isOwn(address, own) || (isLoopback(address) && !isOpen(address))) ? 'a name of this host' : null;
}

/** Something that is allowed, but had better be looked at again. */
export interface ReceiverWarning {
    readonly code:
        | 'plain_http'
        | 'credentials_over_http'
        | 'http_on_https_port'
        | 'https_on_http_port'
        | 'fragment'
        | 'same_url'
        | 'trust_without_tls';
    /** One sentence for people, without the URL. */
    readonly message: string;
}

const HTTPS_PORTS: readonly number[] = [443, 8443];
const HTTP_PORTS: readonly number[] = [80, 8080];

/**
 * What is doubtful about an exporter's receiver.
 *
 * @param text The URL as the user wrote it, absent where it was not.
 * @param others The exporters of the store, each with its whole URL where that is known.
 */
export function receiverWarnings(
    { id, url: href, trust, authentication }: Pick<Exporter, 'id' | 'url' | 'trust' | 'authentication'>,
    text: string | undefined,
    others: readonly { readonly id: string; readonly url: string | null }[],
): readonly ReceiverWarning[] {
    // A row that was changed with SQL may hold anything. It is judged when something is sent.
    if (!URL.canParse(href)) {
        return [];
    }

    const url = new URL(href);
    const port = portOf(url);
    const isPlain = url.protocol === 'http:';
    const same = others.find((other) => other.id !== id && other.url === href);
    const hasCredentials = authentication.includes('basic') || authentication.includes('oauth');
    const found: readonly (readonly [boolean, ReceiverWarning['code'], string])[] = [
        [isPlain, 'plain_http', 'Messages and header values go out unencrypted: the URL is plain http'],
        [isPlain && hasCredentials, 'credentials_over_http', 'Credentials go out unencrypted with each message: the URL is plain http'],
        [isPlain && HTTPS_PORTS.includes(port), 'http_on_https_port', `The URL is plain http on port ${port}, which is for https`],
        [!isPlain && HTTP_PORTS.includes(port), 'https_on_http_port', `The URL is https on port ${port}, which is for plain http`],
        [text?.includes('#') === true, 'fragment', 'The fragment of the URL, from its # on, is left out: it is never sent'],
        [same !== undefined, 'same_url', `The exporter ${same?.id} has the same URL, so each event goes there twice`],
        [isPlain && trust !== 'strict', 'trust_without_tls', `The trust setting ${trust} has no effect: the URL is plain http`],
    ];
    return found.filter(([holds]) => holds).map(([, code, message]) => ({ code, message }));
}

/**
 * The receiver's URL, normalised by {@link parseOutgoingUrl}. In this form it is stored, shown, called and compared. It is parsed when it is
 * saved and again when something is sent, so that nothing depends on who wrote the row.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `url`, with the reason but never the URL.
 */
export function parseReceiverUrl(text: string): URL {
    const url = typeof text === 'string' ? parseOutgoingUrl(text.replace(/^ +|(?<! ) +$/g, ''), MAX_LENGTH) : 'not_absolute';
    if (typeof url === 'string') {
        throw refused(REFUSALS[url]);
    }

    if (url.href.length > MAX_LENGTH) {
        throw refused(`must be at most ${MAX_LENGTH} characters once written out`);
    }

    return url;
}

function refused(reason: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `URL ${reason}`, { field: 'url' });
}
