/** The operations of the administration, beside the API or alone, and what every document begins with, in OpenAPI 3.1. */
import type { RequestRoute, Server } from '@hapi/hapi';
import type { JsonSchema } from '../../lib/records/record-schema.ts';
import { isObject } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { jsonSchemaOf, withExample } from '../json-schema.ts';

type Json = Record<string, unknown>;

/** Their tag. */
export const ADMINISTRATION: { readonly name: string; readonly description: string } = {
    name: 'administration',
    description: 'Keys, exporters, events and deliveries, behind the authentication of the application',
};

/** What every document begins with. */
export function documentHead(title: string, description: string): Json {
    return {
        openapi: '3.1.0',
        info: { title, version: VERSION, description, license: { name: 'MIT', identifier: 'MIT' } },
        servers: [{ url: '/' }],
    };
}

/** The document of a server that has the administration alone, without authentication: whoever reaches it may do all of it. */
export function administrationDocument(server: Server): Json {
    return {
        ...documentHead('scanwire administration', ADMINISTRATION_DESCRIPTION),
        tags: [{ name: ADMINISTRATION.name, description: 'Keys, exporters, events and deliveries' }],
        paths: adminPaths(adminRoutes(server)),
        security: [{}],
    };
}

const ADMINISTRATION_DESCRIPTION = 'The administration of a data folder, at a socket that only the owner of the folder can open.';

/** The routes of the administration that a document tells of. */
export function adminRoutes(server: Server): readonly RequestRoute[] {
    return server.table().filter(({ settings: { tags, response } }) => tags?.includes('admin-console') && response?.schema);
}

/** The paths of the routes, each with its operations. */
export function adminPaths(routes: readonly RequestRoute[]): Json {
    const paths: Record<string, Json> = {};
    const byShape = new Map<string, string>();
    for (const { method, path, settings } of routes) {
        const shape = path.replaceAll(PLACE, '{}');
        const known = byShape.get(shape) ?? path;
        byShape.set(shape, known);
        paths[known] = { ...paths[known], [method]: renamed(adminOperation(path, settings), path, known) };
    }
    return paths;
}

/** An id, or a name, in a path. */
export const PLACE: RegExp = /\{(\w+)\}/g;

/** A document has a path once, whatever each operation calls its parts. */
function renamed(operation: Json, path: string, known: string): Json {
    const [from, to] = [path, known].map((each) => [...each.matchAll(PLACE)].map(([, name]) => name));
    const parameters = (operation.parameters as readonly { readonly name: string; readonly in: string }[]).map((parameter) => {
        const at = parameter.in === 'path' ? (from ?? []).indexOf(parameter.name) : -1;
        return at === -1 ? parameter : { ...parameter, name: to?.[at] };
    });
    return { ...operation, parameters };
}

/** The strategy of a route, as a scheme. */
export function adminSecurity({ settings }: RequestRoute): Json {
    const strategy = strategyOf(settings);
    return strategy === null
        ? {}
        : { [strategy]: { type: 'http', scheme: strategy, description: 'The authentication of the application' } };
}

function strategyOf({ auth }: RequestRoute['settings']): string | null {
    const { strategies } = (isObject(auth) ? auth : {}) as { readonly strategies?: readonly string[] };
    return strategies?.[0] ?? null;
}

function adminOperation(path: string, settings: RequestRoute['settings']): Json {
    const { params, query: queried, payload } = (settings.validate ?? {}) as Readonly<Record<string, unknown>>;
    const { schema, status = {} } = (settings.response ?? {}) as { readonly schema?: unknown; readonly status?: Json };
    const strategy = strategyOf(settings);
    const body =
        settings.payload?.parse === false
            ? { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
            : isObject(payload) && { 'application/json': { schema: withExample(jsonSchemaOf({ schema: payload as never }, 'input')) } };
    return {
        operationId: settings.id,
        summary: settings.description,
        tags: [ADMINISTRATION.name],
        security: [strategy === null ? {} : { [strategy]: [] }],
        parameters: [...parametersOf(params, 'path', path), ...parametersOf(queried, 'query', path)],
        ...(body !== false && hasFields(body) && { requestBody: { content: body } }),
        responses: Object.fromEntries(Object.entries({ 200: schema, ...status }).map(([code, each]) => [code, answered(code, each)])),
    };
}

/** A text is a file of one type or another; else it is JSON. */
function answered(code: string, schema: unknown): Json {
    const description = code === '200' ? 'Done' : 'Refused';
    const form = jsonSchemaOf({ schema: schema as never });
    const content = form.type === 'string' ? { '*/*': { schema: form } } : { 'application/json': { schema: withExample(form) } };
    return { description, content };
}

/** A body without any field is none. */
function hasFields(body: Readonly<Record<string, { readonly schema: JsonSchema }>>): boolean {
    const { schema } = Object.values(body)[0] ?? {};
    return schema?.type !== 'object' || Object.keys(schema.properties ?? {}).length > 0;
}

function parametersOf(schema: unknown, location: 'path' | 'query', path: string): Json[] {
    const { properties = {}, required = [] } = isObject(schema) ? jsonSchemaOf({ schema: schema as never }, 'input') : {};
    return Object.entries(properties as Record<string, JsonSchema>)
        .filter(([name]) => location === 'query' || path.includes(`{${name}}`))
        .map(([name, { description, ...each }]) => ({
            name,
            in: location,
            ...(description !== undefined && { description }),
            required: location === 'path' || (required as string[]).includes(name),
            schema: each,
        }));
}
