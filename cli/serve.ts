import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { createServer } from 'node:net';
import { server as hapiServer, type Server } from '@hapi/hapi';
import { systemClock } from '../lib/clock.ts';
import { plugin as httpsRecordSchema } from '../plugins/https-record-schema/index.ts';
import { plugin as restApi } from '../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../plugins/webhook-exporter/index.ts';
import { adminRoutes } from './admin-routes.ts';
import type { Call } from './call.ts';
import { dataFolder, prepareDataFolder } from './data-folder.ts';
import { type Demo, startDemo } from './demo/demo.ts';
import { errorLog } from './output/log-error.ts';
import { serving } from './output/serving.ts';
import { cannotListen } from './receiver/start-receiver.ts';
import { claimSocket, withdrawSocket } from './server-socket.ts';
import { stopSignal } from './stop-signal.ts';
import { openParts, type Parts, type System, systemOf } from './system.ts';
import { type TlsPair, tlsCertificate } from './tls-certificate.ts';

interface ServeOptions {
    readonly host: string;
    readonly port: number;
    readonly tlsCert?: string;
    readonly tlsKey?: string;
    readonly demo?: boolean;
}

/** How long a stop waits for answers and attempts under way, in milliseconds. What is cut off is sent again after the next start. */
const PATIENCE = 4_000;

/** Runs the server until it is told to stop. */
export async function serve({ data, options, json }: Call): Promise<void> {
    const given = options as unknown as ServeOptions;
    const stopped = stopSignal();
    const folder = dataFolder(data);
    await prepareDataFolder(folder);

    // Undone in reverse, whatever was reached.
    const undo: (() => Promise<unknown>)[] = [];
    try {
        const socket = await claimSocket(folder, process.pid);
        undo.push(() => withdrawSocket(folder, socket, process.pid));
        await assertCanListen(given.host, given.port);
        const onError = errorLog();
        const tls = await tlsCertificate({
            folder,
            host: given.host,
            clock: systemClock,
            certificateFile: given.tlsCert,
            keyFile: given.tlsKey,
        });
        const parts = await openParts({ folder, environment: process.env, onError });
        undo.push(() => within(PATIENCE, parts.close()));

        const demo = given.demo === true ? await startDemo(folder) : null;
        undo.push(async () => demo?.receiver.close());

        const server = await restServer(given, tls, parts, demo);
        reportErrors(server, onError);
        await listen(server, given);
        undo.push(() => within(PATIENCE, server.stop({ timeout: PATIENCE / 2 })));

        const system = systemOf(parts, server.plugins['token-auth'], server.plugins['webhook-exporter']);
        const admin = await adminServer(socket, system, onError);
        undo.push(() => within(PATIENCE, admin.stop({ timeout: PATIENCE / 2 })));
        await chmod(socket, 0o600);

        const shown = await demo?.show(system, parts);
        process.stdout.write(await serving({ json, uri: server.info.uri, folder, tls, environment: process.env, demo: shown ?? null }));
        await stopped;
    } finally {
        for (const step of undo.reverse()) {
            await step();
        }
    }

    // A receiver that answers too slowly must not hold the process.
    process.exit();
}

async function restServer({ host, port }: ServeOptions, { key, cert }: TlsPair, parts: Parts, demo: Demo | null): Promise<Server> {
    const { stores, keyRing, license, queue, allow } = parts;
    const server = hapiServer({ host, port, tls: { key, cert }, debug: false });
    await server.register([
        { plugin: tokenAuth, options: { store: stores.apiKeys, keyRing } },
        { plugin: restApi, options: { store: stores.inventory, license: license.source } },
        {
            plugin: webhookExporter,
            options: { stores: stores.webhooks, queue, keyRing, egress: { allow: [...allow, ...(demo?.allow ?? [])] } },
        },
        { plugin: httpsRecordSchema, options: { auth: 'token' } },
    ]);
    return server;
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

async function adminServer(socket: string, system: System, onError: (error: unknown) => void): Promise<Server> {
    const admin = hapiServer({ port: socket, debug: false });
    admin.route(adminRoutes(system));
    reportErrors(admin, onError);
    await admin.start();
    return admin;
}

function reportErrors(server: Server, onError: (error: unknown) => void): void {
    const report = (_: unknown, { error }: { error?: unknown }): void => {
        if (error !== undefined) {
            onError(error);
        }
    };
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, report);
    server.events.on('log', report);
}

/** Resolves when the work is done or the time is over, whichever comes first; a failure while stopping changes nothing. */
async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
        timer = setTimeout(resolve, milliseconds);
    });
    await Promise.race([work.catch(() => {}), late]);
    clearTimeout(timer);
}
