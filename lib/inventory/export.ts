import Joi from 'joi';
import { type Clock, systemClock, timeSlice } from '../clock.ts';
import { csvLine } from '../csv.ts';
import { checked, nameSchema } from '../schema-validation.ts';
import { timestampFormat } from '../timestamp.ts';
import { PROTOCOLS } from './fields.ts';
import { importableInfo } from './findings.ts';
import { HOST_FIELDS } from './host.ts';
import { type HostWithServices, type ShownHost, workspaceNamed } from './host-pages.ts';
import { shortened } from './long-text.ts';
import { nmapXml } from './nmap-export.ts';
import { NOTE_FIELDS, SERVICE_FIELDS, type Service, VULN_FIELDS } from './resources.ts';
import type { InventoryStore, ReadOptions } from './store.ts';
import { type WholeInventory, wholeHosts } from './whole-hosts.ts';

const EXPORT_FORMATS = ['jsonl', 'csv', 'nmap-xml'] as const;

/**
 * `jsonl`: a host on each line, in the shape of the API, with its services, notes and vulnerabilities; `readScan` reads it again, and an
 * import of it into another workspace gives the same rows, but for ids, times and the counts that imports do not keep. `csv`: a line for
 * each service, the host in front; one for a host that has none. `nmap-xml`: hosts and services as nmap writes them.
 */
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** What is exported, and how. */
export interface ExportQuery {
    /** Name of the workspace. */
    readonly workspace: string;
    readonly format: ExportFormat;
}

/** The rule of an {@link ExportQuery}. */
export const exportQuerySchema: Joi.ObjectSchema<ExportQuery> = Joi.object<ExportQuery, true>({
    workspace: nameSchema.trim().required().description('Name of the workspace'),
    format: Joi.string<ExportFormat>()
        .valid(...EXPORT_FORMATS)
        .required()
        .description('`jsonl` can be imported again with notes and vulnerabilities, `nmap-xml` without; `csv` has a line for each service'),
}).required();

/** An export under way. */
export interface Export {
    /** Media type of its text. */
    readonly type: string;
    /** Its text, piece by piece; nothing is read before it is asked for. Ending it early ends the reading. */
    readonly text: AsyncGenerator<string, void, undefined>;
}

/** How an export is read. */
export interface ExportOptions extends ReadOptions {
    readonly clock?: Clock;
}

/** What an export reads; what is left out is exported as empty. */
export type ExportedInventory = Pick<InventoryStore, 'workspaces'> & WholeInventory;

/**
 * The hosts of a workspace with what is below them, in ascending id and in constant memory. Each is as it is when its turn comes: whoever
 * writes meanwhile is not waited for.
 *
 * @throws ScanwireError `NOT_FOUND` for the workspace, `INVALID_INPUT` for the format; while the text is read, whatever the store throws.
 */
export async function exportWorkspace(
    inventory: ExportedInventory,
    query: ExportQuery,
    { clock = systemClock, ...options }: ExportOptions = {},
): Promise<Export> {
    const { workspace, format } = checked(exportQuerySchema, query, { subject: 'Export' });
    const { id } = await workspaceNamed(inventory, workspace, options);
    const { type, findings, text } = FORMS[format];
    return { type, text: pieces(text(wholeHosts(inventory, id, { ...options, findings }), clock)) };
}

/** Small enough that a few of them do not count, in characters. */
const PIECE = 65_536;

/** Texts put together, so that what they travel through need not handle each. */
async function* pieces(texts: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
    const yieldIfDue = timeSlice();
    let piece = '';
    for await (const text of texts) {
        piece += text;
        if (piece.length >= PIECE) {
            yield piece;
            piece = '';
        }
        await yieldIfDue();
    }
    yield piece;
}

interface Form {
    readonly type: string;
    /** Whether it has notes and vulnerabilities. */
    readonly findings: boolean;
    text(hosts: AsyncIterable<ShownHost>, clock: Clock): AsyncIterable<string>;
}

