/** What a server offers, in OpenAPI 3.1: this API, the administration beside it where there is one, and the events that go out. */
import type { Server } from '@hapi/hapi';
import type { ApplicationSchema } from '../../lib/application-schema.ts';
import type { FilterName } from '../../lib/inventory/selection.ts';
import type { JsonSchema } from '../../lib/records/record-schema.ts';
import type { EventKinds } from '../../lib/webhooks/events/event-kinds.ts';
import { jsonSchemaOf, withExample } from '../json-schema.ts';
import { DELETED_SINCE } from './deleted-rows.ts';
import type { Resource } from './handlers.ts';
import { ADMINISTRATION, adminPaths, adminRoutes, adminSecurity, documentHead, PLACE } from './openapi-administration.ts';

/** What a document is made of. */
export interface Described {
    readonly server: Server;
    readonly resources: readonly Resource[];
    /** Path of the API, with the prefix that it is registered with. */
    readonly base: string;
    /** The strategy of the routes; false where they have none. */
    readonly auth: string | false;
    /** Whether clients have a limit of requests. */
    readonly isLimited: boolean;
}

type Json = Record<string, unknown>;

/** The document of the server as it is now. */
export function openApiDocument({ server, resources, base, auth, isLimited }: Described): Json {
    const names = schemaNames(resources);
    const every = everyAnswer(isLimited);
    const admin = adminRoutes(server);
    const kinds = (server.plugins as { 'webhook-exporter'?: { kinds?(): EventKinds } })['webhook-exporter']?.kinds?.();
    const tags = [TAGS.inventory, ...(admin.length > 0 ? [TAGS.administration] : []), ...(kinds === undefined ? [] : [TAGS.events])];
    return {
        ...documentHead('scanwire', DESCRIPTION),
        tags,
        paths: {
            [`${base}/base`]: { get: probe(every) },
            ...Object.fromEntries(
                resources.flatMap((resource) => resourcePaths(resource, { name: names.get(resource) ?? '', base, every })),
            ),
            ...adminPaths(admin),
        },
        ...(kinds !== undefined && { webhooks: Object.fromEntries([...kinds].map(([name, kind]) => [name, webhook(name, kind)])) }),
        components: {
            securitySchemes: { ...securityOf(auth), ...Object.assign({}, ...admin.map(adminSecurity)) },
            schemas: { Error: ERROR, ...Object.fromEntries(resources.map((resource) => [names.get(resource), rowSchema(resource)])) },
            responses: { ...RESPONSES, ...(isLimited && TOO_MANY) },
            ...(isLimited && { headers: LIMITS }),
        },
        security: auth === false ? [{}] : [{ key: [] }],
    };
}

const DESCRIPTION =
    'The inventory of a server, read-only. Every path needs a key with the scope `inventory:read`, sent in the header `token`. HEAD works where GET does.';

const TAGS = {
    inventory: { name: 'inventory', description: 'Workspaces, hosts and what is below them' },
    administration: ADMINISTRATION,
    events: { name: 'events', description: 'What is sent, signed, to the receivers that are configured' },
};

function securityOf(auth: string | false): Json {
    return auth === false ? {} : { key: { type: 'apiKey', in: 'header', name: 'token', description: 'A key that may read the inventory' } };
}

const ERROR: JsonSchema = {
    type: 'object',
    properties: {
        statusCode: { type: 'integer', examples: [404] },
        error: { type: 'string', examples: ['Not Found'] },
        message: { type: 'string', examples: ['Not Found'] },
    },
    required: ['statusCode', 'error', 'message'],
};

function refusal(description: string): Json {
    return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } };
}

const RESPONSES: Json = {
    BadRequest: refusal('A parameter that is not of its form, or that the store cannot do'),
    Forbidden: refusal('No valid key, or no valid licence'),
    NotFound: refusal('No such row below these parents'),
    Gone: refusal('With `deleted_since`: so long ago that not all deletions are known any more'),
    TooLong: refusal('Path, query and headers are too long together; where connections are not protected a 400 without a body'),
    Unavailable: refusal('The data cannot be read now'),
};

const LIMITS: Json = {
    RateLimit: {
        description: 'How many requests are left, and for how many seconds',
        schema: { type: 'string', examples: ['"requests";r=599;t=42'] },
    },
    'RateLimit-Policy': {
        description: 'How many requests there are in a window, and its seconds',
        schema: { type: 'string', examples: ['"requests";q=600;w=60'] },
    },
};

