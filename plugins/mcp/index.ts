import { setImmediate as immediate } from 'node:timers/promises';
import { isBoom } from '@hapi/boom';
import type { NamedPlugin, Request, ResponseObject, ResponseToolkit, RouteOptions, Server } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError } from '../../lib/errors.ts';
import { type InventoryStore, inventorySchema } from '../../lib/inventory/store.ts';
import { DENIAL } from '../../lib/keys/api-keys.ts';
import type { LicenseSource } from '../../lib/license/license-source.ts';
import { optionalPackage, packageProblem } from '../../lib/optional-packages.ts';
import { jsonText, printable, printableJson } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/records/store.ts';
import { checked, objectWith } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import type { StoreFailure } from '../errors.ts';
import { inTime, noteArrival } from '../in-time.ts';
import { authSchema, claimInstance, type InstanceOptions, instanceSchema } from '../instance.ts';
import { logFailure } from '../log-and-events.ts';
import { MAX_STREAMS, maxStreamsSchema, type Streams, streamsOf } from '../open-streams.ts';
import { bearerKey, hasScope, licensed, needsScope, withStrategy, workspacesSeen } from '../route-authorization.ts';
import { READABLE_COOKIES, unsniffed } from '../route-parts.ts';
import { untilClosed } from '../streamed-answers.ts';
import { answerRoom } from './answer-room.ts';
import { callTool, type ReadDeliveries, type Sight, type Sources, toolsOf } from './tools.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { ScanwireEvent } from '../log-and-events.ts';

/** Options of the plugin. */
export interface McpOptions extends InstanceOptions, Sources {
    /** The scan data: `workspaces`, `hosts` and the collections of a whole workspace. */
    readonly store: InventoryStore;
    /** HTTPS scan records; without them there is no tool for them. */
    readonly records?: RecordStore | undefined;
    /** Deliveries of a webhook exporter; without them there is no tool for them. */
    readonly deliveries?: ReadDeliveries | undefined;
    /** Whether the licence is valid now; asked on every request. */
    readonly license: LicenseSource;
    /** Name of the strategy; false where somebody else has let the client in. Default `token`. */
    readonly auth?: string | false | undefined;
    /** Default `/mcp`. */
    readonly path?: string | undefined;
    /** Requests that read rows at once, the indexes and lists of other plugins counted. Default 32. */
    readonly maxStreams?: number | undefined;
}

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<McpOptions> = Joi.object<McpOptions>({
    store: inventorySchema('workspaces', 'hosts').required(),
    records: objectWith<RecordStore>('list'),
    deliveries: objectWith<ReadDeliveries>('list'),
    license: objectWith<LicenseSource>('valid').required(),
    auth: authSchema.default('token'),
    path: Joi.string()
        .pattern(/^(?:\/[\w.-]+)+$/)
        .message('{{#label}} must look like /mcp')
        .default('/mcp'),
    maxStreams: maxStreamsSchema,
    instance: instanceSchema,
}).required();

const PLUGIN = 'mcp';
const PACKAGE = '@modelcontextprotocol/sdk';
const USE = 'The plugin mcp';
const UNREADABLE: StoreFailure = { plugin: PLUGIN, message: 'The data cannot be read now; try again later' };
const UNKNOWN_STRATEGY = 'mcp options: auth must name a strategy of the server, registered before';
const MAX_BYTES = 65_536;
/** Calls that come in one request. The package limits them too, but not in each of the versions that a host may have. */
const MAX_CALLS = 100;
/** Of JSON-RPC. */
const [INVALID_REQUEST, INTERNAL_ERROR] = [-32_600, -32_603];
/** Milliseconds for which an answer waits for tools that are late, which say so themselves. */
const GRACE = 500;

/** Lets assistants read the data by the Model Context Protocol: streamable HTTP without sessions, tools that only read. */
export const plugin: NamedPlugin<McpOptions> = {
    name: PLUGIN,
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    async register(server, options) {
        const settings = checked(optionsSchema, options, { subject: 'mcp options', code: 'MISCONFIGURED' });
        claimInstance(server, PLUGIN, settings);
        // It brings 200 files: the first request loads them.
        const problem = packageProblem(PACKAGE, USE);
        if (problem !== null) {
            throw problem;
        }

        withStrategy(UNKNOWN_STRATEGY, 'mcp options: path', () => addRoute(server, settings));
    },
};

async function loadProtocol() {
    const [{ Server: McpServer }, { WebStandardStreamableHTTPServerTransport: Transport }, types] = await Promise.all([
        import('@modelcontextprotocol/sdk/server/index.js'),
        import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'),
        import('@modelcontextprotocol/sdk/types.js'),
    ]);
    return { McpServer, Transport, ...types };
}

type Protocol = Awaited<ReturnType<typeof loadProtocol>>;

