import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { server as hapiServer, type RouteOptionsSecureObject, type Server } from '@hapi/hapi';
import type { Command } from 'commander';
import { systemClock } from '../../lib/clock.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { ownIdentity } from '../../lib/process-identity.ts';
import { protect } from '../../lib/protect/connections.ts';
import { DELIVERY_EVENTS } from '../../lib/webhooks/outcome.ts';
import type { System } from '../../plugins/admin-console/handlers.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { EVENT } from '../../plugins/instance.ts';
import { type McpOptions, plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as metasploitData, type WholeInventory } from '../../plugins/metasploit-data/index.ts';
import { plugin as restApi } from '../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';
import { claimSocket, withdrawSocket } from '../admin-socket.ts';
import { addBackup, type BackedUp, backUp } from '../backup.ts';
import { type Call, performing, wholeNumber } from '../command.ts';
import { type DataFolder, dataFolder, prepareDataFolder } from '../data-folder.ts';
import { type Demo, type DemoShown, startDemo } from '../demo.ts';
import { openParts, type Parts, systemOf } from '../deployment.ts';
import { addMetrics, type MetricsAddress, startMetrics } from '../metrics-server.ts';
import { errorLog } from '../output/errors.ts';
import { type Serving, serving } from '../output/serving.ts';
import { assertOnlyRead, openScanSource, readOnly } from '../scan-database.ts';
import { licenseWatch } from '../stored-license.ts';
import { type TlsPair, tlsCertificate } from '../tls-certificate.ts';
import { addDrainTimeout, type Undo, untilStopped } from '../until-stopped.ts';
import { cannotListen } from '../verifying-receiver.ts';

export function define(self: Command): void {
    performing(self, serve);
    self.option('--host <host>', 'address or name to listen on', '127.0.0.1')
        .option('--port <port>', 'port of the REST API', wholeNumber(0, 65535), 3790)
        .option('--tls-cert <file>', 'certificate chain in PEM form; self-signed when absent')
        .option('--tls-key <file>', 'its private key in PEM form')
        .option('--enrich <workspace>', 'make hosts and services of imported HTTPS scan records in this workspace')
        .option('--hsts <s>', 'seconds for which browsers shall use nothing but https for this host', wholeNumber(0, 63_072_000), 0)
        .option('--max-connections <n>', 'connections at once', wholeNumber(1, 1_000_000), 8192)
        .option(
            '--max-per-address <n>',
            'connections at once of one address, IPv6 by /64; not limited unless given',
            wholeNumber(1, 1_000_000),
        )
        .option('--scan-database-file <file>', 'read the inventory from the scan database whose URL is in this file')
        .option('--metasploit-port <port>', 'port of its own for clients of the Metasploit data service', wholeNumber(1, 65535))
        .option('--demo', 'import a scan, make a key, deliver a sample investigation to a receiver of its own');
    addMetrics(self);
    addDrainTimeout(self);
}

interface ServeOptions {
    readonly host: string;
    readonly port: number;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    /** Seconds, 0 to say nothing of it. */
    readonly hsts: number;
    readonly maxConnections: number;
    readonly maxPerAddress?: number;
    readonly scanDatabaseFile?: string;
    readonly metasploitPort?: number;
    readonly demo?: boolean;
    readonly metrics?: MetricsAddress;
    /** Seconds. */
    readonly drainTimeout: number;
    /** Workspace that imported records enrich. */
    readonly enrich?: string;
}

/** How long a stop waits, in milliseconds: for answers once nothing is being sent, for commands. */
const PATIENCE = 3_000;
const COMMAND_PATIENCE = 500;

/** Runs the server until it is told to stop. */
async function serve({ data, options, json }: Call): Promise<undefined> {
    const folder = dataFolder(data);
    await prepareDataFolder(folder);

    const serveOptions = options as unknown as ServeOptions;
    return await untilStopped(serveOptions.drainTimeout, async ({ undo, stopped, isStopping }) => {
        const log = errorLog();
        const onError = (error: unknown): void => {
            if (!isStopping()) {
                log(error);
            }
        };
        const { uri, tls, license, scan, demo } = await start(folder, serveOptions, undo, onError);
        // Whoever has had enough need not wait for the demonstration.
        const shown = await Promise.race([demo(), stopped]);
        if (shown !== undefined) {
            process.stdout.write(await serving({ json, uri, folder, tls, license, scan, environment: process.env, demo: shown }));
        }
    });
}

