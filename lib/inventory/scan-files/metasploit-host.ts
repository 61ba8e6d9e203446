import { PROTOCOLS, SERVICE_STATES } from '../fields.ts';
import { byHostField, HOST_STATES } from '../host.ts';
import { refuseTooMany } from '../host-input.ts';
import { type Columns, columnText, given, hasValue, noteData, rowElements } from './metasploit-columns.ts';
import { webSite, webVuln } from './metasploit-web.ts';
import type { HostElements, ScannedHost, XmlForm } from './read-xml.ts';
import { serviceText, vulnInfo, vulnName } from './scanner-text.ts';

/** Of what elements are made that stand for themselves, by their paths. */
const READERS: Readonly<Record<string, () => HostElements>> = {
    'hosts/host': () => metasploitHost(),
    'web_sites/web_site': () => rowElements(webSite),
    'web_vulns/web_vuln': () => rowElements(webVuln),
};

/**
 * What `db_export -f xml` of the Metasploit Framework writes, from its sources of 2026-11. Read over are pages and forms of web sites, events, credentials, what
 * it knows of its own modules, and details and attempts of hosts and vulnerabilities.
 */
export const metasploitForm: XmlForm = {
    paths: Object.keys(READERS),
    reader: () => ({ host: (_, path) => (READERS[path] as () => HostElements)() }),
};

interface Row {
    readonly columns: Record<string, string>;
    readonly refs: string[];
    /** Of a note: the vulnerability that it stands in. */
    readonly vuln?: Row | undefined;
}

/** What is below a host, by the paths of their elements. Of the notes of a vulnerability some versions know no host. */
const LISTS = ['services/service', 'notes/note', 'vulns/vuln', 'vulns/vuln/notes/note'] as const;

/** What rows become one by one. Of services one port may have several. */
const BECOME = { 'notes/note': 'notes', 'vulns/vuln': 'vulns', 'vulns/vuln/notes/note': 'notes' } as const;

type Rows = Readonly<Record<(typeof LISTS)[number], Row[]>>;

function metasploitHost(): HostElements {
    const host: Record<string, string> = {};
    const rows: Rows = { 'services/service': [], 'notes/note': [], 'vulns/vuln': [], 'vulns/vuln/notes/note': [] };
    const path: string[] = [];
    let text = '';

    return {
        open(element) {
            path.push(element);
            text = '';
            const list = LISTS.find((one) => one === path.join('/'));
            if (list !== undefined) {
                if (list !== 'services/service') {
                    refuseTooMany(BECOME[list], rows[list].length + 1);
                }
                rows[list].push({ columns: {}, refs: [], vuln: rows['vulns/vuln'].at(-1) });
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
                host[column] = columnText(text);
            } else if (list !== undefined) {
                Object.assign(rows[list].at(-1)?.columns ?? {}, { [column]: columnText(text) });
            } else if (above === 'vulns/vuln/refs') {
                rows['vulns/vuln'].at(-1)?.refs.push(columnText(text));
            }

            path.pop();
            text = '';
        },

        finish: () => scannedHost(host, rows),
    };
}

function scannedHost(host: Columns, rows: Rows): ScannedHost {
    const services = rows['services/service'].filter(({ columns }) => PROTOCOLS.some((proto) => proto === columns.proto));
    // Of a row without an id nothing else can be said to be of it.
    const ports = new Map(services.map(({ columns: { id, port, proto } }) => [id ?? '', { port: Number(port), proto }]));
    const on = ({ service_id }: Columns): object => ports.get(service_id ?? '') ?? {};
    const notes = notesOf(rows);
    // Newer versions have one port several times, with what is spoken inside of what: the first is the outermost.
    const byPort = new Map(services.toReversed().map(({ columns }) => [`${columns.port}/${columns.proto}`, columns]));

    return {
        ...Object.fromEntries(Object.keys(GIVEN).flatMap((column) => (hasValue(host[column]) ? [[column, host[column]]] : []))),
        ...Object.fromEntries(FOREIGN_IDS.flatMap((column) => (hasValue(host[column]) ? [[column, Number(host[column])]] : []))),
        ...(HOST_STATES.some((state) => state === host.state) && { state: host.state }),
        ...(services.length > 0 && { services: [...byPort.values()].reverse().map(scannedService) }),
        ...(notes.length > 0 && { notes: notes.map((columns) => scannedNote(columns, on(columns))) }),
        ...(rows['vulns/vuln'].length > 0 && {
            vulns: rows['vulns/vuln'].map(({ columns, refs }) => scannedVuln(columns, refs.filter(hasValue), on(columns))),
        }),
    };
}

/** The columns of a host that are read as they are. */
const GIVEN = byHostField({ address: () => true, text: () => true, name: () => true, nullableText: () => true });

/** The same that are ids in other systems. */
const FOREIGN_IDS = Object.keys(byHostField({ foreignId: () => true }));

/** Each once: with those that have no place of their own on that of their vulnerability. */
function notesOf(rows: Rows): readonly Columns[] {
    const notes = rows['notes/note'].map(({ columns }) => columns);
    const told = new Set(notes.map(({ id }) => id));
    const ofVulns = rows['vulns/vuln/notes/note'].filter(({ columns: { id } }) => id === undefined || !told.has(id));
    const placed = ofVulns.map(({ columns, vuln }) => {
        const service = given(columns, 'service_id') ?? vuln?.columns.service_id;
        return service === undefined ? columns : { ...columns, service_id: service };
    });
    return [...notes, ...placed];
}

function scannedService(columns: Columns): object {
    const [name, info] = [serviceText(given(columns, 'name')), serviceText(given(columns, 'info'))];
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

function scannedVuln(columns: Columns, refs: readonly string[], on: object): object {
    const exploited = given(columns, 'exploited_at');
    const numbers = ['vuln_detail_count', 'vuln_attempt_count', 'nexpose_data_vuln_def_id'].filter((column) => hasValue(columns[column]));
    return {
        ...on,
        name: vulnName(given(columns, 'name') ?? ''),
        info: vulnInfo(given(columns, 'info') ?? '') || null,
        refs,
        ...(exploited !== undefined && { exploited_at: isoTime(exploited) }),
        ...Object.fromEntries(numbers.map((column) => [column, Number(columns[column])])),
    };
}

/** `2026-11-21 09:30:00 UTC`, which need not say that it is that. */
function isoTime(text: string): string {
    return text.replace(/^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(?: UTC)?$/, '$1T$2Z');
}
