import { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Lifecycle, NamedPlugin, Request, ResponseToolkit, RouteOptions, RouteOptionsPayload, ServerRoute } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError } from '../../lib/errors.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import { rowsOf } from '../../lib/inventory/host-pages.ts';
import { inventorySchema } from '../../lib/inventory/store.ts';
import { DENIAL } from '../../lib/keys/api-keys.ts';
import type { LicenseSource } from '../../lib/license/license-source.ts';
import { checked, objectWith } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { type StoreFailure, toBoom, unavailable } from '../errors.ts';
import { begunInTime, inTime, noteArrival } from '../in-time.ts';
import { authSchema, claimInstance, type InstanceOptions, instanceSchema } from '../instance.ts';
import { leadPathsBelow } from '../leading-paths.ts';
import { MAX_STREAMS, maxStreamsSchema, type Streams, streamsOf } from '../open-streams.ts';
import { bearerKey, hasScope, licensed, needsScope, withStrategy, workspacesSeen } from '../route-authorization.ts';
import { pathId, READABLE_COOKIES, UNREAD_BODY, unsniffed } from '../route-parts.ts';
import { streamCut, untilClosed, withFirst } from '../streamed-answers.ts';
import { askedAddresses } from './asked-addresses.ts';
import { called } from './json-rpc.ts';
import { MORE, type MoreLists, type MoreSource, moreRowOf, moreRows, moreSchema, OF_A_GOOD_KEY } from './more-lists.ts';
import type { Asked, ListName, Reader, WholeInventory } from './rows.ts';
import { rpcBody } from './rpc-body.ts';
import { rowOf, shownRows } from './shown-rows.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { ScanwireEvent } from '../log-and-events.ts';
export type { MoreAsked, MoreLists, MoreRows } from './more-lists.ts';
export type { WholeInventory } from './rows.ts';

/** Options of the plugin. */
export interface MetasploitDataOptions extends InstanceOptions {
    /** The scan data: a store with the collections of a whole workspace. */
    readonly store: WholeInventory;
    /** Whether the licence is valid now; asked on every request. */
    readonly license: LicenseSource;
    /** Name of the strategy of `token-auth`, or of one of the application; false where somebody else has let the client in. Default `token`. */
    readonly auth?: string | false | undefined;
    /** Whether a key may be in the query, as `?token=`, where logs show it. Default false. */
    readonly queryToken?: boolean | undefined;
    /** Where `loots`, `credentials` and `logins` come from, which no store of ours has. Each is empty by default. */
    readonly more?: MoreLists | undefined;
    /** Lists of the store that are sent at once, those of other plugins counted. Default 32. */
    readonly maxStreams?: number | undefined;
}

const COLLECTIONS = ['workspaces', 'hosts', 'workspaceServices', 'workspaceNotes', 'workspaceSessions', 'workspaceVulns'] as const;

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<MetasploitDataOptions> = Joi.object<MetasploitDataOptions>({
    store: inventorySchema(...COLLECTIONS).required() as Joi.ObjectSchema<WholeInventory>,
    license: objectWith<LicenseSource>('valid').required(),
    auth: authSchema.default('token'),
    queryToken: Joi.boolean().default(false),
    more: moreSchema,
    maxStreams: maxStreamsSchema,
    instance: instanceSchema,
}).required();

const PLUGIN = 'metasploit-data';
const UNREADABLE: StoreFailure = { plugin: PLUGIN, message: 'The data cannot be read now; try again later' };
const UNKNOWN_STRATEGY = 'metasploit-data options: auth must name a strategy of the server, registered before';
const BASE = '/api/v1';
const LISTS: readonly ListName[] = ['workspaces', 'hosts', 'services', 'vulns', 'notes', 'sessions'];

/** Serves the inventory as the Metasploit Framework's remote data service does, read-only, below `/api/v1`. */
export const plugin: NamedPlugin<MetasploitDataOptions> = {
    name: PLUGIN,
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    register(server, options) {
        const settings = checked(optionsSchema, options, { subject: 'metasploit-data options', code: 'MISCONFIGURED' });
        claimInstance(server, PLUGIN, settings);
        withStrategy(UNKNOWN_STRATEGY, 'metasploit-data registration: routes.prefix', () => server.route(routesOf(settings)));
        leadPathsBelow(server, `${server.realm.modifiers.route.prefix ?? ''}${BASE}`);
    },
};