/** Starts what serves, and pushes what ends it to `undo`. The demonstration that it returns shows what works, null where none is wanted. */
async function start(
    folder: DataFolder,
    options: ServeOptions,
    undo: Undo[],
    onError: (error: unknown) => void,
): Promise<Pick<Serving, 'uri' | 'tls' | 'license' | 'scan'> & { demo(): Promise<DemoShown | null> }> {
    const { host, port, tlsCert, tlsKey } = options;
    const socket = await claimSocket(folder, ownIdentity());
    undo.push(() => withdrawSocket(folder, socket, process.pid));
    await assertCanListen(host, port);
    const scan = await openScanSource(options.scanDatabaseFile, process.env);
    if (scan !== null) {
        undo.push(() => scan.close());
        assertOnlyRead(options);
    }
    const parts = await openParts({ folder, environment: process.env, onError });
    undo.push(() => parts.close());
    // The key ring is there by now, by which the next start knows the folder, whatever goes wrong here.
    const tls = await tlsCertificate({ folder, host, clock: systemClock, certificateFile: tlsCert, keyFile: tlsKey });

    const demo = options.demo === true ? await startDemo(folder) : null;
    undo.push(async () => demo?.receiver.close());

    const server = await restServer(options, tls, parts, demo, scan?.inventory);
    reportErrors(server, onError);
    await addMetricsOf(server, options.metrics, undo, onError);
    await listen(server, options);
    undo.push(() => server.stop({ timeout: PATIENCE }));
    await startDataService(options, tls, { parts, undo, onError, inventory: scan?.inventory ?? parts.stores.inventory });

    const own = systemOf(parts, server.plugins['token-auth'], server.plugins['webhook-exporter']);
    const system = scan === null ? own : readOnly(own);
    const read = readable(parts, system.webhooks, scan?.inventory);
    const admin = await adminServer(socket, system, read, (file) => backUp(folder, parts.stores.dump, file), onError);
    undo.push(() => admin.stop({ timeout: COMMAND_PATIENCE }));
    const license = await watchLicense(parts.license, undo, onError);
    return {
        uri: server.info.uri,
        tls,
        license,
        scan: scan?.place ?? null,
        demo: async () => demo?.show(system, parts.stores.inventory) ?? null,
    };
}

async function restServer(
    { host, port, enrich, drainTimeout, hsts, maxConnections, maxPerAddress }: ServeOptions,
    { key, cert }: TlsPair,
    parts: Parts,
    demo: Demo | null,
    inventory: InventoryStore = parts.stores.inventory,
): Promise<Server> {
    const { stores, keyRing, license, queue, receivers } = parts;
    const routes = { security: forBrowsers(hsts) };
    const server = hapiServer({ host, port, tls: { key, cert }, debug: false, routes });
    await server.register([
        { plugin: tokenAuth, options: { store: stores.apiKeys, keyRing } },
        { plugin: metasploitData, options: { store: inventory as WholeInventory, license: license.source } },
        { plugin: restApi, options: { store: inventory, license: license.source, openapi: docsPage() } },
        {
            plugin: webhookExporter,
            options: {
                stores: stores.webhooks,
                queue,
                keyRing,
                ...receivers,
                egress: { allow: [...(receivers.egress?.allow ?? []), ...(demo?.allow ?? [])] },
                drainTimeout: sendingTimeout(drainTimeout),
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
                ...(enrich !== undefined && { enrich: { workspace: enrich } }),
            },
        },
    ]);
    await addMcp(server, readable(parts, server.plugins['webhook-exporter'], inventory));
    protect(server.listener, { maxConnections, maxPerAddress, isLong: isBatch });
    addReadiness(server);
    return server;
}

interface DataService {
    readonly parts: Parts;
    readonly inventory: InventoryStore;
    readonly undo: Undo[];
    onError(error: unknown): void;
}

/** Some clients are told a port and no path; whoever opens it to them need not open the rest. */
async function startDataService(
    options: ServeOptions,
    { key, cert }: TlsPair,
    { parts, inventory, undo, onError }: DataService,
): Promise<void> {
    const { host, metasploitPort: port, hsts, maxConnections, maxPerAddress } = options;
    if (port === undefined) {
        return;
    }

    const server = hapiServer({ host, port, tls: { key, cert }, debug: false, routes: { security: forBrowsers(hsts) } });
    await server.register([
        { plugin: tokenAuth, options: { store: parts.stores.apiKeys, keyRing: parts.keyRing } },
        { plugin: metasploitData, options: { store: inventory as WholeInventory, license: parts.license.source } },
    ]);
    protect(server.listener, { maxConnections, maxPerAddress, isLong: () => false });
    reportErrors(server, onError);
    await listen(server, { ...options, port });
    undo.push(() => server.stop({ timeout: PATIENCE }));
}

