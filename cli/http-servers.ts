import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { server as hapiServer, type RouteOptionsSecureObject, type Server } from '@hapi/hapi';
import type { InventoryStore } from '../lib/inventory/store.ts';
import { isUsable } from '../lib/optional-packages.ts';
import { protect } from '../lib/protect/connections.ts';
import { handshakeOptions } from '../lib/protect/handshakes.ts';
import { webhookTracing } from '../lib/webhooks/observing/tracing.ts';
import { OPERATOR } from '../plugins/admin-console/audit.ts';
import { plugin as adminConsole } from '../plugins/admin-console/index.ts';
import { openToOwnerOnly } from '../plugins/admin-console/own-files.ts';
import type { System } from '../plugins/admin-console/system.ts';
import { plugin as httpsRecordSchema } from '../plugins/https-record-schema/index.ts';
import { type McpOptions, plugin as mcp } from '../plugins/mcp/index.ts';
import { plugin as metasploitData, type WholeInventory } from '../plugins/metasploit-data/index.ts';
import { type RequestLimit, type RestApiV2Options, plugin as restApi } from '../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../plugins/webhook-exporter/index.ts';
import { addBackup, type BackedUp } from './backup.ts';
import { builtServer } from './built-server.ts';
import type { ServersOptions } from './commands/serve.ts';
import { addSignInLinks, type SignIn } from './console-sign-in.ts';
import type { Demo } from './demo.ts';
import type { Parts } from './deployment.ts';
import { listenError } from './output/errors.ts';
import type { TlsPair } from './tls-certificate.ts';
import type { Undo } from './until-stopped.ts';

/** How long a stop waits for answers once nothing is being sent, in milliseconds. */
export const PATIENCE = 3_000;

/** The server of the REST API, with all that is served on its port; it does not listen yet. */
export async function restServer(
    options: ServersOptions,
    { key, cert }: TlsPair,
    parts: Parts,
    demo: Demo | null,
    { undo, inventory }: Pick<DataService, 'undo' | 'inventory'>,
): Promise<Server> {
    const {
        host,
        port,
        enrich,
        drainTimeout,
        hsts,
        maxConnections,
        maxPerAddress,
        maxWithoutRequest,
        maxRequests,
        keepFor,
        vendor,
        rate,
        processName,
        tracing,
    } = options;
    const { stores, keyRing, license, queue, receivers } = parts;
    const streams = streamsAsked(options);
    const routes = { security: forBrowsers(hsts) };
    const server = builtServer({ host, port, tls: { key, cert, ...handshakeOptions() }, debug: false, routes });
    await server.register([
        { plugin: tokenAuth, options: { store: stores.apiKeys, keyRing } },
        { plugin: metasploitData, options: { store: inventory as WholeInventory, license: license.source, ...streams } },
        {
            plugin: restApi,
            options: {
                store: inventory,
                license: license.source,
                openapi: description(options),
                ...streams,
                ...(maxRequests !== undefined && { rateLimit: await requestLimit(maxRequests, undo) }),
            },
        },
        {
            plugin: webhookExporter,
            options: {
                stores: stores.webhooks,
                queue,
                keyRing,
                ...receivers,
                egress: { allow: [...(receivers.egress?.allow ?? []), ...(demo?.allow ?? [])] },
                drainTimeout: sendingTimeout(drainTimeout),
                ...(keepFor !== undefined && { keepFor }),
                ...(vendor !== undefined && { vendor }),
                ...(rate !== undefined && { rate }),
                ...(processName !== undefined && { processName }),
                ...(tracing !== undefined && { tracing: await webhookTracing({ sendTraceparent: tracing === 'send' }) }),
                routes: { license: license.source },
                health: {},
            },
        },
        {
            plugin: httpsRecordSchema,
            options: {
                auth: 'token',
                license: license.source,
                records: stores.records,
                ...streams,
                ...(enrich !== undefined && { enrich: { workspace: enrich } }),
            },
        },
    ]);
    await addMcp(server, { ...readable(parts, server.plugins['webhook-exporter'], inventory), ...streams });
    protect(server.listener, { maxConnections, maxPerAddress, maxWithoutRequest, isLong: isBatch });
    addReadiness(server);
    return server;
}

