import { cveIdsIn, type Findings, type NoteInput, type VulnInput } from '../findings.ts';
import type { ServiceInput } from '../host.ts';
import { refuseTooMany } from '../host-input.ts';
import type { Attributes } from './read-xml.ts';
import { vulnInfo, vulnName } from './scanner-text.ts';

/** What a script is about; a port, or the host. */
type On = Partial<Pick<ServiceInput, 'port' | 'proto'>>;

/** A value of the structured output of a script: text, a list, or an object. */
type Value = string | readonly Value[] | { readonly [key: string]: Value };

interface Table {
    readonly key: string | undefined;
    readonly items: [key: string | undefined, value: Value][];
}

/** Takes the elements of scripts and what is in them. */
export interface NmapScripts {
    /** Whether the element belongs to a script. Scripts whose place is null are read over. */
    open(element: string, attributes: Attributes, on: () => On | null): boolean;
    close(element: string): void;
    text(text: string): void;
    /** A note for each script, and the vulnerabilities that they tell of. */
    findings(): Findings;
}

/** The scripts of one host. */
export function nmapScripts(): NmapScripts {
    const notes: NoteInput[] = [];
    const vulns = new Map<string, VulnInput & { readonly refs: string[] }>();
    let script: { readonly id: string; readonly output: string; readonly on: On | null } | null = null;
    let tables: Table[] = [];
    let elem: { readonly key: string | undefined; text: string } | null = null;

    function finish(items: Table['items']): void {
        if (script === null || script.on === null) {
            return;
        }

        const { id, output, on } = script;
        const elements = valueFrom(items);
        refuseTooMany('notes', notes.length + 1);
        notes.push({ ...on, ntype: `nmap.nse.${id}`, data: { output, ...(items.length > 0 && { elements }) } });
        for (const vuln of vulnsOf(id, elements)) {
            const key = JSON.stringify([on, vuln.name]);
            const known = vulns.get(key);
            // Of two scripts that name it the first one is told; their references are told together.
            if (known === undefined) {
                refuseTooMany('vulns', vulns.size + 1);
                vulns.set(key, { ...on, ...vuln, refs: [...vuln.refs] });
            } else {
                for (const ref of vuln.refs) {
                    known.refs.push(ref);
                }
            }
        }
    }

    return {
        open(element, { id = '', output = '', key }, on) {
            if (script === null) {
                if (element !== 'script') {
                    return false;
                }

                script = { id, output, on: on() };
                tables = [{ key: undefined, items: [] }];
            } else if (element === 'table') {
                tables.push({ key, items: [] });
            } else if (element === 'elem') {
                elem = { key, text: '' };
            }
            return true;
        },

        close(element) {
            if (element === 'elem' && elem !== null) {
                tables.at(-1)?.items.push([elem.key, elem.text]);
                elem = null;
            } else if (element === 'table' && tables.length > 1) {
                const table = tables.pop();
                tables.at(-1)?.items.push([table?.key, valueFrom(table?.items ?? [])]);
            } else if (element === 'script' && script !== null) {
                finish(tables[0]?.items ?? []);
                script = null;
            }
        },

        text(text) {
            if (elem !== null) {
                elem.text += text;
            }
        },

        findings: () => ({ ...(notes.length > 0 && { notes }), ...(vulns.size > 0 && { vulns: [...vulns.values()] }) }),
    };
}

/** Without keys a list. Of several with one key the last ones are told by their number as well. */
function valueFrom(items: Table['items']): Value {
    if (items.every(([key]) => key === undefined)) {
        return items.map(([, value]) => value);
    }

    const named = new Map<string, Value>();
    for (const [index, [key = `${index + 1}`, value]] of items.entries()) {
        named.set(named.has(key) ? `${key} (${index + 1})` : key, value);
    }
    return Object.fromEntries(named);
}

type FoundVuln = VulnInput & { readonly refs: readonly string[] };

/** What `vulners` and the scripts that report by nmap's library `vulns` tell of. Ports that are not vulnerable have none. */
function vulnsOf(id: string, elements: Value): readonly FoundVuln[] {
    return Object.entries(elements).flatMap(([key, value]) =>
        id === 'vulners' ? vulnersVulns(key, value) : (libraryVuln(key, value) ?? []),
    );
}

/** A table for each version of a product, with a table for each id that the service knows; ids of exploits are left to the note. */
function vulnersVulns(product: string, listed: Value): readonly FoundVuln[] {
    return (typeof listed === 'string' ? [] : Object.values(listed)).flatMap((entry: Value) => {
        const name = textAt(entry, 'id');
        return cveIdsIn(name)[0] === name ? [{ name, info: `CVSS ${textAt(entry, 'cvss') || 'unknown'}, ${product}`, refs: [name] }] : [];
    });
}

/** From its sources of 2026-07: `VULNERABLE`, also with `(Exploitable)` or `(DoS)`, and `LIKELY VULNERABLE`. */
const IS_VULNERABLE = /^(?:LIKELY )?VULNERABLE\b/;

function libraryVuln(key: string, table: Value): FoundVuln | null {
    const state = textAt(table, 'state');
    if (!IS_VULNERABLE.test(state)) {
        return null;
    }

    const lines = [`State: ${state}`, ...textsAt(table, 'description')];
    return {
        name: vulnName(textAt(table, 'title') || key),
        info: vulnInfo(
            lines
                .map((line) => line.trim())
                .filter((line) => line !== '')
                .join('\n'),
        ),
        refs: [...textsAt(table, 'ids').map(idName), ...textsAt(table, 'refs').map((url) => `URL-${url}`)],
    };
}

/** `CVE:CVE-2014-3566` is `CVE-2014-3566`, `BID:70574` is `BID-70574`. */
function idName(id: string): string {
    const [kind = '', ...rest] = id.trim().split(':');
    const name = rest.join(':').trim();
    return name.startsWith(`${kind}-`) || name === '' ? name || kind : `${kind}-${name}`;
}

function at(value: Value, key: string): Value | undefined {
    return typeof value === 'object' && Object.hasOwn(value, key) ? (value as Readonly<Record<string, Value>>)[key] : undefined;
}

function textAt(value: Value, key: string): string {
    const found = at(value, key);
    return typeof found === 'string' ? found.trim() : '';
}

function textsAt(value: Value, key: string): readonly string[] {
    const found = at(value, key);
    const texts = typeof found === 'object' ? Object.values(found) : [found];
    return texts.filter((text): text is string => typeof text === 'string' && text !== '');
}