const LIMIT_HEADERS: Json = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const TOO_MANY: Json = {
    TooManyRequests: {
        ...refusal('More requests than a client has in a window'),
        headers: { ...LIMIT_HEADERS, 'Retry-After': { description: 'For how many seconds', schema: { type: 'integer' } } },
    },
};

/** What every path may answer, and the headers of what is found. */
interface EveryAnswer {
    readonly headers: Json;
    readonly refusals: Json;
}

const of = (name: string): Json => ({ $ref: `#/components/responses/${name}` });

function everyAnswer(isLimited: boolean): EveryAnswer {
    return {
        headers: isLimited ? LIMIT_HEADERS : {},
        refusals: { 403: of('Forbidden'), ...(isLimited && { 429: of('TooManyRequests') }), 431: of('TooLong'), 503: of('Unavailable') },
    };
}

function probe({ headers, refusals }: EveryAnswer): Json {
    return {
        operationId: 'base',
        summary: 'Says that the API is reachable and the key valid',
        tags: [TAGS.inventory.name],
        responses: {
            200: { description: 'A small page', headers, content: { 'text/html': { schema: { type: 'string' } } } },
            ...refusals,
        },
    };
}

/** `Host`; with what it is below where another resource of the name has other fields. */
function schemaNames(resources: readonly Resource[]): ReadonlyMap<Resource, string> {
    const taken = new Map<string, string>();
    const named = new Map<Resource, string>();
    for (const resource of resources) {
        const words = staticParts(resource.path).map((part) => pascal(part.replace(/s$/, '')));
        const text = JSON.stringify(rowSchema(resource));
        const fitting = words.map((_, index) => words.slice(words.length - 1 - index).join(''));
        const name = fitting.find((each) => (taken.get(each) ?? text) === text) ?? fitting.at(-1) ?? '';
        taken.set(name, text);
        named.set(resource, name);
    }
    return named;
}

function staticParts(path: string): string[] {
    return path.split('/').filter((part) => part !== '' && !part.startsWith('{'));
}

function pascal(text: string): string {
    return text
        .split(/[-_.]/)
        .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
        .join('');
}

/** A row as it goes out: every field always there. */
function rowSchema(resource: Resource): JsonSchema {
    const { properties = {}, ...rest } = jsonSchemaOf(resource.schema);
    const names = [...resource.forms().fields.keys()];
    const fields = Object.fromEntries(names.map((name) => [name, (properties as Record<string, JsonSchema>)[name] ?? {}]));
    const extras = Object.fromEntries([...resource.forms().extras.keys()].map((name) => [name, EXTRA_SCHEMA]));
    const row: JsonSchema = { ...rest, type: 'object', properties: { ...fields, ...extras }, required: names, additionalProperties: false };
    return withExample(row);
}

/** A row of an index: with `fields` those alone, with `deleted_since` its id and the time. */
function listedSchema(resource: Resource): JsonSchema {
    const { properties, required: _, examples: __, ...row } = rowSchema(resource);
    const deleted = resource.rows.deletions === undefined ? {} : { deleted_at: { type: 'string', format: 'date-time' } };
    return { ...row, properties: { ...(properties as object), ...deleted } };
}

/** Of the fields that go out on request only: times, so far. */
const EXTRA_SCHEMA: JsonSchema = { type: ['string', 'null'], format: 'date-time' };

/** Where a resource stands in the document. */
interface Place {
    /** Of the schema of its rows. */
    readonly name: string;
    readonly base: string;
    readonly every: EveryAnswer;
}