/** A server of the REST API and what belongs to it. */
export interface DataService {
    readonly parts: Parts;
    readonly inventory: InventoryStore;
    readonly undo: Undo[];
    onError(error: unknown): void;
}

/** Some clients are told a port and no path; whoever opens it to them need not open the rest. @returns Null where none is asked for. */
export async function startDataService(
    options: ServersOptions,
    { key, cert }: TlsPair,
    { parts, inventory, undo, onError }: DataService,
): Promise<Server | null> {
    const { host, metasploitPort: port, hsts, maxConnections, maxPerAddress, maxWithoutRequest } = options;
    if (port === undefined) {
        return null;
    }

    const server = builtServer({
        host,
        port,
        tls: { key, cert, ...handshakeOptions() },
        debug: false,
        routes: { security: forBrowsers(hsts) },
    });
    await server.register([
        { plugin: tokenAuth, options: { store: parts.stores.apiKeys, keyRing: parts.keyRing } },
        {
            plugin: metasploitData,
            options: { store: inventory as WholeInventory, license: parts.license.source, ...streamsAsked(options) },
        },
    ]);
    protect(server.listener, { maxConnections, maxPerAddress, maxWithoutRequest, isLong: () => false });
    reportErrors(server, onError);
    await listen(server, { ...options, port });
    undo.push(() => server.stop({ timeout: PATIENCE }));
    return server;
}

/** Where there is a Redis, all servers of the deployment count together. */
async function requestLimit(requests: number, undo: Undo[]): Promise<RequestLimit> {
    const { REDIS_URL: url } = process.env;
    if (url === undefined) {
        return { requests };
    }

    const { openRedis, PRODUCER } = await import('../adapters/bullmq/redis-client.ts');
    const redis = await openRedis({ url }, PRODUCER);
    undo.push(async () => redis.disconnect());
    // It goes on trying, and what it says is said by the queue as well.
    redis.connect().catch(() => {});
    return { requests, redis };
}

/** The option `maxStreams` of plugins, where it is asked for. */
export function streamsAsked({ maxStreams }: ServersOptions): { readonly maxStreams?: number } {
    return maxStreams === undefined ? {} : { maxStreams };
}

/** The description of the API. Whoever has installed what shows it gets a page about it. */
function description({ openapi }: ServersOptions): NonNullable<RestApiV2Options['openapi']> {
    if (openapi === 'off') {
        return { enabled: false };
    }
    return { public: openapi === 'public', ...(isUsable('swagger-ui-dist', 'The page about the API') && { page: '/api-docs' }) };
}

/** What assistants may read. */
export function readable(
    { stores, license }: Parts,
    { deliveries }: Pick<System['webhooks'], 'deliveries'>,
    inventory: InventoryStore = stores.inventory,
): McpOptions {
    return { store: inventory, records: stores.records, deliveries, license: license.source };
}

/** Lets assistants read where what they speak is installed: with a key, or with `auth: false` as the operator. */
async function addMcp(server: Server, options: McpOptions): Promise<void> {
    if (isUsable('@modelcontextprotocol/sdk', 'The plugin mcp')) {
        await server.register({ plugin: mcp, options });
    }
}

/** What every answer says to a browser, also one to no route. */
function forBrowsers(hsts: number): RouteOptionsSecureObject {
    return {
        hsts: hsts > 0 ? { maxAge: hsts, includeSubDomains: false, preload: false } : false,
        noSniff: true,
        xframe: 'deny',
        xss: false,
        noOpen: false,
        referrer: 'no-referrer',
    };
}