/** Whoever has installed what shows it gets a page about the API. */
function docsPage(): { readonly page?: string } {
    return isInstalled('swagger-ui-dist/package.json') ? { page: '/api-docs' } : {};
}

/** What assistants may read. */
function readable(
    { stores, license }: Parts,
    { deliveries }: Pick<System['webhooks'], 'deliveries'>,
    inventory: InventoryStore = stores.inventory,
): McpOptions {
    return { store: inventory, records: stores.records, deliveries, license: license.source };
}

/** Lets assistants read where what they speak is installed. Without `auth` they do so as the operator. */
async function addMcp(server: Server, options: McpOptions): Promise<void> {
    if (isInstalled('@modelcontextprotocol/sdk/server/index.js')) {
        await server.register({ plugin: mcp, options });
    }
}

function isInstalled(module: string): boolean {
    try {
        import.meta.resolve(module);
        return true;
    } catch {
        return false;
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

/** Records of gigabytes take hours. */
function isBatch({ method, url = '' }: IncomingMessage): boolean {
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

/** Told from before it starts; the server that shows them ends after what is measured. */
async function addMetricsOf(
    server: Server,
    address: MetricsAddress | undefined,
    undo: Undo[],
    onError: (error: Error) => void,
): Promise<void> {
    if (address !== undefined) {
        const metrics = await startMetrics(address, { source: () => server.plugins['webhook-exporter'], onError });
        undo.push(metrics.stop);
        server.events.on({ name: EVENT, channels: ['event.accepted', ...DELIVERY_EVENTS] }, metrics.hear);
    }
}

/** How long of these seconds the sender may take to stop, in milliseconds: most of it, since all else has to end as well. */
function sendingTimeout(drainTimeout: number): number {
    return Math.max(drainTimeout * 1000 - PATIENCE, drainTimeout * 500);
}

/** Between two looks at the licence, in milliseconds. */
const LICENSE_LOOK = 3_600_000;

/** Says in the log what the operator has to know of the licence, now and as it changes. Answers with what that is now. */
async function watchLicense(license: Parts['license'], undo: Undo[], onError: (error: unknown) => void): Promise<string | null> {
    const look = licenseWatch(license, systemClock, (notice) => onError(new Error(notice)));
    const timer = setInterval(() => void look().catch(onError), LICENSE_LOOK).unref();
    undo.push(async () => clearInterval(timer));
    return await look();
}

/** Says at once what would else be found out only after the database was opened. */
async function assertCanListen(host: string, port: number): Promise<void> {
    const probe = createServer().listen(port, host);
    try {
        await once(probe, 'listening');
    } catch (error) {
        throw cannotListen(error, host, port);
    }

    probe.close();
    await once(probe, 'close');
}

async function listen(server: Server, { host, port }: ServeOptions): Promise<void> {
    try {
        await server.start();
    } catch (error) {
        await server.stop();
        throw cannotListen(error, host, port);
    }
}

async function adminServer(
    socket: string,
    system: System,
    read: McpOptions,
    backUpTo: (file: string) => Promise<BackedUp>,
    onError: (error: unknown) => void,
): Promise<Server> {
    const admin = hapiServer({ port: socket, debug: false });
    // Whoever can open the socket owns the data folder, which nobody else can enter.
    await admin.register({ plugin: adminConsole, options: { system, auth: false, authorize: () => true, prefix: '' } });
    await addMcp(admin, { ...read, auth: false });
    addBackup(admin, backUpTo);
    reportErrors(admin, onError);
    await admin.start();
    await chmod(socket, 0o600);
    return admin;
}

function reportErrors(server: Server, onError: (error: unknown) => void): void {
    const report = ({ error }: { error?: object }): void => {
        // What a client did wrong it was told.
        if (error !== undefined && (error as { isServer?: boolean }).isServer !== false) {
            onError(error);
        }
    };
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, (_, event) => report(event));
    server.events.on('log', report);
}