function resourcePaths(resource: Resource, { name, base, every }: Place): [string, Json][] {
    const [{ path, idName, rows }, forms] = [resource, resource.forms()];
    const words = staticParts(path).map(pascal).join('');
    const what = staticParts(path).join(' of ');
    const row = { $ref: `#/components/schemas/${name}` };
    const ids = pathParameters(path);
    const common = { tags: [TAGS.inventory.name] };
    const filters = rows.select ? (rows.filters ?? []) : [];
    const read = rows.select ? PAGING : [];
    const index = {
        ...common,
        operationId: `list${words}`,
        summary: `All ${staticParts(path).at(-1)}, in ascending id`,
        description: `What is below its parents: ${what.split(' of ').reverse().join(' of ')}. Without parameters all of it, streamed.`,
        parameters: [
            ...ids,
            ...read,
            fieldsParameter([...forms.fields.keys(), ...forms.extras.keys()]),
            ...filters.map((filter) => filterParameter(filter, resource)),
            ...(rows.deletions === undefined ? [] : [query('deleted_since', DELETED_SINCE, { type: 'string', format: 'date-time' })]),
            ...(rows.count ? [PREFER] : []),
        ],
        responses: {
            200: indexAnswer(listedSchema(resource), every),
            400: of('BadRequest'),
            404: of('NotFound'),
            ...(rows.deletions !== undefined && { 410: of('Gone') }),
            ...every.refusals,
        },
    };
    const show = {
        ...common,
        operationId: `show${words}`,
        summary: `One of ${staticParts(path).at(-1)}`,
        parameters: [...ids, idParameter(idName)],
        responses: {
            200: { description: 'The row', headers: every.headers, content: { 'application/json': { schema: row } } },
            404: of('NotFound'),
            ...every.refusals,
        },
    };
    return [
        [`${base}${path}`, { get: index }],
        [`${base}${path}/{${idName}}`, { get: show }],
    ];
}

function indexAnswer(row: JsonSchema, { headers }: EveryAnswer): Json {
    const text = { schema: { type: 'string' } };
    return {
        description: 'The rows',
        headers: {
            Link: { description: 'Where `limit` leaves rows behind: the next page, `rel="next"`', schema: { type: 'string' } },
            'X-Total-Count': { description: 'With `Prefer: count=exact`: how many rows fulfil the filters', schema: { type: 'integer' } },
            ...headers,
        },
        content: {
            'application/json': { schema: { type: 'array', items: row } },
            'application/x-ndjson': text,
            'text/csv': text,
        },
    };
}

function pathParameters(path: string): Json[] {
    return [...path.matchAll(PLACE)].map(([, name = '']) => idParameter(name));
}

function idParameter(name: string): Json {
    return { name, in: 'path', required: true, schema: { type: 'integer', minimum: 1, maximum: 2_147_483_647 }, example: 1 };
}

function query(name: string, description: string, schema: JsonSchema): Json {
    return { name, in: 'query', description, schema };
}

const PAGING: readonly Json[] = [
    query('limit', 'At most so many rows', { type: 'integer', minimum: 1, maximum: 1000 }),
    query('after', 'The rows behind the one with this id; with `updated_since` and `deleted_since`, as the link to the next page has it', {
        type: 'string',
        examples: ['312'],
    }),
];

const PREFER: Json = {
    name: 'Prefer',
    in: 'header',
    description: 'Asks for the total',
    schema: { type: 'string', examples: ['count=exact'] },
};

function fieldsParameter(names: Iterable<string>): Json {
    return {
        ...query('fields', 'Only these fields', { type: 'array', items: { type: 'string', enum: [...names] } }),
        style: 'form',
        explode: false,
    };
}

const FILTER_TEXTS: Readonly<Partial<Record<FilterName, readonly [description: string, schema: JsonSchema]>>> = {
    address: [
        'An address, a block or a range; of the host where the rows are below hosts',
        { type: 'string', examples: ['192.0.2.7', '192.0.2.0/24', '192.0.2.1-192.0.2.9', '2001:db8::/32'] },
    ],
    search: [
        'Any part of name, address, os_name, info or comments, in upper or lower case',
        { type: 'string', minLength: 1, maxLength: 255 },
    ],
    last_seen_since: ['Seen by an import at this time or later', { type: 'string', format: 'date-time' }],
    updated_since: ['Changed at this time or later, in the order of the change', { type: 'string', format: 'date-time' }],
};

function filterParameter(name: FilterName, { schema }: Resource): Json {
    const field = (jsonSchemaOf(schema).properties as Record<string, JsonSchema> | undefined)?.[name];
    const [description, form] = FILTER_TEXTS[name] ?? [
        'Exactly this value',
        field?.enum ? { type: 'string', enum: field.enum } : { type: 'string' },
    ];
    return query(name, description, form);
}

function webhook(name: string, kind: ApplicationSchema): Json {
    const schema = jsonSchemaOf(kind);
    return {
        post: {
            operationId: `event.${name}`,
            summary: `An event of the kind ${name}, signed`,
            tags: [TAGS.events.name],
            security: [{}],
            requestBody: { required: true, content: { 'application/json': { schema: withExample(schema) } } },
            responses: {
                '2XX': { description: 'It is delivered' },
                '4XX': { description: 'It is tried again, and reported as a mistake in the configuration' },
            },
        },
    };
}
