import Joi from 'joi';
import { checked, nameSchema } from '../checked.ts';

/** What a service may be spoken to by. */
export const PROTOCOLS = ['tcp', 'udp'] as const;

/** What a scan finds of a port. */
export const SERVICE_STATES = ['open', 'closed', 'filtered', 'unknown'] as const;

/** A service on a host, as every store returns it. */
export interface Service {
    readonly id: number;
    readonly host_id: number;
    readonly created_at: Date;
    readonly updated_at: Date;
    /** 1 to 65535. */
    readonly port: number;
    readonly proto: (typeof PROTOCOLS)[number];
    readonly state: (typeof SERVICE_STATES)[number];
    readonly name: string;
    readonly info: string | null;
}

/** A note on a host or one of its services. */
export interface Note {
    readonly id: number;
    readonly workspace_id: number;
    readonly host_id: number;
    readonly service_id: number | null;
    readonly created_at: Date;
    readonly updated_at: Date;
    readonly ntype: string | null;
    readonly data: Readonly<Record<string, unknown>>;
    readonly critical: boolean | null;
    readonly seen: boolean | null;
}

/** A session with a host. */
export interface Session {
    readonly id: number;
    readonly host_id: number;
    readonly stype: string | null;
    readonly via_exploit: string | null;
    readonly via_payload: string | null;
    readonly desc: string | null;
    readonly port: number | null;
    readonly platform: string | null;
    readonly datastore: Readonly<Record<string, unknown>>;
    readonly opened_at: Date;
    readonly closed_at: Date | null;
    readonly close_reason: string | null;
    readonly local_id: number | null;
    readonly last_seen: Date | null;
    readonly campaign_id: number | null;
}

/** A vulnerability of a service. */
export interface Vuln {
    readonly id: number;
    readonly host_id: number;
    readonly service_id: number;
    readonly created_at: Date;
    readonly updated_at: Date;
    /** At most 255 characters. */
    readonly name: string;
    readonly info: string | null;
    readonly exploited_at: Date | null;
    readonly vuln_detail_count: number;
    readonly vuln_attempt_count: number;
    readonly nexpose_data_vuln_def_id: number | null;
}

/** An id in a row. In a row every field is there; what is not known is null or empty. */
export const id = (): Joi.NumberSchema => Joi.number().integer().required();
/** An id in a row, null for none. */
export const nullableId = (): Joi.NumberSchema => id().allow(null);
/** Text in a row, `''` when not known. */
export const text = (): Joi.StringSchema => Joi.string().allow('').required();
/** Text in a row, null when not known. */
export const nullableText = (): Joi.StringSchema => text().allow(null);
/** A number of things in a row. */
export const count = (): Joi.NumberSchema => Joi.number().integer().min(0).required();
/** An instant in a row. */
export const date = (): Joi.DateSchema => Joi.date().required();
const nullableDate = (): Joi.DateSchema => date().allow(null);
const nullableFlag = (): Joi.BooleanSchema => Joi.boolean().allow(null).required();
const port = (): Joi.NumberSchema => Joi.number().integer().min(1).max(65535).required();

/** The fields in the order in which they go out, as in all schemas here. */
export const serviceSchema: Joi.ObjectSchema<Service> = Joi.object<Service, true>({
    id: id(),
    host_id: id(),
    created_at: date(),
    updated_at: date(),
    port: port(),
    proto: Joi.string()
        .valid(...PROTOCOLS)
        .required(),
    state: Joi.string()
        .valid(...SERVICE_STATES)
        .required(),
    name: text(),
    info: nullableText(),
});

/** See {@link Note}. */
export const noteSchema: Joi.ObjectSchema<Note> = Joi.object<Note, true>({
    id: id(),
    workspace_id: id(),
    host_id: id(),
    service_id: nullableId(),
    created_at: date(),
    updated_at: date(),
    ntype: nullableText(),
    data: Joi.object().required(),
    critical: nullableFlag(),
    seen: nullableFlag(),
});

/** See {@link Session}. */
export const sessionSchema: Joi.ObjectSchema<Session> = Joi.object<Session, true>({
    id: id(),
    host_id: id(),
    stype: nullableText(),
    via_exploit: nullableText(),
    via_payload: nullableText(),
    desc: nullableText(),
    port: port().allow(null),
    platform: nullableText(),
    datastore: Joi.object().required(),
    opened_at: date(),
    closed_at: nullableDate(),
    close_reason: nullableText(),
    local_id: nullableId(),
    last_seen: nullableDate(),
    campaign_id: nullableId(),
});

/** See {@link Vuln}. */
export const vulnSchema: Joi.ObjectSchema<Vuln> = Joi.object<Vuln, true>({
    id: id(),
    host_id: id(),
    service_id: id(),
    created_at: date(),
    updated_at: date(),
    name: Joi.string().max(255).required(),
    info: nullableText(),
    exploited_at: nullableDate(),
    vuln_detail_count: count(),
    vuln_attempt_count: count(),
    nexpose_data_vuln_def_id: nullableId(),
});

/** A workspace: hosts that belong together. */
export interface Workspace {
    readonly id: number;
    readonly name: string;
    readonly boundary: string | null;
    readonly description: string | null;
    readonly owner_id: number | null;
    readonly limit_to_network: boolean;
    readonly created_at: Date;
    readonly updated_at: Date;
}

/** Name of the workspace that exists from the start and receives what names no other. */
export const DEFAULT_WORKSPACE = 'default';

/** The fields in the order in which they go out. */
export const workspaceSchema: Joi.ObjectSchema<Workspace> = Joi.object<Workspace, true>({
    id: id(),
    name: Joi.string().required(),
    boundary: Joi.string().allow(null).required(),
    description: Joi.string().allow(null).required(),
    owner_id: nullableId(),
    limit_to_network: Joi.boolean().required(),
    created_at: date(),
    updated_at: date(),
});

const schema = Joi.object<{ workspace: string }, true>({
    workspace: nameSchema.trim().required(),
});

/**
 * The name of a workspace, trimmed: 1 to 255 characters, none of them a control character.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `workspace`.
 */
export function workspaceName(name: unknown): string {
    return checked(schema, { workspace: name as string }).workspace;
}
