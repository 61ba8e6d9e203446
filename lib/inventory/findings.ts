import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { isStorable, storableText, storableTime, UNSTORABLE } from '../schema-validation.ts';
import { FIELD_SCHEMAS, MAX_ID, PROTOCOLS } from './fields.ts';
import { MAX_TEXT, shortened } from './long-text.ts';
import type { Note, Service, Vuln } from './resources.ts';

/** The service that a note or a vulnerability is about; without one it is about the host. */
type OnService = Partial<Pick<Service, 'port' | 'proto'>>;

/**
 * A note as an import gives it. One that an import has made is found again by its service, its type, and its place among those of both;
 * `critical` and `seen` that are not given stay as they are.
 */
export type NoteInput = OnService & Pick<Note, 'ntype' | 'data'> & Partial<Pick<Note, 'critical' | 'seen'>>;

/** A vulnerability as an import gives it, found again by its service, its name, and its place among those of both. */
export type VulnInput = OnService &
    Pick<Vuln, 'name' | 'info'> &
    Partial<Pick<Vuln, 'exploited_at' | 'vuln_detail_count' | 'vuln_attempt_count' | 'nexpose_data_vuln_def_id'>>;

/** What an import may say of a host beside its services. */
export interface Findings {
    readonly notes?: readonly NoteInput[];
    readonly vulns?: readonly VulnInput[];
}

/** So many notes, and so many vulnerabilities, one host may have in an import. */
export const MAX_FINDINGS = 16_384;
/** So many of them may have service and type, or name, in common: each is found by counting through them. */
export const MAX_ALIKE = 1_000;
/** Longest name of a vulnerability, in UTF-16 code units. */
export const MAX_NAME = 255;
/** Of the data of a note; as deep as a scan may be. */
const MAX_DEPTH = 64;

/**
 * The rules for notes and vulnerabilities of an import.
 *
 * @param text Of a field that a database can store.
 * @param serverOwned Of a field that is accepted and ignored.
 */
export function findingSchemas(
    text: () => Joi.StringSchema,
    serverOwned: () => Joi.AnySchema,
): { readonly notes: Joi.ArraySchema; readonly vulns: Joi.ArraySchema } {
    const common = {
        ...Object.fromEntries(
            ['id', 'workspace_id', 'host_id', 'service_id', 'created_at', 'updated_at'].map((key) => [key, serverOwned()]),
        ),
        port: FIELD_SCHEMAS.port.optional(),
        proto: Joi.string().valid(...PROTOCOLS),
    };
    const number = (): Joi.NumberSchema => Joi.number().integer().min(0).max(MAX_ID);
    const flag = (): Joi.BooleanSchema => Joi.boolean().allow(null);
    const list = (item: Joi.Schema): Joi.ArraySchema => Joi.array().items(item).max(MAX_FINDINGS);
    return {
        notes: list(
            Joi.object({
                ...common,
                ntype: text().allow(null).default(null),
                data: Joi.object().required(),
                critical: flag(),
                seen: flag(),
            }),
        ),
        vulns: list(
            Joi.object({
                ...common,
                name: text().disallow('').max(MAX_NAME).required(),
                // How long it may be depends on whether it ends in references.
                info: storableText().allow('', null).default(null),
                refs: Joi.array().items(text().disallow('')),
                exploited_at: storableTime().allow(null),
                vuln_detail_count: number(),
                vuln_attempt_count: number(),
                nexpose_data_vuln_def_id: number().allow(null),
            }),
        ),
    };
}

/**
 * The notes and vulnerabilities of a host of an import whose fields are checked.
 *
 * @throws ScanwireError `INVALID_INPUT` naming the first that is about a service which the host does not name, that is too long, or that cannot be
 *     stored.
 */
export function checkedFindings({
    notes,
    vulns,
    services = [],
}: Findings & { readonly services?: readonly Pick<Service, 'port' | 'proto'>[] }): Findings {
    if (notes === undefined && vulns === undefined) {
        return {};
    }

    refuseTooManyAlike(
        'notes',
        indexedAmongAlike(notes ?? [], ({ ntype }) => ntype),
    );
    refuseTooManyAlike(
        'vulns',
        indexedAmongAlike(vulns ?? [], ({ name }) => name),
    );
    const named = new Set(services.map(({ port, proto }) => `${port}/${proto}`));
    const onService = (field: string, { port, proto = 'tcp' }: OnService): OnService => {
        if (port !== undefined && !named.has(`${port}/${proto}`)) {
            throw new ScanwireError('INVALID_INPUT', `${field}.port must be that of one of the services of the host`, {
                field: `${field}.port`,
            });
        }
        return port === undefined ? {} : { port, proto };
    };
    return {
        ...(notes !== undefined && {
            notes: notes.map(({ port, proto, ...note }, index) => {
                refuseUnstorable(note.data, `notes[${index}].data`);
                return { ...onService(`notes[${index}]`, { port, proto } as OnService), ...note };
            }),
        }),
        ...(vulns !== undefined && {
            vulns: vulns.map(({ port, proto, ...given }, index) => {
                const { refs = [], ...vuln } = given as typeof given & { readonly refs?: readonly string[] };
                const info = withReferences(checkedInfo(vuln.info, `vulns[${index}].info`), refs);
                return { ...onService(`vulns[${index}]`, { port, proto } as OnService), ...vuln, info };
            }),
        }),
    };
}

