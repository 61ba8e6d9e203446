import Joi from 'joi';

export type HostState = 'alive' | 'down' | 'unknown';

/** A host as every store returns it: all keys, unset strings as `''`, unset nullable fields as null. */
export interface Host {
    readonly id: number;
    readonly workspace_id: number;
    readonly created_at: Date;
    readonly updated_at: Date;
    /** Canonical lower-case text; an IPv6 zone is in `scope`. Unique within the workspace. */
    readonly address: string;
    readonly mac: string;
    readonly comm: string | null;
    /** Falls back to the address. */
    readonly name: string;
    readonly state: HostState;
    readonly os_name: string;
    readonly os_flavor: string;
    readonly os_sp: string;
    readonly os_lang: string | null;
    readonly arch: string | null;
    readonly purpose: string;
    readonly info: string | null;
    readonly comments: string | null;
    readonly scope: string | null;
    readonly virtual_host: string | null;
    readonly note_count: number;
    readonly vuln_count: number;
    readonly service_count: number;
    readonly host_detail_count: number;
    readonly exploit_attempt_count: number;
    readonly cred_count: number;
    readonly nexpose_data_asset_id: number | null;
    readonly history_count: number;
    readonly detected_arch: string | null;
}

const text = (): Joi.StringSchema => Joi.string().allow('').required();
const nullableText = (): Joi.StringSchema => Joi.string().allow('', null).required();
const count = (): Joi.NumberSchema => Joi.number().integer().min(0).required();

/** The fields in the order in which they go out. */
export const hostSchema: Joi.ObjectSchema<Host> = Joi.object<Host, true>({
    id: Joi.number().integer().required(),
    workspace_id: Joi.number().integer().required(),
    created_at: Joi.date().required(),
    updated_at: Joi.date().required(),
    address: Joi.string().required(),
    mac: text(),
    comm: nullableText(),
    name: text(),
    state: Joi.string().valid('alive', 'down', 'unknown').required(),
    os_name: text(),
    os_flavor: text(),
    os_sp: text(),
    os_lang: nullableText(),
    arch: nullableText(),
    purpose: text(),
    info: nullableText(),
    comments: nullableText(),
    scope: nullableText(),
    virtual_host: nullableText(),
    note_count: count(),
    vuln_count: count(),
    service_count: count(),
    host_detail_count: count(),
    exploit_attempt_count: count(),
    cred_count: count(),
    nexpose_data_asset_id: Joi.number().integer().allow(null).required(),
    history_count: count(),
    detected_arch: nullableText(),
});

/** A service found on a host, as an import gives it. */
export interface ServiceInput {
    /** 1 to 65535. */
    readonly port: number;
    readonly proto: 'tcp' | 'udp';
    readonly state: 'open' | 'closed' | 'filtered' | 'unknown';
    readonly name: string;
    readonly info: string | null;
}

/**
 * A host as an import gives it: normalised, with the fields that the source knows. A field that is absent leaves what the
 * workspace already holds; a new host gets the default of that field.
 */
export type HostInput = { readonly address: string; readonly services?: readonly ServiceInput[] } & Partial<
    Omit<
        Host,
        | 'id'
        | 'workspace_id'
        | 'created_at'
        | 'updated_at'
        | 'address'
        | 'note_count'
        | 'vuln_count'
        | 'service_count'
        | 'host_detail_count'
        | 'exploit_attempt_count'
        | 'cred_count'
        | 'history_count'
    >
>;

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

/** A host before its store has given it ids and times. */
export type NewHost = Omit<Host, 'id' | 'workspace_id' | 'created_at' | 'updated_at'>;

/** What a field that an import leaves open starts as; `name` falls back to the address. */
const DEFAULTS: Omit<NewHost, 'address' | 'name'> = {
    mac: '',
    comm: null,
    state: 'alive',
    os_name: '',
    os_flavor: '',
    os_sp: '',
    os_lang: null,
    arch: null,
    purpose: '',
    info: null,
    comments: null,
    scope: null,
    virtual_host: null,
    note_count: 0,
    vuln_count: 0,
    service_count: 0,
    host_detail_count: 0,
    exploit_attempt_count: 0,
    cred_count: 0,
    nexpose_data_asset_id: null,
    history_count: 0,
    detected_arch: null,
};

/** All fields of a host that a workspace sees for the first time; `service_count` is the store's to keep. */
export function newHost(input: HostInput): NewHost {
    return { ...DEFAULTS, name: input.address, ...hostFields(input) };
}

/** The fields of the host itself that the import gives, to lay over what the workspace holds. */
export function hostFields({ services: _services, ...fields }: HostInput): Omit<HostInput, 'services'> {
    return fields;
}
