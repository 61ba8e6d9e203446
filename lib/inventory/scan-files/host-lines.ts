import { isIP } from 'node:net';
import { ScanwireError } from '../../errors.ts';
import { type Line, lineSplitter, linesOf } from '../../line-splitter.ts';
import { isObject } from '../../schema-validation.ts';
import { PROTOCOLS } from '../fields.ts';
import type { HostInput } from '../host.ts';
import { normaliseHost } from '../host-input.ts';
import { type BadLines, badLines } from './bad-lines.ts';
import { serviceInfo, serviceName } from './nmap-host.ts';
import type { ScannedHost } from './read-xml.ts';
import { bannerService, serviceText } from './scanner-text.ts';

/** Longest line that is read, in bytes without its line break: a host may be as long in XML, and an export writes each on one line. */
export const MAX_HOST_LINE: number = 32 * 1024 * 1024;

/**
 * Reads JSON lines: on every line that is not blank one host in the shape of the API, of which only `address` is required, or one finding of a
 * scanner, as {@link hostOfLine} says. A byte order mark, CR LF and a missing last line break are accepted, and the lines of one JSON list.
 *
 * @throws ScanwireError `INVALID_INPUT` that names the line, the field and the reason, never the value, of each bad line; after the first 100 it
 *     reads no further. Behind a bad line there are no hosts. Also of a list without its end: what was cut off is no whole scan.
 */
export async function* readHostLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const [bad, list] = [badLines(), listOfLines()];
    for await (const lines of linesOf(source, lineSplitter(MAX_HOST_LINE))) {
        for (const line of lines) {
            const host = hostOn(line, bad, list);
            if (host !== null && !bad.found()) {
                yield host;
            }
        }
    }
    bad.end();
    list.assertEnded();
}

/** The last line of masscan until 2017, which is no JSON. */
const MASSCAN_END = '{finished: 1}';

/** The list that lines are of, if they are of one. */
interface ListOfLines {
    note(text: string, line: number): void;
    /** @throws ScanwireError `INVALID_INPUT` that names the line on which it began. */
    assertEnded(): void;
}

function listOfLines(): ListOfLines {
    let begun: number | null = null;
    return {
        note(text, line) {
            begun = text.startsWith('[') ? line : begun;
            begun = text.endsWith(']') || text === MASSCAN_END ? null : begun;
        },

        assertEnded() {
            if (begun !== null) {
                throw lineError(begun, ' begins a list that has no end: the file was cut off');
            }
        },
    };
}

/** Null for a line without one; a bad line is noted. */
function hostOn(line: Line, bad: BadLines, list: ListOfLines): HostInput | null {
    try {
        const whole = textOf(line);
        list.note(whole, line.number);
        const text = elementOf(whole);
        return text === '' || text === MASSCAN_END ? null : hostOf(text, line.number);
    } catch (error) {
        bad.add(line.number, error);
        return null;
    }
}

/** Without blanks around it; empty for a blank line. */
function textOf({ number, bytes }: Line): string {
    if (bytes === null) {
        throw lineError(number, ' is longer than 32 MiB');
    }

    try {
        return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim();
    } catch {
        throw lineError(number, ' is not UTF-8 text');
    }
}

/** What brackets and commas of a list are around. A host has neither at its ends. */
function elementOf(text: string): string {
    const from = text.startsWith('[') || text.startsWith(',') ? 1 : 0;
    const to = text.endsWith(']') || text.endsWith(',') ? -1 : undefined;
    return text.slice(from, to).trim();
}

function hostOf(text: string, line: number): HostInput | null {
    const value = parse(text, line);
    if (!isObject(value)) {
        throw lineError(line, ' is not a JSON object');
    }

    try {
        const host = hostOfLine(value);
        return host === null ? null : normaliseHost(host);
    } catch (error) {
        throw error instanceof ScanwireError ? lineError(line, `: ${error.message}`, error.field) : error;
    }
}

/** The parser's own message would quote the text. */
function parse(text: string, line: number): unknown {
    try {
        return JSON.parse(text);
    } catch {
        throw lineError(line, ' is not valid JSON: write one host, a JSON object, on each line');
    }
}