function routesOf(settings: MetasploitDataOptions): ServerRoute[] {
    const { store, more = {}, maxStreams } = settings;
    const streams = streamsOf(store, maxStreams ?? MAX_STREAMS);
    const source: Source = { store, more, streams };
    const options = optionsOfEveryRoute(settings);
    const get = (path: string, handler: Lifecycle.Method): ServerRoute => ({ method: 'GET', path: `${BASE}${path}`, handler, options });
    const data = (value: unknown): Lifecycle.Method => {
        return (_, h) => h.response(JSON.stringify({ data: value })).type(JSON_TYPE);
    };
    return [
        get('/msf/version', data({ metasploit_version: `scanwire ${VERSION}` })),
        get('/health', data({ status: 'UP' })),
        ...LISTS.flatMap((name) => [
            get(
                `/${name}`,
                index(source, (...asked) => shownRows(store, name, ...asked)),
            ),
            get(
                `/${name}/{id}`,
                show((...asked) => rowOf(store, name, ...asked)),
            ),
        ]),
        ...MORE.flatMap((name) => [
            get(`/${name}`, more[name] === undefined ? data([]) : index(source, (...asked) => moreRows(source, name, ...asked))),
            get(`/${name}/{id}`, more[name] === undefined ? data([]) : show((...asked) => moreRowOf(source, name, ...asked), streams)),
        ]),
        // The console tells of each of its commands, and complains of each answer that is not 200.
        { method: 'POST', path: `${BASE}/events`, handler: data(''), options: { ...options, payload: UNREAD_BODY } },
        { method: 'POST', path: `${BASE}/json-rpc`, handler: rpc(source), options: { ...options, payload: RPC_BODY } },
        { method: 'GET', path: `${BASE}/{path*}`, handler: unknown, options },
        {
            method: ['POST', 'PUT', 'PATCH', 'DELETE'],
            path: `${BASE}/{path*}`,
            handler: readOnly,
            options: { ...options, payload: UNREAD_BODY },
        },
    ];
}

const JSON_TYPE = 'application/json';

/** As a text, whatever the client calls it: of JSON that hapi has read the id of the call is no longer what it was. */
const RPC_BODY: RouteOptionsPayload = { maxBytes: 65_536, override: 'text/plain' };

/** What lists are read from, and how many are being sent. */
interface Source extends MoreSource {
    readonly streams: Streams;
}

function optionsOfEveryRoute({ auth = 'token', license, queryToken = false }: MetasploitDataOptions): RouteOptions {
    return {
        auth: auth === false ? false : { strategies: [auth], mode: 'required' },
        cache: { otherwise: 'no-store' },
        ext: {
            onPreAuth: [{ method: noteArrival }, { method: bearerKey(queryToken) }],
            onCredentials: { method: needsScope('inventory:read', DENIAL) },
            onPostAuth: { method: licensed(license, UNREADABLE) },
            onPreResponse: [{ method: asTheFramework }, unsniffed],
        },
        response: { ranges: false },
        state: READABLE_COOKIES,
    };
}

/** The same for clients who know of no header named token. */
const BEARER_DENIAL = 'Access needs a valid licence on the server and a valid API key in the header Authorization: Bearer';

/** Refusals in the form that clients read: a missing or wrong key is 401, where others say 403. */
const asTheFramework: Lifecycle.Method = (request, h) => {
    const { response } = request;
    if (!('isBoom' in response)) {
        return h.continue;
    }

    const { statusCode, payload, headers } = response.output;
    const code = statusCode === 403 && response.data !== OF_A_GOOD_KEY ? 401 : statusCode;
    const error = { code, message: payload.message === DENIAL ? BEARER_DENIAL : payload.message };
    return Object.entries<unknown>({ ...headers, ...(code === 401 && { 'www-authenticate': 'Bearer' }) }).reduce(
        (answer, [name, value]) => answer.header(name, String(value)),
        h.response({ error }).code(code).type(JSON_TYPE),
    );
};

const unknown: Lifecycle.Method = () => {
    throw Boom.notFound('There is nothing at this path of the data service');
};

const readOnly: Lifecycle.Method = () => {
    throw Boom.methodNotAllowed('This data service is read-only: it stores, changes and removes nothing', null, ['GET', 'HEAD']);
};

function readerOf(request: Request): Reader {
    return { seen: workspacesSeen(request), readsSecrets: hasScope(request, 'secrets:read'), signal: untilClosed(request) };
}

/** What a query asks for. @throws Boom 400 for an id, which belongs into the path, and for what is not of its form. */
function askedOf({ url }: Request): Asked {
    const { searchParams: query } = url;
    if (query.has('id')) {
        throw Boom.badRequest('id is no parameter of the query: it belongs into the path');
    }

    const value = (name: string): string | undefined => query.get(name) || undefined;
    const addresses = value('address');
    return {
        workspace: value('workspace'),
        name: value('name'),
        search: value('search_term'),
        nonDead: askedFlag('non_dead', value('non_dead')),
        ...(addresses !== undefined && { addresses: askedAddresses(addresses.split(',')) }),
    };
}

