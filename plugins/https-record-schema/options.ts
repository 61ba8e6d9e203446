import type { RouteOptions } from '@hapi/hapi';
import Joi from 'joi';
import { DEFAULT_WORKSPACE } from '../../lib/inventory/resources.ts';
import { newWorkspaceSchema } from '../../lib/inventory/workspace-names.ts';
import type { LicenseSource } from '../../lib/license/license-source.ts';
import type { Enrichment, RecordStore } from '../../lib/records/index.ts';
import { MAX_LINE_BYTES, MAX_LINE_LIMIT } from '../../lib/records/record.ts';
import { inBytes, objectWith, ROUTE_PATH, withAbilities } from '../../lib/schema-validation.ts';
import { authSchema, type InstanceOptions, instanceSchema } from '../instance.ts';
import { maxStreamsSchema } from '../open-streams.ts';

/** Options of the plugin. */
export interface HttpsRecordSchemaOptions extends InstanceOptions {
    /** Path of the JSON Schema; records are checked at `<path>/check` and stored at `<path>/records`. `/https-record-schema` by default. */
    readonly path?: string | undefined;
    /**
     * Name of the authentication strategy of all routes, or false where somebody else has let the client in. Default `token` with `records`; without
     * them the server's default, if it has one: the schema is no secret.
     */
    readonly auth?: string | false | undefined;
    /** Whether the licence is valid now; asked on every request. Without it none is asked for. */
    readonly license?: LicenseSource | undefined;
    /** Largest batch in bytes, as it is sent. 64 MiB by default. */
    readonly maxBytes?: number | undefined;
    /** Largest batch in bytes after decompression, `maxBytes` at least. 512 MiB by default, or `maxBytes` where that is more. */
    readonly maxDecodedBytes?: number | undefined;
    /** Longest line in bytes; a longer one is reported and skipped. 1 MiB by default, 256 MiB at most. */
    readonly maxLineBytes?: number | undefined;
    /** How many bad lines are described in one answer; those beyond are counted. 1000 by default. */
    readonly maxReported?: number | undefined;
    /** Keeps records, for example `postgresRecords({ pool })`. Without it there are no routes below `<path>/records`. */
    readonly records?: RecordStore | undefined;
    /** Puts stored records into the inventory: hosts and services of the workspace, `default` by default. Not done by default. */
    readonly enrich?: { readonly workspace?: string | undefined } | undefined;
    /** Lists of records that are sent at once, lists and MCP tools of other plugins over the same pool counted, pages not. Default 32. */
    readonly maxStreams?: number | undefined;
}

type Defaulted = 'path' | 'maxBytes' | 'maxDecodedBytes' | 'maxLineBytes' | 'maxReported' | 'maxStreams';

/** The options with their defaults. */
export type Settings = Pick<HttpsRecordSchemaOptions, 'auth' | 'license' | 'records' | 'instance'> & {
    readonly [Option in Defaulted]: NonNullable<HttpsRecordSchemaOptions[Option]>;
} & { readonly enrich?: Enrichment };

/** What all routes have in common. */
export type Access = Pick<RouteOptions, 'auth' | 'cache' | 'ext' | 'state'>;

const MIB = 1_048_576;
/** Less was meant in a larger unit: hardly a record would fit in. */
const size = (): Joi.NumberSchema => inBytes(1000);

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<Settings> = Joi.object<Settings, true>({
    path: Joi.string().pattern(ROUTE_PATH).message('{{#label}} must look like /https-record-schema').default('/https-record-schema'),
    // What a server has no default for, or one that lets strangers pass, would show what is kept to anybody.
    auth: authSchema.default(({ records }: Pick<Settings, 'records'>) => (records === undefined ? undefined : 'token')),
    license: objectWith<LicenseSource>('valid'),
    maxBytes: size().default(64 * MIB),
    maxDecodedBytes: Joi.number()
        .integer()
        .min(Joi.ref('maxBytes'))
        .default(({ maxBytes }: Pick<Settings, 'maxBytes'>) => Math.max(512 * MIB, maxBytes)),
    maxLineBytes: size().max(MAX_LINE_LIMIT).default(MAX_LINE_BYTES),
    maxReported: Joi.number().integer().min(1).default(1000),
    records: withAbilities(objectWith<RecordStore>('add', 'get', 'list'), 'count'),
    enrich: Joi.object({ workspace: newWorkspaceSchema.default(DEFAULT_WORKSPACE) }).custom(enrichable),
    maxStreams: maxStreamsSchema,
    instance: instanceSchema,
});

/** @throws A Joi error where nothing could be enriched, at registration instead of with the first records. */
function enrichable(enrich: Enrichment, { state, message }: Joi.CustomHelpers): Enrichment | Joi.ErrorReport {
    const { records } = state.ancestors[0] as Pick<Settings, 'records'>;
    return records?.enriches === true ? enrich : message({ custom: '{{#label}} needs records, a store that can enrich an inventory' });
}
