import { EventEmitter } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { ScanwireError } from '../lib/errors.ts';
import type { ImportSummary } from '../lib/inventory/store.ts';
import type { RevealedApiKey } from '../lib/keys/api-keys.ts';
import type { InvestigationCreated } from '../lib/webhooks/events/event-body-types.ts';
import type { Exporter } from '../lib/webhooks/exporters/exporter.ts';
import type { ChangedExporter } from '../lib/webhooks/exporters/exporter-operations.ts';
import { within } from '../lib/within.ts';
import { OPERATOR } from '../plugins/admin-console/audit.ts';
import { attemptView, handlersOf, testView } from '../plugins/admin-console/handlers.ts';
import type { AttemptView, TestView } from '../plugins/admin-console/operations.ts';
import type { System } from '../plugins/admin-console/system.ts';
import { type DataFolder, readIfPresent, replaceFile } from './data-folder.ts';
import type { Stores } from './stores.ts';
import { type Received, type Receiver, startReceiver, type Verification } from './verifying-receiver.ts';

/** What the demo has to show. */
export interface DemoShown {
    readonly key: RevealedApiKey;
    readonly workspaceId: number;
    /** Null when the database held hosts already. */
    readonly imported: ImportSummary | null;
    readonly receiver: string;
    readonly exporter: Exporter;
    readonly test: TestView;
    readonly investigation: {
        readonly eventId: string;
        readonly deliveryId: string;
        /** What the receiver made of it, null when it did not arrive in time. */
        readonly verification: Verification | null;
        /** Null when it was not tried yet. */
        readonly attempt: AttemptView | null;
    };
}

/** A demo whose receiver listens. */
export interface Demo {
    readonly receiver: Receiver;
    /** What must be open for the receiver to be called: its address on its port. */
    readonly allow: readonly string[];
    /** Uses the running system as a newcomer would, and says what came of it. */
    show(system: System, inventory: Stores['inventory']): Promise<DemoShown>;
}

const HOST = '127.0.0.1';
const EXPORTER_NAME = 'Demo receiver';
const WORKSPACE = 'default';
const KIND = 'idr_investigation_created';
/** How long the sample may take to arrive, in milliseconds. */
const PATIENCE = 20_000;

const fixture = (path: string): URL => new URL(`../../fixtures/${path}`, import.meta.url);

/** Starts what the demo needs beside the server. */
export async function startDemo(folder: DataFolder): Promise<Demo> {
    let file = await readDemoFile(folder);
    const arrivals = new EventEmitter<Arrivals>();
    const own = { host: HOST, secret: () => file.secret ?? '', onMessage: (message: Received) => void arrivals.emit('message', message) };
    // On the port of the last time if it is free, so that what waits for the receiver still finds it.
    const receiver = await startReceiver({ ...own, port: file.port ?? 0 }).catch(() => startReceiver({ ...own, port: 0 }));

    const remember = async (more: DemoFile): Promise<void> => {
        file = { ...file, ...more };
        await replaceFile(folder.demo, `${JSON.stringify(file)}\n`);
    };

    return {
        receiver,
        allow: [`${HOST}:${receiver.port}`],

        async show(system, inventory) {
            const workspaceId = (await inventory.ensureWorkspace(WORKSPACE)).id;
            const imported = (await isEmpty(inventory, workspaceId))
                ? await handlersOf(system, OPERATOR).importScan({
                      workspace: WORKSPACE,
                      source: createReadStream(fixture('scans/services.xml')),
                  })
                : null;
            const key = await findOrMakeKey(system, file, remember);
            const { exporter, test } = await findOrMakeExporter(system, receiver, file, remember);
            const investigation = await publishSample(system, arrivals);
            return { key, workspaceId, imported, receiver: receiver.url, exporter, test: testView(test), investigation };
        },
    };
}

type Remember = (more: DemoFile) => Promise<void>;
type Arrivals = { readonly message: [Received] };

async function isEmpty(inventory: Stores['inventory'], workspaceId: number): Promise<boolean> {
    for await (const hosts of inventory.hosts.list([workspaceId])) {
        return hosts.length === 0;
    }

    return true;
}

async function findOrMakeKey({ keys }: System, { keyId }: DemoFile, remember: Remember): Promise<RevealedApiKey> {
    const known = (await keys.list()).find(({ id, revokedAt }) => id === keyId && revokedAt === null);
    if (known !== undefined) {
        return keys.reveal(known.id);
    }

    const made = await keys.create('demo');
    await remember({ keyId: made.id });
    return made;
}

async function findOrMakeExporter(
    { webhooks: { exporters } }: System,
    { port, url }: Receiver,
    { exporterId, secret }: DemoFile,
    remember: Remember,
): Promise<Pick<ChangedExporter, 'exporter' | 'test'>> {
    const known = (await exporters.list()).find(({ id }) => id === exporterId);
    if (known === undefined || secret === undefined) {
        const made = await exporters.create({ url, name: EXPORTER_NAME });
        await remember({ exporterId: made.exporter.id, secret: made.secret, port });
        return exporters.start(made.exporter.id);
    }

    await remember({ port });
    if (known.url !== url) {
        await exporters.update(known.id, { url });
    }

    return known.state === 'running'
        ? { exporter: await exporters.get(known.id), test: await exporters.test(known.id) }
        : exporters.start(known.id);
}

async function publishSample({ webhooks }: System, arrivals: EventEmitter<Arrivals>): Promise<DemoShown['investigation']> {
    const sample = JSON.parse(await readFile(fixture('events/investigation.json'), 'utf8')) as InvestigationCreated;
    // The time tells this sample from those of earlier starts.
    const timestamp = new Date().toISOString();
    const arrival = new Promise<Received>((resolve) => {
        arrivals.on('message', (message) => {
            if (message.event === KIND && message.body?.includes(timestamp) === true) {
                resolve(message);
            }
        });
    });
    const { eventId, deliveries } = await webhooks.publish(KIND, { ...sample, timestamp });
    const deliveryId = deliveries[0];
    if (deliveryId === undefined) {
        throw new ScanwireError('CONFLICT', 'The sample investigation went to nobody: is the demo exporter stopped?');
    }

    const message = await within(arrival, { timeout: PATIENCE }).catch(() => null);
    const { history } = await webhooks.deliveries.show(deliveryId);
    const attempt = history.map(attemptView).at(-1) ?? null;
    return { eventId, deliveryId, verification: message?.verification ?? null, attempt };
}

/** What an earlier start of the demo made, so that the next one finds it again. */
interface DemoFile {
    readonly keyId?: string;
    readonly exporterId?: string;
    /** The secret as the receiver knows it. */
    readonly secret?: string;
    readonly port?: number;
}

async function readDemoFile({ demo }: DataFolder): Promise<DemoFile> {
    try {
        return (JSON.parse((await readIfPresent(demo)) ?? '{}') ?? {}) as DemoFile;
    } catch {
        return {};
    }
}
