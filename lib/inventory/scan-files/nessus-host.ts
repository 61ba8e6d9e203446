import { isIP } from 'node:net';
import { PROTOCOLS } from '../fields.ts';
import { refuseTooMany } from '../host-input.ts';
import type { Attributes, HostElements, ScannedHost, XmlForm } from './read-xml.ts';
import { serviceText, vulnInfo, vulnName } from './scanner-text.ts';

/** The reports of Nessus (`.nessus`), as "Nessus v2 File Format" of 2016-11-18 has them. */
export const nessusForm: XmlForm = {
    paths: ['Report/ReportHost'],
    reader: () => ({ host: nessusHost }),
};

/** What a plugin has found. */
interface Item {
    readonly attributes: Attributes;
    /** The texts of its elements, by their names. */
    readonly texts: Map<string, string[]>;
}

const SEVERITIES = ['informational', 'low', 'medium', 'high', 'critical'];

/** What a note or a vulnerability tells of an item, in this order. */
const TOLD = ['synopsis', 'description', 'solution', 'plugin_output'] as const;
const KEPT = new Set<string>([...TOLD, 'cve', 'bid', 'xref', 'see_also', 'cvss_base_score', 'cvss3_base_score']);

function nessusHost({ name = '' }: Attributes): HostElements {
    const tags = new Map<string, string>();
    const items: Item[] = [];
    const counts = { notes: 0, vulns: 0 };
    let item: Item | null = null;
    let tag: string | null = null;
    let text = '';

    return {
        open(element, attributes) {
            text = '';
            if (element === 'ReportItem') {
                item = { attributes, texts: new Map() };
                const kind = severityOf(item) > 0 ? 'vulns' : 'notes';
                counts[kind] += 1;
                refuseTooMany(kind, counts[kind]);
                items.push(item);
            } else if (element === 'tag') {
                tag = attributes.name ?? null;
            }
        },

        text(part) {
            text += part;
        },

        close(element) {
            if (element === 'ReportItem') {
                item = null;
            } else if (element === 'tag' && tag !== null) {
                tags.set(tag, text.trim());
                tag = null;
            } else if (item !== null && KEPT.has(element)) {
                const texts = item.texts.get(element) ?? [];
                texts.push(text.trim());
                item.texts.set(element, texts);
            }
            text = '';
        },

        finish: () => scannedHost(name, tags, items),
    };
}

function scannedHost(reportName: string, tags: ReadonlyMap<string, string>, items: readonly Item[]): ScannedHost {
    const firstLine = (key: string): string => tags.get(key)?.split('\n')[0]?.trim() ?? '';
    const address = firstLine('host-ip') || (isIP(reportName) === 0 ? '' : reportName);
    const name = firstLine('host-fqdn') || firstLine('netbios-name') || (isIP(reportName) === 0 ? reportName : '');
    const [mac, system] = [firstLine('mac-address'), firstLine('operating-system')];
    const services = servicesOf(items);
    const vulns = items.filter((item) => severityOf(item) > 0).map(vulnOf);
    const notes = items.filter((item) => severityOf(item) === 0).map(noteOf);
    return {
        ...(address !== '' && { address }),
        state: 'alive',
        ...(name !== '' && { name }),
        ...(mac !== '' && { mac }),
        ...(system !== '' && { os_name: system }),
        ...(services.length > 0 && { services }),
        ...(notes.length > 0 && { notes }),
        ...(vulns.length > 0 && { vulns }),
    };
}

function severityOf({ attributes: { severity } }: Item): number {
    return Number(severity) || 0;
}

/** Port 0 is the host, and so is what is found by another protocol. */
function portOf({ attributes: { port, protocol } }: Item): { readonly port?: number; readonly proto?: string } {
    return Number(port ?? 0) !== 0 && PROTOCOLS.some((proto) => proto === protocol)
        ? { port: Number(port), proto: protocol as string }
        : {};
}

/** Each port once; its name is a guess by its number where it ends with `?`. */
function servicesOf(items: readonly Item[]): readonly object[] {
    const services = new Map<string, object>();
    for (const item of items) {
        const { port, proto } = portOf(item);
        const { svc_name: name = '' } = item.attributes;
        const isGuess = name.endsWith('?');
        const isNamed = name !== '' && name !== 'unknown' && !isGuess;
        const key = `${port}/${proto}`;
        const known = services.get(key);
        if (port !== undefined && (isNamed || known === undefined || (isGuess && !('name' in known)))) {
            const told = { ...(isNamed && { name: serviceText(name) }), ...(isGuess && { guessed_name: serviceText(name.slice(0, -1)) }) };
            services.set(key, { port, proto, state: 'open', ...told });
        }
    }
    return [...services.values()];
}

function textOf({ texts }: Item, element: string): string {
    return texts.get(element)?.join('\n') ?? '';
}

function nameOf({ attributes: { pluginName = '', pluginID = '' } }: Item): string {
    return vulnName(pluginName) || `Plugin ${pluginID}`;
}

function noteOf(item: Item): object {
    const { pluginID = '', pluginFamily = '' } = item.attributes;
    const told = TOLD.map((element) => [element, textOf(item, element)]).filter(([, text]) => text !== '');
    return {
        ...portOf(item),
        ntype: `nessus.plugin.${pluginID}`,
        data: { name: nameOf(item), family: pluginFamily, ...Object.fromEntries(told) },
    };
}

function vulnOf(item: Item): object {
    const score = textOf(item, 'cvss3_base_score') || textOf(item, 'cvss_base_score');
    const severity = SEVERITIES[severityOf(item)] ?? item.attributes.severity;
    const info = [`Severity: ${severity}${score === '' ? '' : `, CVSS ${score}`}`, ...TOLD.map((element) => textOf(item, element))];
    return { ...portOf(item), name: nameOf(item), info: vulnInfo(info.filter((text) => text !== '').join('\n\n')), refs: refsOf(item) };
}

function refsOf(item: Item): readonly string[] {
    const all = (element: string): readonly string[] => item.texts.get(element) ?? [];
    const urls = all('see_also').flatMap((text) => text.split(/\s+/));
    const refs = [
        ...all('cve'),
        ...all('bid').map((id) => `BID-${id}`),
        ...all('xref').map((ref) => ref.replace(':', '-')),
        ...urls.filter((url) => url !== '').map((url) => `URL-${url}`),
        `NSS-${item.attributes.pluginID ?? ''}`,
    ];
    return refs.filter((ref) => ref !== '');
}