const FORMS: Readonly<Record<ExportFormat, Form>> = {
    jsonl: { type: 'application/x-ndjson', findings: true, text: jsonLines },
    csv: { type: 'text/csv; charset=utf-8; header=present', findings: false, text: csvLines },
    'nmap-xml': { type: 'application/xml; charset=utf-8', findings: false, text: (hosts, clock) => nmapXml(importableHosts(hosts), clock) },
};

/**
 * The services that an import takes: by TCP and UDP, and the first of each port. A store of another maker may hold more: newer versions of the Metasploit
 * Framework have one port several times, with what is spoken inside of what, the first being the outermost.
 */
function importableServices(services: readonly Service[]): readonly Service[] {
    const first = new Map<string, Service>();
    for (const service of services.filter(isKnown)) {
        const key = `${service.port}/${service.proto}`;
        first.set(key, first.get(key) ?? service);
    }
    return [...first.values()];
}

const isKnown = ({ port, proto }: Service): boolean => port > 0 && PROTOCOLS.includes(proto);

async function* importableHosts(hosts: AsyncIterable<ShownHost>): AsyncGenerator<ShownHost, void, undefined> {
    for await (const host of hosts) {
        yield { ...withShortTexts(host), services: importableServices(host.services).map(withShortTexts) };
    }
}

/** An import takes no longer ones. */
function withShortTexts<Row extends object>(row: Row): Row {
    const fields = Object.entries(row).map(([field, value]) => [field, typeof value === 'string' ? shortened(value) : value]);
    return Object.fromEntries(fields) as Row;
}

/** The fields of a row and no others, in their order: an import refuses what it does not know. */
function only(fields: object, row: object): Readonly<Record<string, unknown>> {
    return Object.fromEntries(Object.keys(fields).map((field) => [field, (row as Readonly<Record<string, unknown>>)[field]]));
}

async function* jsonLines(hosts: AsyncIterable<ShownHost>): AsyncGenerator<string, void, undefined> {
    for await (const host of hosts) {
        yield `${JSON.stringify(documentOf(host))}\n`;
    }
}

/**
 * An import finds the service of a note or a vulnerability by its port; what is of a service that it does not take is of the host. One whose service has gone
 * meanwhile has gone with it.
 */
function documentOf({ services, notes, vulns, ...host }: ShownHost): object {
    const places = new Map(services.map((service) => [service.id, isKnown(service) ? { port: service.port, proto: service.proto } : {}]));
    const found = (fields: object, rows: readonly { readonly service_id: number | null }[]): readonly object[] =>
        rows
            .filter(({ service_id }) => service_id === null || places.has(service_id))
            .map((row) => ({ ...only(fields, row), ...places.get(row.service_id ?? 0) }));
    const vulnsWithRoom = vulns.map((vuln) => ({ ...vuln, info: vuln.info && importableInfo(vuln.info) }));
    return {
        ...withShortTexts(only(HOST_FIELDS, host)),
        services: importableServices(services).map((service) => withShortTexts(only(SERVICE_FIELDS, service))),
        notes: found(NOTE_FIELDS, notes).map(withShortTexts),
        vulns: found(VULN_FIELDS, vulnsWithRoom),
    };
}

const HOST_COLUMNS = Object.keys(HOST_FIELDS);
/** The host is in front of it. */
const SERVICE_COLUMNS = Object.keys(SERVICE_FIELDS).filter((field) => field !== 'host_id');

async function* csvLines(hosts: AsyncIterable<HostWithServices>): AsyncGenerator<string, void, undefined> {
    yield csvLine([...HOST_COLUMNS, ...SERVICE_COLUMNS.map((field) => `service_${field}`)]);
    for await (const { services, ...host } of hosts) {
        const front = cells(HOST_COLUMNS, host);
        const lines = services.length === 0 ? [{}] : services;
        yield lines.map((service) => csvLine([...front, ...cells(SERVICE_COLUMNS, service)])).join('');
    }
}

const timestamp = timestampFormat();

function cells(columns: readonly string[], row: object): readonly unknown[] {
    return columns.map((column) => {
        const value = (row as Readonly<Record<string, unknown>>)[column];
        return value instanceof Date ? timestamp(value) : value;
    });
}
