import Joi from 'joi';
import { type ApplicationSchema, applicationSchemaRules } from '../../lib/application-schema.ts';
import { type Collection, type InventoryStore, inventorySchema } from '../../lib/inventory/store.ts';
import type { LicenseSource } from '../../lib/license/license-source.ts';
import { objectWith, withAbilities } from '../../lib/schema-validation.ts';
import { authSchema, type InstanceOptions, instanceSchema } from '../instance.ts';
import { maxStreamsSchema } from '../open-streams.ts';
import { type RequestLimit, requestLimitSchema } from './request-limits.ts';

/** Rows of a resource that the application adds; the schema names every field, besides `id`, that is to go out. */
export type ResourceRow = { readonly id: number };

/**
 * A resource of the application's own: it gets an index and a show route with the rules of all others. The fields of its schema go out,
 * in their order; dates go out as timestamps.
 */
export interface OwnResource extends ApplicationSchema {
    /**
     * Path of the index below `/rest_api/v2`, with the ids of its parents in braces, for example
     * `/workspaces/{workspace_id}/campaigns`. What stands before an id must be the path of another resource.
     */
    readonly path: string;
    readonly store: Collection<ResourceRow>;
}

/** Options of the plugin. */
export interface RestApiV2Options extends InstanceOptions {
    /** The scan data. A store without an optional collection has no routes for it. */
    readonly store: InventoryStore;
    /** Whether the licence is valid now; asked on every request. */
    readonly license: LicenseSource;
    /** Name of the authentication strategy of every route, false where somebody else has let the client in. Default `token`. */
    readonly auth?: string | false | undefined;
    /** IANA name of the time zone whose offset the timestamps bear. Default `UTC`. */
    readonly timeZone?: string | undefined;
    /** Resources beyond those of the store. Default none. */
    readonly resources?: readonly OwnResource[] | undefined;
    /** How many requests a client may make; needs the package `rate-limiter-flexible`. No limit by default. */
    readonly rateLimit?: RequestLimit | undefined;
    /** Indexes of the store that are sent at once, those of other plugins counted, pages of them (`limit`) not. Default 32. */
    readonly maxStreams?: number | undefined;
    /** The description of the API, at `/rest_api/v2/openapi.json`. */
    readonly openapi?: OpenApiOptions | undefined;
}

/** How the API is described in OpenAPI 3.1. */
export interface OpenApiOptions {
    /** Default true. */
    readonly enabled?: boolean | undefined;
    /** Whether the document needs neither key nor licence. Default false. */
    readonly public?: boolean | undefined;
    /** Path of a page that shows it, for example `/api-docs`; needs the package `swagger-ui-dist`. None by default. */
    readonly page?: string | undefined;
}

const ownResourceSchema: Joi.ObjectSchema<OwnResource> = Joi.object<OwnResource>({
    path: Joi.string()
        .pattern(/^(\/[a-z0-9_-]+\/\{\w+\})*\/[a-z0-9_-]+$/)
        .message('{{#label}} must look like /workspaces/\\{workspace_id}/campaigns')
        .required(),
    ...applicationSchemaRules,
    store: withAbilities(objectWith<Collection<ResourceRow>>('list', 'get'), 'select', 'count', 'listText').required(),
});

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<RestApiV2Options> = Joi.object<RestApiV2Options>({
    store: inventorySchema('workspaces', 'hosts').required(),
    license: objectWith<LicenseSource>('valid').required(),
    auth: authSchema.default('token'),
    timeZone: Joi.string().default('UTC'),
    resources: Joi.array().items(ownResourceSchema).default([]),
    rateLimit: requestLimitSchema,
    maxStreams: maxStreamsSchema,
    openapi: Joi.object({
        enabled: Joi.boolean().default(true),
        public: Joi.boolean().default(false),
        page: Joi.string()
            .pattern(/^(?:\/[\w.-]+)+$/)
            .message('{{#label}} must look like /api-docs'),
    }).default({ enabled: true, public: false }),
    instance: instanceSchema,
}).required();
