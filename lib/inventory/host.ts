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
