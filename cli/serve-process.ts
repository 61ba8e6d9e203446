import type { Server as Listener } from 'node:https';
import type { Server } from '@hapi/hapi';
import { systemClock } from '../lib/clock.ts';
import { ScanwireError } from '../lib/errors.ts';
import { ownIdentity } from '../lib/process-identity.ts';
import { DELIVERY_EVENTS } from '../lib/webhooks/observing/emitted-events.ts';
import { EVENT } from '../plugins/log-and-events.ts';
import { claimSocket, withdrawSocket } from './admin-socket.ts';
import { type BackedUp, backUp } from './backup.ts';
import { uriOf } from './built-server.ts';
import type { Call } from './command.ts';
import type { ServeOptions } from './commands/serve.ts';
import { addConsole, type SignIn } from './console-sign-in.ts';
import type { DataFolder } from './data-folder.ts';
import { type DemoShown, startDemo } from './demo.ts';
import { openParts, type Parts, systemOf } from './deployment.ts';
import {
    adminServer,
    assertCanListen,
    listen,
    PATIENCE,
    readable,
    reportErrors,
    restServer,
    startDataService,
    streamsAsked,
} from './http-servers.ts';
import { type MetricsAddress, startMetrics } from './metrics-server.ts';
import { errorLog } from './output/errors.ts';
import { type Serving, serving } from './output/serving.ts';
import { assertOnlyRead, openScanSource, readOnly } from './scan-source.ts';
import { licenseWatch } from './stored-license.ts';
import { renewCertificate, tlsCertificate } from './tls-certificate.ts';
import { type Undo, untilStopped } from './until-stopped.ts';

/** How long a stop waits for commands, in milliseconds. */
const COMMAND_PATIENCE = 500;

/** Runs the server of a data folder until it is told to stop. */
export async function serve(folder: DataFolder, { options, json }: Pick<Call, 'options' | 'json'>): Promise<undefined> {
    const serveOptions = options as unknown as ServeOptions;
    return await untilStopped(serveOptions.drainTimeout, async ({ undo, stopped, isStopping }) => {
        const log = errorLog();
        const onError = (error: unknown): void => {
            if (!isStopping()) {
                log(error);
            }
        };
        const { uri, tls, license, scan, demo, signIn } = await start(folder, serveOptions, undo, onError);
        // Whoever has had enough need not wait for the demonstration.
        const shown = await Promise.race([demo(), stopped]);
        if (shown !== undefined) {
            // A link in a file or a log would let in whoever reads that.
            const link = process.stdout.isTTY && !json ? (signIn?.link() ?? null) : null;
            process.stdout.write(await serving({ json, link, uri, folder, tls, license, scan, environment: process.env, demo: shown }));
        }
    });
}

/** Nobody but the next start opens the database again: whoever looks after the process has to see that it ended. */
function endLost(onError: (error: unknown) => void): void {
    onError(
        new ScanwireError('UNAVAILABLE', 'The embedded database has ended by itself, and so does this process: is there room on its disk?'),
    );
    process.exitCode = 1;
    process.kill(process.pid, 'SIGTERM');
}

/** Starts what serves, and pushes what ends it to `undo`. The demonstration that it returns shows what works, null where none is wanted. */
async function start(
    folder: DataFolder,
    options: ServeOptions,
    undo: Undo[],
    onError: (error: unknown) => void,
): Promise<Pick<Serving, 'uri' | 'tls' | 'license' | 'scan'> & { readonly signIn: SignIn | null; demo(): Promise<DemoShown | null> }> {
    const { host, port, tlsCert, tlsKey, tlsKeyEnv } = options;
    const socket = await claimSocket(folder, ownIdentity());
    undo.push(() => withdrawSocket(folder, socket, process.pid));
    await assertCanListen(host, port);
    const scan = await openScanSource(options.scanDatabaseFile, process.env);
    if (scan !== null) {
        undo.push(() => scan.close());
        assertOnlyRead(options);
    }
    const pair = { certificateFile: tlsCert, keyFile: tlsKey, keyVariable: tlsKeyEnv };
    const tlsOptions = { folder, host, clock: systemClock, ...pair };
    // What is wrong with one that somebody has brought is said before a database is made.
    const brought = Object.values(pair).some((value) => value !== undefined) ? await tlsCertificate(tlsOptions) : null;
    const parts = await openParts({ folder, environment: process.env, pooled: options.pooled === true, onError });
    undo.push(() => parts.close());
    void parts.stores.lost?.then(() => endLost(onError));
    // The key ring is there by now, by which the next start knows the folder, whatever goes wrong here.
    const tls = brought ?? (await tlsCertificate(tlsOptions));

    const demo = options.demo === true ? await startDemo(folder) : null;
    undo.push(async () => demo?.receiver.close());

    const inventory = scan?.inventory ?? parts.stores.inventory;
    const server = await restServer(options, tls, parts, demo, { undo, inventory });
    reportErrors(server, onError);
    const own = systemOf(parts, server.plugins['token-auth'], server.plugins['webhook-exporter'], { keepFor: options.keepFor, onError });
    const system = scan === null ? own : readOnly(own, scan);
    const signIn = await addConsole(server, system, systemClock);
    await addMetricsOf(server, options.metrics, undo, onError);
    await listen(server, options);
    undo.push(() => server.stop({ timeout: PATIENCE }));
    const data = await startDataService(options, tls, { parts, undo, onError, inventory });
    const listeners = [server, ...(data === null ? [] : [data])].map(({ listener }) => listener as Listener);
    undo.push(renewCertificate({ options: tlsOptions, pair: tls, listeners, onError }));

    const read = { ...readable(parts, system.webhooks, scan?.inventory), ...streamsAsked(options) };
    const backUpTo = (file: string): Promise<BackedUp> => backUp(folder, parts.stores.dump, file);
    const admin = await adminServer({ socket, system, read, signIn, backUpTo, onError });
    undo.push(() => admin.stop({ timeout: COMMAND_PATIENCE }));
    const license = await watchLicense(parts.license, undo, onError);
    return {
        uri: uriOf(server),
        signIn,
        tls,
        license,
        scan: scan?.location ?? null,
        demo: async () => demo?.show(system, parts.stores.inventory) ?? null,
    };
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

/** Between two looks at the licence, in milliseconds. */
const LICENSE_LOOK = 3_600_000;

/** Says in the log what the operator has to know of the licence, now and as it changes. Answers with what that is now. */
async function watchLicense(license: Parts['license'], undo: Undo[], onError: (error: unknown) => void): Promise<string | null> {
    const look = licenseWatch(license, systemClock, (notice) => onError(new Error(notice)));
    const timer = setInterval(() => void look().catch(onError), LICENSE_LOOK).unref();
    undo.push(async () => clearInterval(timer));
    return await look();
}