/** Clients write it as their language does. @throws Boom 400. */
function askedFlag(name: string, text = 'false'): boolean {
    const flag = text.toLowerCase();
    if (flag !== 'true' && flag !== 'false') {
        throw Boom.badRequest(`${name} must be true or false`);
    }

    return flag === 'true';
}

/** The rows that are asked for, in batches. */
type Reading<A = Asked> = (asked: A, reader: Reader) => AsyncIterable<readonly object[]>;

function index({ streams }: Source, rows: Reading): Lifecycle.Method {
    return (request, h) => {
        // For HEAD too: rows are read before it is known that there is an answer.
        streams.begin(request);
        return streamed(request, h, rows(askedOf(request), readerOf(request)), ['{"data":[', ']}']);
    };
}

/** One row; an empty list for none, as clients expect it. It takes a place among the streams where lists are read to find it. */
function show(row: Reading<Asked & { readonly id: number }>, streams?: Streams): Lifecycle.Method {
    return async (request, h) => {
        const id = pathId(String(request.params.id), MAX_ID);
        let found: object | undefined;
        try {
            if (id !== null) {
                streams?.begin(request);
                const rows = row({ ...askedOf(request), id }, readerOf(request));
                found = await inTime(request, async () => (await rowsOf(rows))[0]);
            }
        } catch (error) {
            throw failed(request, error);
        }
        return h.response(JSON.stringify({ data: found ?? [] })).type(JSON_TYPE);
    };
}

/** Refusals whose status is the code of an error of JSON-RPC too; of others that of wrong parameters is. */
const STATUS_CODES: ReadonlySet<number> = new Set([403, 404]);

function rpc(source: Source): Lifecycle.Method {
    return async (request, h) => {
        const body = rpcBody(request.payload as string);
        if (body === null) {
            return rpcError(h, 'null', -32_700, 'Invalid request: the body is no JSON');
        }

        const { id } = body;
        try {
            const call = called(source, body.value, readerOf(request));
            if ('code' in call) {
                return rpcError(h, id, call.code, call.message);
            }

            const { name, rows, reads } = call;
            if (reads) {
                source.streams.begin(request);
            }
            return await streamed(request, h, rows, [`{"jsonrpc":"2.0","result":{"${name}":[`, `]},"id":${id}}`]);
        } catch (error) {
            const known = failed(request, error);
            if (known.isServer) {
                throw known;
            }
            return rpcError(h, id, STATUS_CODES.has(known.output.statusCode) ? known.output.statusCode : -32_602, known.message);
        }
    };
}

/** @param id As it stands in JSON. */
function rpcError(h: ResponseToolkit, id: string, code: number, message: string) {
    return h.response(`{"jsonrpc":"2.0","error":${JSON.stringify({ code, message })},"id":${id}}`).type(JSON_TYPE);
}

/** The rows between two texts. The first batch is taken before the answer begins, so that what fails at once, or is late, is a proper error. */
async function streamed(
    request: Request,
    h: ResponseToolkit,
    rows: AsyncIterable<readonly object[]>,
    [before, after]: readonly [before: string, after: string],
) {
    try {
        const { all } = await begunInTime(request, () => withFirst(pieces(rows, before, after), { cut: streamCut(request, PLUGIN) }));
        return h.response(Readable.from(all, { objectMode: false })).type(JSON_TYPE);
    } catch (error) {
        throw failed(request, error);
    }
}

/** Begins with the first batch, even with one of which nothing goes out: the store answers, however late it comes to what is looked for. */
async function* pieces(rows: AsyncIterable<readonly object[]>, before: string, after: string): AsyncGenerator<string, void, undefined> {
    let [begin, comma] = [before, ''];
    for await (const batch of rows) {
        const text = JSON.stringify(batch).slice(1, -1);
        const piece = begin + (text && comma + text);
        begin = '';
        comma = text === '' ? comma : ',';
        if (piece !== '') {
            yield piece;
        }
    }
    yield begin + after;
}

/** What a client did wrong it is told; anything else is a store that cannot be read. */
function failed(request: Request, error: unknown): Boom.Boom {
    if (Boom.isBoom(error)) {
        return error;
    }

    const known = error instanceof ScanwireError ? toBoom(error) : null;
    return known?.isServer === false ? known : unavailable(request, UNREADABLE, error);
}