function addRoute(server: Server, settings: McpOptions): void {
    const { auth = 'token', license, path = '/mcp', maxStreams = MAX_STREAMS } = settings;
    const source: Source = { ...settings, streams: streamsOf(settings.store, maxStreams) };
    const options: RouteOptions = {
        auth: auth === false ? false : { strategies: [auth], mode: 'required' },
        cache: { otherwise: 'no-store' },
        // With the cookies of somebody who is signed in no other site shall ask.
        cors: false,
        ext: {
            onPreAuth: [{ method: noteArrival }, { method: bearerKey(false) }],
            onCredentials: { method: needsScope('inventory:read', DENIAL) },
            onPostAuth: { method: licensed(license, UNREADABLE) },
            onPreResponse: unsniffed,
        },
        state: READABLE_COOKIES,
    };
    const payload = { maxBytes: MAX_BYTES, allow: 'application/json', protoAction: 'error' } as const;
    server.route([
        { method: 'POST', path, options: { ...options, payload }, handler: (request, h) => answer(request, h, source) },
        // There is no session to listen to or to end, as the transport says itself.
        { method: ['GET', 'DELETE'], path, options, handler: (_, h) => h.response().code(405).header('allow', 'POST') },
    ]);
}

/** What tools read, and who reads it. */
interface Source extends Sources {
    readonly streams: Streams;
}

/** Each request stands for itself: nothing of one is kept for the next, so that any process may answer it. */
async function answer(request: Request, h: ResponseToolkit, source: Source): Promise<ResponseObject> {
    if (Array.isArray(request.payload) && request.payload.length > MAX_CALLS) {
        return refused(h, 400, { code: INVALID_REQUEST, message: `Invalid Request: at most ${MAX_CALLS} messages in one` });
    }

    const protocol = await optionalPackage(PACKAGE, USE, loadProtocol);
    const { Transport } = protocol;
    const server = serverFor(request, source, protocol);
    const transport = new Transport({ enableJsonResponse: true });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    try {
        const asked = new Request('http://localhost/', {
            method: 'POST',
            headers: { 'content-type': 'application/json', accept: String(request.headers.accept ?? '') },
        });
        const said = await inTime(request, () => transport.handleRequest(asked, { parsedBody: request.payload }), GRACE);
        const text = await said.text();
        return h.response(printableJson(text)).code(said.status).type('application/json; charset=utf-8');
    } catch (error) {
        logFailure(request, PLUGIN, error);
        return refused(h, 503, { code: INTERNAL_ERROR, message: UNREADABLE.message });
    } finally {
        await server.close();
    }
}

/** The answer to a request of which nothing is answered by itself. */
function refused(h: ResponseToolkit, status: number, error: { readonly code: number; readonly message: string }): ResponseObject {
    return h.response({ jsonrpc: '2.0', error, id: null }).code(status);
}

function serverFor(request: Request, source: Source, protocol: Protocol): InstanceType<Protocol['McpServer']> {
    const { McpServer, ListToolsRequestSchema, CallToolRequestSchema, CancelledNotificationSchema } = protocol;
    const sight: Sight = { has: (scope) => hasScope(request, scope), workspaces: workspacesSeen(request) };
    const inTurn = turnsOf();
    const call = callsOf(request, source, sight);
    const server = new McpServer({ name: 'scanwire', version: VERSION }, { capabilities: { tools: {} } });
    // There is nothing to cancel but calls of the same batch, and the package would wait for ever for the answers to those.
    server.setNotificationHandler(CancelledNotificationSchema, () => {});
    server.setRequestHandler(ListToolsRequestSchema, () => inTurn(async () => ({ tools: [...toolsOf(source, sight)] as never })));
    server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: input } }) => inTurn(() => call(name, input)));
    return server;
}

/**
 * What one request asks for, one after the other: at once each call of a batch would hold its rows beside those of all others. Between two of them
 * other requests are served.
 */
function turnsOf() {
    let before: Promise<unknown> = Promise.resolve();
    return <Answer>(answer: () => Promise<Answer>): Promise<Answer> => {
        const answering = before.then(() => immediate()).then(answer);
        before = answering.catch(() => {});
        return answering;
    };
}

/** What the calls of one request answer. */
function callsOf(request: Request, { streams, ...sources }: Source, sight: Sight) {
    // One of each for all calls: each would listen for the end of the same answer, and its room is shared.
    const [signal, room] = [untilClosed(request), answerRoom()];
    let hasPlace = false;
    return async (name: string, input: unknown) => {
        try {
            signal.throwIfAborted();
            if (!hasPlace) {
                streams.begin(request);
                hasPlace = true;
            }
            const found = await inTime(request, () => callTool(sources, name, input, sight, { signal, room }));
            const page = JSON.parse(JSON.stringify(found));
            return { content: [{ type: 'text' as const, text: jsonText(page) }], structuredContent: page };
        } catch (error) {
            return { content: [{ type: 'text' as const, text: reasonOf(request, error) }], isError: true };
        }
    };
}

/** What went wrong, for who can do something about it. */
function reasonOf(request: Request, error: unknown): string {
    if (error instanceof ScanwireError && (error.code === 'INVALID_INPUT' || error.code === 'NOT_FOUND')) {
        // It may name what the client made up.
        return printable(error.message);
    }
    // As of a place that is not free; not what an application's store may throw.
    if (isBoom(error, 503) && error.output.headers['retry-after'] !== undefined) {
        return error.message;
    }

    logFailure(request, PLUGIN, error);
    return UNREADABLE.message;
}
