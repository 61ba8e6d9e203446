import Joi from 'joi';
import type { ClosedPorts } from './closed-ports.ts';
import { FIELD_SCHEMAS, type FieldTypes } from './fields.ts';
import type { Findings } from './findings.ts';
import type { Service } from './resources.ts';

/** Whether a host was up when it was looked at last. */
export const HOST_STATES = ['alive', 'down', 'unknown'] as const;

/** One of {@link HOST_STATES}. */
export type HostState = (typeof HOST_STATES)[number];

/**
 * Every field of a host in the order in which they go out, with its kind. The type of a host, its schema, what an import may give,
 * the defaults and the SQL of the stores follow from this table: a new field is a line here and a column in a migration.
 */
export const HOST_FIELDS = {
    id: 'id',
    workspace_id: 'id',
    created_at: 'time',
    updated_at: 'time',
    /** Canonical lower-case text; an IPv6 zone is in `scope`. Unique within the workspace. */
    address: 'address',
    mac: 'text',
    comm: 'nullableText',
    /** Falls back to the address. */
    name: 'name',
    state: 'state',
    os_name: 'text',
    os_flavor: 'text',
    os_sp: 'text',
    os_lang: 'nullableText',
    arch: 'nullableText',
    purpose: 'text',
    info: 'nullableText',
    comments: 'nullableText',
    scope: 'nullableText',
    virtual_host: 'nullableText',
    note_count: 'count',
    vuln_count: 'count',
    service_count: 'count',
    host_detail_count: 'count',
    exploit_attempt_count: 'count',
    cred_count: 'count',
    nexpose_data_asset_id: 'foreignId',
    history_count: 'count',
    detected_arch: 'nullableText',
} as const;

/** What the kinds of fields hold. An import gives no ids, times and counts: the store keeps them. */
interface HostFieldTypes extends Pick<FieldTypes, 'id' | 'time' | 'count' | 'text' | 'nullableText'> {
    readonly address: string;
    readonly name: string;
    readonly state: HostState;
    /** Id in another system. */
    readonly foreignId: number | null;
}

/** Kind of a field, by which it is checked and stored. */
export type HostFieldKind = keyof HostFieldTypes;
type KindOf<Field extends keyof typeof HOST_FIELDS> = (typeof HOST_FIELDS)[Field];

/** A host as every store returns it: all keys, unset strings as `''`, unset nullable fields as null. */
export type Host = { readonly [Field in keyof typeof HOST_FIELDS]: HostFieldTypes[KindOf<Field>] };

/** Something for each field of a host, made by its kind, in the order of the table; a field whose kind is left out is left out. */
export function byHostField<T>(byKind: Readonly<Partial<Record<HostFieldKind, (field: string) => T>>>): Readonly<Record<string, T>> {
    return Object.fromEntries(
        Object.entries(HOST_FIELDS).flatMap(([field, kind]) => {
            const make = byKind[kind];
            return make === undefined ? [] : [[field, make(field)]];
        }),
    );
}

const SCHEMAS: Readonly<Record<HostFieldKind, Joi.Schema>> = {
    ...FIELD_SCHEMAS,
    address: FIELD_SCHEMAS.filledText,
    name: FIELD_SCHEMAS.text,
    state: FIELD_SCHEMAS.filledText.valid(...HOST_STATES),
    foreignId: FIELD_SCHEMAS.nullableId,
};

/** See {@link Host}. */
export const hostSchema: Joi.ObjectSchema<Host> = Joi.object(
    Object.fromEntries(Object.entries(HOST_FIELDS).map(([field, kind]) => [field, SCHEMAS[kind]])),
);

/** What a host without a name is called, and how one is whose state nobody gives. */
export const HOST_FALLBACKS: Readonly<Record<'name' | 'state', (host: Readonly<Record<string, unknown>>) => unknown>> = {
    name: ({ address }) => address,
    state: () => 'alive',
};

/** A service found on a host, as an import gives it. Without name and info, one that is known keeps its own. */
export type ServiceInput = Pick<Service, 'port' | 'proto' | 'state'> &
    Partial<Pick<Service, 'name' | 'info'>> & {
        /** What it may be, by its port alone: its name where no other is given or known. */
        readonly guessed_name?: string;
    };

/**
 * A host as an import gives it: normalised, with the fields that the source knows. A field that is absent leaves what the
 * workspace already holds; a new host gets the default of that field.
 */
export type HostInput = {
    readonly [Field in keyof Host as KindOf<Field> extends 'id' | 'time' | 'count' ? never : Field]?: Host[Field];
} & {
    readonly address: string;
    readonly services?: readonly ServiceInput[];
    /** Services that the workspace holds there are `closed` from now on, unless `services` says otherwise. None is made. */
    readonly closed_ports?: ClosedPorts;
    /** Where the workspace does not hold the host, none is made: all that is known may be that it is down. */
    readonly if_known?: boolean;
} & Findings;

/** The fields of the host itself. */
type HostFields = Omit<HostInput, 'services' | 'closed_ports' | 'if_known' | keyof Findings>;

/** A host before its store has given it ids and times. */
export type NewHost = Omit<Host, 'id' | 'workspace_id' | 'created_at' | 'updated_at'>;

/** What a field that an import leaves open starts as; `name` falls back to the address. */
const DEFAULTS = byHostField<unknown>({
    count: () => 0,
    state: () => 'alive',
    text: () => '',
    nullableText: () => null,
    foreignId: () => null,
});

/** All fields of a host that a workspace sees for the first time; `service_count` is the store's to keep. */
export function newHost(input: HostInput): NewHost {
    return { ...DEFAULTS, name: input.address, ...hostFields(input) } as NewHost;
}

/** The fields of the host itself that the import gives, to lay over what the workspace holds. */
export function hostFields(input: HostInput): HostFields {
    const { services: _services, closed_ports: _closed, if_known: _known, notes: _notes, vulns: _vulns, ...fields } = input;
    return fields;
}

/** The architectures that clients know; anything else goes out as `Unknown`. */
export const KNOWN_ARCHES: ReadonlySet<string> = new Set([
    'armbe',
    'armle',
    'cbea',
    'cbea64',
    'cmd',
    'java',
    'mips',
    'mipsbe',
    'mipsle',
    'php',
    'ppc',
    'ppc64',
    'ruby',
    'sparc',
    'tty',
    'x64',
    'x86',
    'x86_64',
    '',
    'Unknown',
]);

/** The two fields of a host that say what it runs on; a field that is absent is not known by this source. */
export interface ArchFields {
    readonly arch?: string | null;
    readonly detected_arch?: string | null;
}

/** An arch that clients do not know becomes `Unknown`, and its text is kept in `detected_arch`. */
export function normaliseArch(fields: ArchFields): ArchFields {
    const { arch } = fields;
    return arch === undefined || arch === null || KNOWN_ARCHES.has(arch) ? fields : { arch: 'Unknown', detected_arch: arch };
}