function refuseTooManyAlike(field: string, indexed: readonly (readonly [unknown, index: number])[]): void {
    const first = indexed.findIndex(([, index]) => index >= MAX_ALIKE);
    if (first >= 0) {
        throw new ScanwireError('INVALID_INPUT', `${field}[${first}] is one of more than ${MAX_ALIKE} that are called the same`, {
            field: `${field}[${first}]`,
        });
    }
}

function refuseUnstorable(data: object, field: string): void {
    if (isDeeper(data, MAX_DEPTH)) {
        throw new ScanwireError('INVALID_INPUT', `${field} must not be nested deeper than ${MAX_DEPTH}`, { field });
    }

    if (!isStorable(JSON.stringify(data))) {
        throw new ScanwireError('INVALID_INPUT', `${field} ${UNSTORABLE}`, { field });
    }
}

function isDeeper(value: unknown, depth: number): boolean {
    return typeof value === 'object' && value !== null && (depth === 0 || Object.values(value).some((part) => isDeeper(part, depth - 1)));
}

const REFERENCES = 'References: ';

/** Of a text that is cut for its references a sign is left at least, and the end of its line. */
const MAX_LINE = MAX_TEXT - 2;

/**
 * What is said of a vulnerability, with what it is called elsewhere as its last line: `CVE-2014-0160`, `BID-66690`, `URL-https://…`. What is said is cut so that
 * both have room; references for which there is none at all are left out.
 */
export function withReferences(info: string | null, refs: readonly string[]): string | null {
    const fitting: string[] = [];
    let length = REFERENCES.length;
    for (const ref of new Set(refs.map((one) => one.trim().replace(/\s+/g, '%20')))) {
        if (length + ref.length <= MAX_LINE) {
            fitting.push(ref);
            length += ref.length + 1;
        }
    }
    if (fitting.length === 0) {
        return info;
    }

    const line = `${REFERENCES}${fitting.join(' ')}`;
    return info === null || info === '' ? line : `${shortened(info, MAX_TEXT - line.length - 1)}\n${line}`;
}

/** What is said of a vulnerability, and the references behind it. */
function saidAndWritten(info: string): readonly [said: string, refs: readonly string[]] {
    const end = info.lastIndexOf('\n');
    const last = info.slice(end + 1);
    return last.startsWith(REFERENCES) ? [info.slice(0, Math.max(end, 0)), last.slice(REFERENCES.length).split(' ')] : [info, []];
}

/** A text as an import takes it: with references it may be too long, as it was stored before it was cut for them. */
function checkedInfo(info: string | null, field: string): string | null {
    if (info === null || info.length <= MAX_TEXT) {
        return info;
    }

    const [said, refs] = saidAndWritten(info);
    if (said.length > MAX_TEXT) {
        throw new ScanwireError('INVALID_INPUT', `${field} length must be less than or equal to ${MAX_TEXT} characters long`, { field });
    }
    return withReferences(said, refs);
}

/** A text of a row as an import takes it, cut where it has to be. */
export function importableInfo(info: string): string {
    const [said, refs] = info.length <= MAX_TEXT ? [info, []] : saidAndWritten(info);
    return withReferences(shortened(said), refs) as string;
}

const CVE = /CVE-\d{4}-\d{4,7}/gi;

/** The ids of CVE that a text names, in upper case. */
export function cveIdsIn(text: string): readonly string[] {
    return text.match(CVE)?.map((id) => id.toUpperCase()) ?? [];
}

/** What a vulnerability is called elsewhere: the ids of CVE that it names, and all that {@link withReferences} has written. */
export function referencesOf({ name, info }: Readonly<Record<string, unknown>>): readonly string[] {
    const text = `${info ?? ''}`;
    const [, written] = saidAndWritten(text);
    return [...new Set([...cveIdsIn(`${name ?? ''} ${text}`), ...written])];
}

/**
 * The findings of a host, each with its index among those that have service and type, or name, in common.
 *
 * @param keyOf The type of a note, the name of a vulnerability.
 */
export function indexedAmongAlike<Finding extends OnService>(
    findings: readonly Finding[],
    keyOf: (finding: Finding) => string | null,
): readonly (readonly [Finding, index: number])[] {
    const counts = new Map<string, number>();
    return findings.map((finding) => {
        const key = JSON.stringify([finding.port, finding.proto, keyOf(finding)]);
        const index = counts.get(key) ?? 0;
        counts.set(key, index + 1);
        return [finding, index];
    });
}