/** Whether a request may take as long as it sends: records of gigabytes take hours. */
export function isBatch({ method, url = '' }: Pick<IncomingMessage, 'method' | 'url'>): boolean {
    return method === 'POST' && /^\/https-record-schema\/(?:check|records)(?:\?|$)/.test(url);
}

/** For load balancers, which have no key. Answers 503 from the first moment of a stop on. */
function addReadiness(server: Server): void {
    server.route({
        method: 'GET',
        path: '/-/ready',
        options: { auth: false, cache: { otherwise: 'no-store' }, state: { parse: false, failAction: 'ignore' } },
        async handler(_, h) {
            const readiness = await server.plugins['webhook-exporter'].readiness();
            return h.response(readiness).code(readiness.ready ? 200 : 503);
        },
    });
}

/** How long of these seconds the sender may take to stop, in milliseconds: most of it, since all else has to end as well. */
function sendingTimeout(drainTimeout: number): number {
    return Math.max(drainTimeout * 1000 - PATIENCE, drainTimeout * 500);
}

/** Says at once what would else be found out only after the database was opened. */
export async function assertCanListen(host: string, port: number): Promise<void> {
    builtServer({ host, port });
    const probe = createServer().listen(port, host);
    try {
        await once(probe, 'listening');
    } catch (error) {
        throw listenError(error, host, port);
    }

    probe.close();
    await once(probe, 'close');
}

/** Starts a server. @throws ScanwireError when it cannot have its address. */
export async function listen(server: Server, { host, port }: Pick<ServersOptions, 'host' | 'port'>): Promise<void> {
    try {
        await server.start();
    } catch (error) {
        await server.stop();
        throw listenError(error, host, port);
    }
}

/** Tells what went wrong on the server's side, and what its log says in words. */
export function reportErrors(server: Server, onError: (error: unknown) => void): void {
    const report = ({ error }: { error?: object }): void => {
        // What a client did wrong it was told.
        if (error !== undefined && (error as { isServer?: boolean }).isServer !== false) {
            onError(error);
        }
    };
    const inWords = ({ data }: { data?: unknown }): void => {
        if (typeof data === 'string') {
            onError(data);
        }
    };
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, (_, event) => report(event));
    server.events.on({ name: 'request', channels: 'app' }, (_, event) => inWords(event));
    server.events.on('log', report);
    server.events.on('log', inWords);
}

interface AdminServerOptions {
    readonly socket: string;
    readonly system: System;
    readonly read: McpOptions;
    readonly signIn: SignIn | null;
    readonly backUpTo: (file: string) => Promise<BackedUp>;
    readonly onError: (error: unknown) => void;
}

/** What the commands of the data folder ask. From the moment on that it listens it can do all that it ever can. */
export async function adminServer({ socket, system, read, signIn, backUpTo, onError }: AdminServerOptions): Promise<Server> {
    const admin = hapiServer({ port: socket, debug: false });
    openToOwnerOnly(admin);
    // A scan may come from a pipe, or be so large that it takes hours.
    admin.listener.requestTimeout = 0;
    // Whoever can open the socket owns the data folder, which nobody else can enter.
    const actor = (): string => OPERATOR.actor;
    await admin.register({ plugin: adminConsole, options: { system, auth: false, authorize: () => true, actor, prefix: '' } });
    await addMcp(admin, { ...read, auth: false });
    addDescription(admin);
    addBackup(admin, backUpTo);
    addSignInLinks(admin, signIn);
    reportErrors(admin, onError);
    await admin.start();
    await chmod(socket, 0o600);
    return admin;
}

/** For whoever makes a client of the socket. */
function addDescription(admin: Server): void {
    admin.route({
        method: 'GET',
        path: '/openapi.json',
        async handler() {
            const { administrationDocument } = await import('../plugins/rest-api-v2/openapi-administration.ts');
            return administrationDocument(admin);
        },
    });
}
