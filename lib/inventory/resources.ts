import Joi from 'joi';
import { systemClock } from '../clock.ts';
import { ScanwireError } from '../errors.ts';
import { checked, isStorable, nameSchema, STORABLE, UNSTORABLE } from '../schema-validation.ts';
import { FIELD_SCHEMAS, type FieldTypes } from './fields.ts';
import type { HostInput } from './host.ts';

/*
 * Every resource is a table of its fields with their kinds, in the order in which they go out: its type and its schema follow
 * from that.
 */

type Row<Fields extends Readonly<Record<string, keyof FieldTypes>>> = { readonly [Field in keyof Fields]: FieldTypes[Fields[Field]] };

function rowSchema<Fields extends Readonly<Record<string, keyof FieldTypes>>>(fields: Fields): Joi.ObjectSchema<Row<Fields>> {
    return Joi.object(Object.fromEntries(Object.entries(fields).map(([field, kind]) => [field, FIELD_SCHEMAS[kind]])));
}

/** The fields of a service in the order in which they go out, with their kinds. */
export const SERVICE_FIELDS = {
    id: 'id',
    host_id: 'id',
    created_at: 'time',
    updated_at: 'time',
    port: 'port',
    proto: 'protocol',
    state: 'serviceState',
    name: 'text',
    info: 'nullableText',
} as const;

/** A service on a host, as every store returns it. */
export type Service = Row<typeof SERVICE_FIELDS>;

/** See {@link Service}. */
export const serviceSchema: Joi.ObjectSchema<Service> = rowSchema(SERVICE_FIELDS);

/** The fields of a note in the order in which they go out, with their kinds. */
export const NOTE_FIELDS = {
    id: 'id',
    workspace_id: 'id',
    host_id: 'id',
    service_id: 'nullableId',
    created_at: 'time',
    updated_at: 'time',
    ntype: 'nullableText',
    data: 'object',
    critical: 'nullableFlag',
    seen: 'nullableFlag',
} as const;

/** A note on a host or one of its services. */
export type Note = Row<typeof NOTE_FIELDS>;

/** See {@link Note}. */
export const noteSchema: Joi.ObjectSchema<Note> = rowSchema(NOTE_FIELDS);

/** A note as the index of its workspace shows it: on a host, or on none. */
export type WorkspaceNote = Omit<Note, 'host_id'> & { readonly host_id: number | null };

/** See {@link WorkspaceNote}. */
export const workspaceNoteSchema: Joi.ObjectSchema<WorkspaceNote> = rowSchema({ ...NOTE_FIELDS, host_id: 'nullableId' });

const SESSION_FIELDS = {
    id: 'id',
    host_id: 'id',
    stype: 'nullableText',
    via_exploit: 'nullableText',
    via_payload: 'nullableText',
    desc: 'nullableText',
    port: 'nullablePort',
    platform: 'nullableText',
    datastore: 'object',
    opened_at: 'time',
    closed_at: 'nullableTime',
    close_reason: 'nullableText',
    local_id: 'nullableId',
    last_seen: 'nullableTime',
    campaign_id: 'nullableId',
} as const;

/** A session with a host. */
export type Session = Row<typeof SESSION_FIELDS>;

/** See {@link Session}. */
export const sessionSchema: Joi.ObjectSchema<Session> = rowSchema(SESSION_FIELDS);

/** The fields of a vulnerability in the order in which they go out, with their kinds. */
export const VULN_FIELDS = {
    id: 'id',
    host_id: 'id',
    service_id: 'id',
    created_at: 'time',
    updated_at: 'time',
    name: 'vulnName',
    info: 'nullableText',
    exploited_at: 'nullableTime',
    vuln_detail_count: 'count',
    vuln_attempt_count: 'count',
    nexpose_data_vuln_def_id: 'nullableId',
} as const;

/** A vulnerability of a service. */
export type Vuln = Row<typeof VULN_FIELDS>;

/** See {@link Vuln}. */
export const vulnSchema: Joi.ObjectSchema<Vuln> = rowSchema(VULN_FIELDS);

/** A vulnerability as the index of its workspace shows it: of a service, or of a host as a whole. */
export type WorkspaceVuln = Omit<Vuln, 'service_id'> & { readonly service_id: number | null };

/** See {@link WorkspaceVuln}. */
export const workspaceVulnSchema: Joi.ObjectSchema<WorkspaceVuln> = rowSchema({ ...VULN_FIELDS, service_id: 'nullableId' });

const WORKSPACE_FIELDS = {
    id: 'id',
    name: 'filledText',
    boundary: 'nullableFilledText',
    description: 'nullableFilledText',
    owner_id: 'nullableId',
    limit_to_network: 'flag',
    created_at: 'time',
    updated_at: 'time',
} as const;

/** A workspace: hosts that belong together. */
export type Workspace = Row<typeof WORKSPACE_FIELDS>;

/** See {@link Workspace}. */
export const workspaceSchema: Joi.ObjectSchema<Workspace> = rowSchema(WORKSPACE_FIELDS);

/** Name of the workspace that exists from the start and receives what names no other. */
export const DEFAULT_WORKSPACE = 'default';

const nameOnly = Joi.object<{ workspace: string }, true>({ workspace: nameSchema.trim().required() });

/**
 * The name of a workspace, trimmed: 1 to 255 characters, none of them a control character.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `workspace`.
 */
export function workspaceName(name: unknown): string {
    return checked(nameOnly, { workspace: name as string }).workspace;
}

/** For stores, which code may ask for a workspace of any name. @throws ScanwireError `INVALID_INPUT`, field `workspace`, for one that no database keeps. */
export function refuseUnstorableName(name: string): void {
    if (!STORABLE.test(name)) {
        throw new ScanwireError('INVALID_INPUT', `Workspace ${UNSTORABLE}`, { field: 'workspace' });
    }
}

/**
 * For stores, which code may give hosts that nobody has checked.
 *
 * @param json Of all of them, or of what is stored of them.
 * @throws ScanwireError `INVALID_INPUT` with the field, for a text that no database keeps.
 */
export function refuseUnstorableHosts(hosts: readonly HostInput[], json: string = JSON.stringify(hosts)): void {
    if (isStorable(json)) {
        return;
    }

    for (const host of hosts) {
        const [field] = Object.entries(host).find((entry) => !isStorable(JSON.stringify(entry))) ?? [];
        if (field !== undefined) {
            throw new ScanwireError('INVALID_INPUT', `A host cannot be stored: ${field} ${UNSTORABLE}`, { field });
        }
    }
}

/** Of a time that is still to come all hosts would be taken for such as were not seen since. @throws ScanwireError `INVALID_INPUT`. */
export function refuseComing(notSeenSince: Date): void {
    if (notSeenSince > systemClock()) {
        const message = 'NotSeenSince must not be later than now: no host has been seen since';
        throw new ScanwireError('INVALID_INPUT', message, { field: 'notSeenSince' });
    }
}