/** The refusal of a line, by its number from 1. @param reason As it goes on behind the number. @returns ScanwireError `INVALID_INPUT`. */
export function lineError(line: number, reason: string, field?: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Line ${line}${reason}`, field === undefined ? {} : { field });
}

type JsonObject = Readonly<Record<string, unknown>>;

/** What a scanner writes of one finding. */
interface Form {
    fits(line: JsonObject): boolean;
    /** Null for what tells of no host. */
    host(line: JsonObject): ScannedHost | null;
}

/**
 * The host of a line of JSON, before it is normalised: of masscan (`-oJ`, `-oD`), naabu (`-json`), httpx (`-json`) or zgrab2; every other line is
 * itself a host in the shape of the API. Null for a line that tells of none, such as one of a probe that failed.
 *
 * Lines of masscan and naabu mostly say no more than that a port is open: such a service has no `name`, so that one that is known by another
 * scan keeps its own.
 */
function hostOfLine(line: JsonObject): ScannedHost | null {
    const form = 'address' in line ? undefined : FORMS.find(({ fits }) => fits(line));
    return form === undefined ? line : form.host(line);
}

/** From its sources of 2026-11: a finding a line, `status` when it answered, `service` for what it said. */
const masscanList: Form = {
    fits: ({ ip, ports }) => typeof ip === 'string' && Array.isArray(ports),
    host({ ip, ports }) {
        const findings = (ports as readonly unknown[]).filter(isObject);
        const services = findings.flatMap(({ port, proto, status, service }) => {
            const { name, banner } = isObject(service) ? service : {};
            return masscanService({ port, proto, status, name, banner });
        });
        return alive(ip, services);
    },
};

const masscanLines: Form = {
    fits: ({ ip, rec_type }) => typeof ip === 'string' && typeof rec_type === 'string',
    host({ ip, port, proto, data }) {
        const { status, service_name: name, banner } = isObject(data) ? data : {};
        return alive(ip, masscanService({ port, proto, status, name, banner }));
    },
};

function masscanService({ port, proto, status, name, banner }: JsonObject): readonly JsonObject[] {
    // It writes the port 0 for protocols that have none.
    if (!PROTOCOLS.some((known) => known === proto) || port === 0) {
        return [];
    }

    return [{ port, proto, state: status === 'closed' ? 'closed' : 'open', ...bannerService(name, banner) }];
}

/**
 * From its sources of 2026-05. Version 2.0 had the port in an object. Whoever asks it for services (`-sV`) gets what nmap would say of them;
 * of a host that it has only discovered (`-sn`) it writes the port 0.
 */
const naabu: Form = {
    fits: ({ ip, port, url }) => typeof ip === 'string' && port !== undefined && url === undefined,
    host(line) {
        const { ip, host, protocol, mac_address: mac, os_type: system } = line;
        const port = isObject(line.port) ? line.port.Port : line.port;
        const proto = protocol === '' || protocol === undefined ? {} : { proto: protocol };
        return {
            ...alive(ip, port === 0 ? [] : [{ port, ...proto, ...nmapService(line) }], host),
            ...(typeof mac === 'string' && mac !== '' && { mac }),
            ...(typeof system === 'string' && system !== '' && { os_name: system }),
        };
    },
};

/** Name and info from fields that are called as nmap's attributes are; nothing where it has not told the service. */
function nmapService(line: JsonObject): JsonObject {
    const [name, tunnel, product, version, extrainfo] = ['name', 'tunnel', 'product', 'version', 'extra_info'].map((key) =>
        typeof line[key] === 'string' ? line[key] : undefined,
    );
    return name === undefined ? {} : { name: serviceName({ name, tunnel }), info: serviceInfo({ product, version, extrainfo }) };
}

/**
 * From its sources of 2026-02. `host` is the address that was asked, since 2025-12 its name, with the address as `host_ip`. Until 2022-08 there were dashes in
 * the names of fields.
 */
const httpx: Form = {
    fits: (line) => typeof line.url === 'string' && (line.status_code ?? line['status-code']) !== undefined,
    host({ url, host_ip, host, a, aaaa, port, scheme, webserver, failed }) {
        if (failed === true) {
            return null;
        }

        const addresses = [host_ip, host, ...(Array.isArray(a) ? a : []), ...(Array.isArray(aaaa) ? aaaa : [])];
        const name = URL.canParse(url as string) ? new URL(url as string).hostname : undefined;
        // It writes the port as text. Anything else is for the rules for hosts.
        const service = {
            port: typeof port === 'string' ? Number(port) : port,
            name: scheme === 'https' ? 'ssl/http' : 'http',
            info: serviceText(webserver ?? null),
        };
        return alive(addresses.find(isAddress), [service], name?.startsWith('[') ? undefined : name);
    },
};

/** Modules of zgrab2 that ask over UDP. `omronfins` does unless it is told otherwise, which what it writes does not say. */
const UDP_MODULES: ReadonlySet<unknown> = new Set(['bacnet', 'ntp', 'omronfins']);

/** From its sources of 2026-07. Until 2025-09 it wrote no ports: of what those versions found, the host alone is known. Of a name without an address it tells an error only. */
const zgrab: Form = {
    fits: ({ ip, domain, data, error }) =>
        (typeof ip === 'string' || typeof domain === 'string') && (isObject(data) || typeof error === 'string'),
    host({ ip, domain, data }) {
        const all: readonly unknown[] = isObject(data) ? Object.values(data) : [];
        const answers = all.filter((answer) => isObject(answer) && answer.status === 'success') as JsonObject[];
        const services = answers.filter(({ port }) => port !== undefined).map(zgrabService);
        const byPort = new Map(services.map((service) => [`${service.port}/${service.proto}`, service]));
        return answers.length === 0 ? null : alive(ip, [...byPort.values()], domain);
    },
};

function zgrabService({ port, protocol }: JsonObject): JsonObject {
    const proto = UDP_MODULES.has(protocol) ? 'udp' : 'tcp';
    return { port, proto, name: protocol === 'tls' ? 'ssl' : serviceText(protocol), info: null };
}

/** What fits two of them is of the first. */
const FORMS: readonly Form[] = [masscanLines, masscanList, httpx, zgrab, naabu];

/** One that has answered. What is absent or of another type is told of by the rules for hosts, which name the field. */
function alive(address: unknown, services: readonly JsonObject[], name?: unknown): ScannedHost {
    const named = typeof name === 'string' && name !== '' && isIP(name) === 0 ? { name } : {};
    return { ...(address !== undefined && { address }), state: 'alive', ...named, services };
}

function isAddress(value: unknown): value is string {
    return typeof value === 'string' && isIP(value) !== 0;
}
