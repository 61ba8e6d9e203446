import { isObject } from '../checked.ts';
import { PROTOCOLS, SERVICE_STATES } from './fields.ts';
import { vulnName } from './findings.ts';
import { byHostField, HOST_STATES } from './host.ts';
import type { HostElements, ScannedHost, XmlForm } from './read-xml.ts';

const HOST = 'hosts/host';

/** What `db_export -f xml` of the Metasploit Framework writes, from its sources of 2026-11. Pages of web sites, events and credentials are read over. */
export const metasploitForm: XmlForm = {
    paths: [HOST, 'web_sites/web_site'],
    reader: () => ({ host: (_, path) => (path === HOST ? metasploitHost() : webSite()) }),
};

/** The columns of a row, by their names in the database. */
type Columns = Readonly<Record<string, string>>;

interface Row {
    readonly columns: Record<string, string>;
    readonly refs: string[];
}

/** What is below a host, by the paths of their elements. */
const LISTS = ['services/service', 'notes/note', 'vulns/vuln'] as const;

function metasploitHost(): HostElements {
    const host: Record<string, string> = {};
    const rows: Record<(typeof LISTS)[number], Row[]> = { 'services/service': [], 'notes/note': [], 'vulns/vuln': [] };
    const path: string[] = [];
    let text = '';

    return {
        open(element) {
            path.push(element);
            text = '';
            const list = LISTS.find((one) => one === path.join('/'));
            if (list !== undefined) {
                rows[list].push({ columns: {}, refs: [] });
            }
        },

        text(part) {
            text += part;
        },

        close() {
            const column = (path.at(-1) ?? '').replaceAll('-', '_');
            const above = path.slice(0, -1).join('/');
            const list = LISTS.find((one) => one === above);
            if (path.length === 1) {
                host[column] = text.trim();
            } else if (list !== undefined) {
                Object.assign(rows[list].at(-1)?.columns ?? {}, { [column]: text.trim() });
            } else if (above === 'vulns/vuln/refs') {
                rows['vulns/vuln'].at(-1)?.refs.push(text.trim());
            }

            path.pop();
            text = '';
        },

        finish: () => scannedHost(host, rows),
    };
}

function scannedHost(host: Columns, rows: Readonly<Record<(typeof LISTS)[number], readonly Row[]>>): ScannedHost {
    const services = rows['services/service'].filter(({ columns }) => PROTOCOLS.some((proto) => proto === columns.proto));
    // Of a row without an id nothing else can be said to be of it.
    const places = new Map(services.map(({ columns: { id, port, proto } }) => [id ?? '', { port: Number(port), proto }]));
    const on = ({ service_id }: Columns): object => places.get(service_id ?? '') ?? {};
    // Newer versions have one port several times, with what is spoken inside of what: the first is the outermost.
    const byPort = new Map(services.toReversed().map(({ columns }) => [`${columns.port}/${columns.proto}`, columns]));

    return {
        ...Object.fromEntries(Object.keys(GIVEN).flatMap((column) => (hasValue(host[column]) ? [[column, host[column]]] : []))),
        ...(HOST_STATES.some((state) => state === host.state) && { state: host.state }),
        ...(services.length > 0 && { services: [...byPort.values()].reverse().map(scannedService) }),
        ...(rows['notes/note'].length > 0 && { notes: rows['notes/note'].map(({ columns }) => scannedNote(columns, on(columns))) }),
        ...(rows['vulns/vuln'].length > 0 && {
            vulns: rows['vulns/vuln'].map(({ columns, refs }) => scannedVuln(columns, refs.filter(hasValue), on(columns))),
        }),
    };
}

/** The columns of a host that are read as they are. */
const GIVEN = byHostField({ address: () => true, text: () => true, name: () => true, nullableText: () => true });

/** A column that is null is empty, or was told so by older versions. */
function hasValue(text: string | undefined): text is string {
    return text !== undefined && text !== '' && text !== 'NULL';
}

function given(columns: Columns, column: string): string | undefined {
    return hasValue(columns[column]) ? columns[column] : undefined;
}

function scannedService(columns: Columns): object {
    const [name, info] = [given(columns, 'name'), given(columns, 'info')];
    return {
        port: Number(columns.port),
        proto: columns.proto,
        state: SERVICE_STATES.find((state) => state === columns.state) ?? 'unknown',
        ...(name !== undefined && { name }),
        ...(info !== undefined && { info }),
    };
}

function scannedNote(columns: Columns, on: object): object {
    const flags = ['critical', 'seen'].filter((column) => hasValue(columns[column]));
    return {
        ...on,
        ntype: given(columns, 'ntype') ?? null,
        data: noteData(given(columns, 'data')),
        ...Object.fromEntries(flags.map((column) => [column, columns[column] === 'true'])),
    };
}

/** A web site, which stands behind all hosts: a note on its host, told apart from that of other sites by its type. */
function webSite(): HostElements {
    const columns: Record<string, string> = {};
    let text = '';
    let depth = 0;

    return {
        open() {
            text = '';
            depth += 1;
        },

        text(part) {
            text += part;
        },

        close(element) {
            if (depth === 1) {
                columns[element] = text.trim();
            }
            depth -= 1;
            text = '';
        },

        finish() {
            const [address, port, vhost, comments, options] = ['host', 'port', 'vhost', 'comments', 'options'].map((column) =>
                given(columns, column),
            );
            const data = {
                ...(vhost !== undefined && { vhost }),
                ...(port !== undefined && { port: Number(port) }),
                ssl: columns.ssl === 'true',
                ...(comments !== undefined && { comments }),
                ...(options !== undefined && { options: noteData(options) }),
            };
            const ntype = ['metasploit.web_site', port, vhost].filter((part) => part !== undefined).join('.');
            return { ...(address !== undefined && { address }), notes: [{ ntype, data }] };
        },
    };
}

/** Text that is no object is kept as it is. Objects of Ruby, in the form of its `Marshal`, are too: to read them is to run what they say. */
function noteData(text: string | undefined): object {
    if (text === undefined) {
        return {};
    }

    try {
        const data: unknown = JSON.parse(text);
        return isObject(data) ? data : { raw: text };
    } catch {
        return { raw: text };
    }
}

function scannedVuln(columns: Columns, refs: readonly string[], on: object): object {
    const exploited = given(columns, 'exploited_at');
    const numbers = ['vuln_detail_count', 'vuln_attempt_count', 'nexpose_data_vuln_def_id'].filter((column) => hasValue(columns[column]));
    return {
        ...on,
        name: vulnName(given(columns, 'name') ?? ''),
        info: given(columns, 'info') ?? null,
        refs,
        ...(exploited !== undefined && { exploited_at: isoTime(exploited) }),
        ...Object.fromEntries(numbers.map((column) => [column, Number(columns[column])])),
    };
}

/** `2026-11-21 09:30:00 UTC`, which need not say that it is that. */
function isoTime(text: string): string {
    return text.replace(/^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(?: UTC)?$/, '$1T$2Z');
}
