import type { ImportSummary } from '../lib/inventory/store.ts';
import type { ApiKeySummary, RevealedApiKey } from '../lib/keys/api-keys.ts';
import type { LicenseStatus } from '../lib/license/verify-license.ts';
import type { RuleSet } from '../lib/webhooks/events.ts';
import type { Exporter, ExporterChanges, NewExporterSettings } from '../lib/webhooks/exporter.ts';
import type { ChangedExporter, TestOutcome } from '../lib/webhooks/exporters.ts';
import type { Outcome } from '../lib/webhooks/outcome.ts';
import type { Accepted, Attempt, Delivery, DeliveryState } from '../lib/webhooks/store.ts';
import type { Migrated, System } from './system.ts';

/**
 * One thing that can be asked of a server: the command line asks through the socket of the data folder or runs it in its own
 * process, and any other interface can serve the same as routes.
 */
export interface Operation<Input extends object, Output> {
    /** For example `keys.create`. */
    readonly name: string;
    readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
    /** Path of the route; a part in braces is the field of that name in the input. */
    readonly path: string;
    /** True where the body of the request is not JSON but a stream, given to `run` as `source`; other fields go into the query. */
    readonly streamed?: true;
    /** True for one that makes sense without any data yet: the data folder is made for it. */
    readonly creates?: true;
    /** True for one that waits for a delivery: where no server runs, this process delivers meanwhile. */
    readonly delivers?: true;
    /** What it answers survives `JSON.stringify`. */
    run(system: System, input: Input): Promise<Output>;
}

/** The operation as it stands, with its types inferred. */
function operation<Input extends object, Output>(definition: Operation<Input, Output>): Operation<Input, Output> {
    return definition;
}

export const createKey: Operation<{ name: string }, RevealedApiKey> = operation({
    name: 'keys.create',
    method: 'POST',
    path: '/keys',
    creates: true,
    run: (system, { name }) => system.keys.create(name),
});

export const listKeys: Operation<object, readonly ApiKeySummary[]> = operation({
    name: 'keys.list',
    method: 'GET',
    path: '/keys',
    run: (system) => system.keys.list(),
});

export const revealKey: Operation<{ id: string }, RevealedApiKey> = operation({
    name: 'keys.reveal',
    method: 'GET',
    path: '/keys/{id}',
    run: (system, { id }) => system.keys.reveal(id),
});

export const revokeKey: Operation<{ id: string }, { readonly id: string; readonly revoked: true }> = operation({
    name: 'keys.revoke',
    method: 'DELETE',
    path: '/keys/{id}',
    async run(system, { id }) {
        await system.keys.revoke(id);
        return { id, revoked: true };
    },
});

export type TestedExporter = Exporter & { readonly test: ShownTest };
export type CreatedExporter = Exporter & { readonly secret: string; readonly test?: ShownTest };

export const createExporter: Operation<{ settings: NewExporterSettings; start?: boolean }, CreatedExporter> = operation({
    name: 'exporters.create',
    method: 'POST',
    path: '/exporters',
    creates: true,
    delivers: true,
    async run(system, { settings, start = false }) {
        const { exporter, secret } = await system.webhooks.exporters.create(settings);
        return start ? { ...(await started(system, exporter.id)), secret } : { ...exporter, secret };
    },
});

export const listExporters: Operation<object, readonly Exporter[]> = operation({
    name: 'exporters.list',
    method: 'GET',
    path: '/exporters',
    run: (system) => system.webhooks.exporters.list(),
});

export const showExporter: Operation<{ id: string }, Exporter> = operation({
    name: 'exporters.show',
    method: 'GET',
    path: '/exporters/{id}',
    run: (system, { id }) => system.webhooks.exporters.get(id),
});

export const updateExporter: Operation<{ id: string; changes: ExporterChanges; start?: boolean }, TestedExporter> = operation({
    name: 'exporters.update',
    method: 'PATCH',
    path: '/exporters/{id}',
    delivers: true,
    async run(system, { id, changes, start = false }) {
        const changed = await system.webhooks.exporters.update(id, changes);
        return start ? started(system, id) : tested(changed);
    },
});

export const startExporter: Operation<{ id: string }, TestedExporter> = operation({
    name: 'exporters.start',
    method: 'POST',
    path: '/exporters/{id}/start',
    delivers: true,
    run: (system, { id }) => started(system, id),
});

export const stopExporter: Operation<{ id: string }, TestedExporter> = operation({
    name: 'exporters.stop',
    method: 'POST',
    path: '/exporters/{id}/stop',
    delivers: true,
    run: async (system, { id }) => tested(await system.webhooks.exporters.stop(id)),
});

export const testExporter: Operation<{ id: string }, ShownTest> = operation({
    name: 'exporters.test',
    method: 'POST',
    path: '/exporters/{id}/test',
    delivers: true,
    run: async (system, { id }) => shownTest(await system.webhooks.exporters.test(id)),
});

