import type { NamedPlugin, ServerRoute } from '@hapi/hapi';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import { type CheckedRecord, checkRecord, recordJsonSchema } from '../../lib/records/index.ts';
import { checked } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import type { StoreFailure } from '../errors.ts';
import { claimInstance, exposeInstance, type Instances } from '../instance.ts';
import { licensed, needsAllWorkspaces, needsScope, withStrategy } from '../route-authorization.ts';
import { READABLE_COOKIES, unsniffed } from '../route-parts.ts';
import { checkRoute, importRoute } from './batch-routes.ts';
import { type Access, type HttpsRecordSchemaOptions, optionsSchema, type Settings } from './options.ts';
import { recordRoutes } from './record-routes.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { CheckedRecord, HttpsRecord, RecordProblem } from '../../lib/records/index.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { ScanwireEvent } from '../log-and-events.ts';
export type { BadLine, BatchReport } from './batch-response.ts';
export type { HttpsRecordSchemaOptions } from './options.ts';

const UNREADABLE: StoreFailure = { plugin: 'https-record-schema', message: 'The licence cannot be read now; try again later' };
const UNKNOWN_STRATEGY =
    'https-record-schema options: auth must name a strategy of the server, registered before: where records are kept it is token by default';

/** Serves the JSON Schema of HTTPS scan records, checks records against it, and stores and shows them. */
export const plugin: NamedPlugin<HttpsRecordSchemaOptions> = {
    name: 'https-record-schema',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    register(server, options) {
        const settings = checked(optionsSchema, options ?? {}, { subject: 'https-record-schema options', code: 'MISCONFIGURED' });
        claimInstance(server, 'https-record-schema', settings);
        const access: Access = {
            state: READABLE_COOKIES,
            ext: {
                onPreResponse: unsniffed,
                ...(settings.license && { onPostAuth: { method: licensed(settings.license, UNREADABLE) } }),
            },
            // A server's default may let clients pass who have nothing to show; a strategy that is named is for those who have.
            ...(settings.auth !== undefined && {
                auth: settings.auth === false ? false : { strategies: [settings.auth], mode: 'required' },
                // What takes a key to see is not for caches.
                cache: { otherwise: 'no-store' },
            }),
        };

        exposeInstance(server, 'https-record-schema', settings, { validate: checkRecord });
        withStrategy(UNKNOWN_STRATEGY, 'https-record-schema options: path', () => server.route(routesOf(settings, access)));
    },
};

function routesOf(settings: Settings, access: Access): ServerRoute[] {
    const { records } = settings;
    const reading = needing('records:read', access);
    const writing = needing('records:write', access);
    return [
        schemaRoute(settings, access),
        checkRoute(settings, writing),
        ...(records === undefined
            ? []
            : [importRoute(settings, records, inAll(writing)), ...recordRoutes(settings, records, inAll(reading))]),
    ];
}

/** Lets in whoever comes with a key only when that has the scope. What a check costs is what an import costs, so it takes the same. */
function needing(scope: ApiKeyScope, access: Access): Access {
    return { ...access, ext: { ...access.ext, onCredentials: { method: needsScope(scope, `The API key needs the scope ${scope}`) } } };
}

/** Records are in no workspace, and enrich one that the path does not name. */
function inAll(access: Access): Access {
    return { ...access, ext: { ...access.ext, onCredentials: [access.ext?.onCredentials ?? [], { method: needsAllWorkspaces }].flat() } };
}

const SCHEMA_TEXT = JSON.stringify(recordJsonSchema);

function schemaRoute({ path }: Settings, access: Access): ServerRoute {
    return {
        method: 'GET',
        path,
        options: { ...access, description: 'JSON Schema of an HTTPS scan record' },
        handler: (_request, h) => h.response(SCHEMA_TEXT).type('application/schema+json'),
    };
}

/** What `server.plugins['https-record-schema']` offers. */
export interface HttpsRecordSchema {
    /** One record, or anything else, against the strict profile; all that is wrong with it. */
    validate(record: unknown): CheckedRecord;
}

declare module '@hapi/hapi' {
    interface PluginProperties {
        'https-record-schema': HttpsRecordSchema & Instances<HttpsRecordSchema>;
    }
}