export const removeExporter: Operation<{ id: string }, { readonly id: string; readonly removed: true }> = operation({
    name: 'exporters.remove',
    method: 'DELETE',
    path: '/exporters/{id}',
    async run(system, { id }) {
        await system.webhooks.exporters.remove(id);
        return { id, removed: true };
    },
});

async function started(system: System, id: string): Promise<TestedExporter> {
    return tested(await system.webhooks.exporters.start(id));
}

function tested({ exporter, test }: ChangedExporter): TestedExporter {
    return { ...exporter, test: shownTest(test) };
}

export type ShownDelivery = Omit<Delivery, 'attempts'> & { readonly attempts: readonly ShownAttempt[] };

export interface DeliveryFilter {
    readonly state?: DeliveryState;
    readonly exporterId?: string;
    readonly after?: string;
    readonly limit?: number;
}

export const listDeliveries: Operation<DeliveryFilter, readonly Delivery[]> = operation({
    name: 'deliveries.list',
    method: 'GET',
    path: '/deliveries',
    run: (system, filter) => system.webhooks.deliveries.list(filter),
});

export const showDelivery: Operation<{ id: string }, ShownDelivery> = operation({
    name: 'deliveries.show',
    method: 'GET',
    path: '/deliveries/{id}',
    async run(system, { id }) {
        const delivery = await system.webhooks.deliveries.show(id);
        return { ...delivery, attempts: delivery.attempts.map(shownAttempt) };
    },
});

export const replayDelivery: Operation<{ id: string }, Delivery> = operation({
    name: 'deliveries.replay',
    method: 'POST',
    path: '/deliveries/{id}/replay',
    run: (system, { id }) => system.webhooks.deliveries.replay(id),
});

/** An attempt with what it came to beside its times: `status`, `code` and the rest are null while it is under way. */
export type ShownAttempt = Omit<Attempt, 'outcome'> & { readonly [Field in keyof Outcome]: Outcome[Field] | null };

/** What a `test` came to, its attempt in the same form. */
export interface ShownTest {
    readonly deliveryId: string;
    /** Null when it has not been sent and answered in the time that it was waited for. */
    readonly attempt: ShownAttempt | null;
}

const UNDER_WAY = { status: null, code: null, detail: null, retryAfter: null, timings: null, address: null, fingerprint: null };

export function shownAttempt({ number, startedAt, finishedAt, outcome, late }: Attempt): ShownAttempt {
    return { number, startedAt, finishedAt, ...UNDER_WAY, ...outcome, late };
}

export function shownTest({ deliveryId, attempt }: TestOutcome): ShownTest {
    return { deliveryId, attempt: attempt === null ? null : shownAttempt(attempt) };
}

export const publishEvent: Operation<{ kind: string; body: unknown; rules?: RuleSet }, Accepted> = operation({
    name: 'events.publish',
    method: 'POST',
    path: '/events/{kind}',
    run: (system, { kind, body, rules }) => system.webhooks.publish(kind, body, rules === undefined ? {} : { rules }),
});

export const showLicense: Operation<object, LicenseStatus> = operation({
    name: 'license.show',
    method: 'GET',
    path: '/license',
    run: (system) => system.license.inspect(),
});

export const installLicense: Operation<{ text: string }, LicenseStatus> = operation({
    name: 'license.install',
    method: 'POST',
    path: '/license',
    creates: true,
    run: (system, { text }) => system.license.install(text),
});

/** Either all hosts of the file are stored or none. */
export const importScan: Operation<{ workspace: string; source: AsyncIterable<Uint8Array> }, ImportSummary> = operation({
    name: 'import',
    method: 'POST',
    path: '/import',
    streamed: true,
    creates: true,
    async run(system, { workspace, source }) {
        const { readScan } = await import('../lib/inventory/read-scan.ts');
        const { workspaceName } = await import('../lib/inventory/resources.ts');
        return system.inventory.importHosts(workspaceName(workspace), readScan(source));
    },
});

/** Opening the stores migrates them; this says where they stand. */
export const migrate: Operation<object, Migrated> = operation({
    name: 'migrate',
    method: 'POST',
    path: '/migrations',
    creates: true,
    run: (system) => system.migrate(),
});

/** Everything that can be asked of a server through its socket. */
export const operations: readonly Operation<object, unknown>[] = [
    createKey,
    listKeys,
    revealKey,
    revokeKey,
    createExporter,
    listExporters,
    showExporter,
    updateExporter,
    startExporter,
    stopExporter,
    testExporter,
    removeExporter,
    publishEvent,
    listDeliveries,
    showDelivery,
    replayDelivery,
    showLicense,
    installLicense,
    importScan,
    migrate,
];
