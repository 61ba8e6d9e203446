import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { checked } from '../../../lib/checked.ts';
import type { Executor } from '../../../lib/executor.ts';
import { newExporter, newExporterSchema, type StoredExporter } from '../../../lib/webhooks/exporter.ts';
import type { Outcome, OutcomeCode } from '../../../lib/webhooks/outcome.ts';
import type {
    Claim,
    DeliveryStore,
    Dispatched,
    DispatchOptions,
    ExporterStore,
    NewEvent,
    RecordedOutcome,
    StoredEvent,
} from '../../../lib/webhooks/store.ts';
import type { Ability, ContractFixture } from '../announce.ts';

/** A transaction of the application, on a connection of its own. */
export interface HostTransaction {
    readonly tx: Executor;
    commit(): Promise<void>;
    rollback(): Promise<void>;
}

/** The stores under test, over the same data; empty once started. */
export interface WebhookStores extends ContractFixture {
    readonly exporters: ExporterStore;
    readonly deliveries: DeliveryStore;
    /** Opens a transaction of the application; needed where `deliveries.transactions` is true. */
    readonly begin?: () => Promise<HostTransaction>;
}

/** Name of something that not every pair of webhook stores can do. */
export type WebhookAbility = 'transactions';

/** What the laws of webhook stores may need. */
export const webhookAbilities: Readonly<Record<WebhookAbility, Ability<WebhookStores>>> = {
    transactions: {
        has: ({ deliveries }) => deliveries.transactions,
        shows: ({ begin }) => begin !== undefined,
        supply: 'begin(), which opens a transaction of the application',
    },
};

const START = Date.UTC(2026, 10, 21, 9, 30, 0, 123);

/** So many milliseconds after the time at which every law begins. */
export function at(milliseconds: number): Date {
    return new Date(START + milliseconds);
}

/** A running exporter that never failed, unless `overrides` says otherwise. */
export function sampleExporter(overrides: Partial<StoredExporter> = {}): StoredExporter {
    const settings = checked(newExporterSchema, { name: 'siem', url: 'https://receiver.example/hook' });
    return { ...newExporter(randomUUID(), settings, at(0)), sealedSecret: 'sealed', state: 'running', ...overrides };
}

/** An event of the time at which every law begins. */
export function sampleEvent(overrides: Partial<StoredEvent> = {}): StoredEvent {
    return { id: randomUUID(), kind: 'idr_investigation_created', body: '{"title":"x"}', createdAt: at(0), ...overrides };
}

/** An outcome with a value in most fields. */
export function sampleOutcome(code: OutcomeCode, overrides: Partial<Outcome> = {}): Outcome {
    return {
        code,
        status: code === 'delivered' ? 204 : null,
        detail: `it was ${code}`,
        retryAfter: null,
        timings: { dns: 1, connect: 2, tls: null, firstByte: 4, total: 9 },
        address: '192.0.2.7',
        fingerprint: null,
        ...overrides,
    };
}

/** Inserts an exporter. */
export async function addExporter({ exporters }: WebhookStores, overrides: Partial<StoredExporter> = {}): Promise<StoredExporter> {
    const exporter = sampleExporter(overrides);
    await exporters.insert(exporter);
    return exporter;
}

/** Accepts one event per entry of `overrides` for every exporter of the type `investigation`; answers with all deliveries, in order. */
export async function publish({ deliveries }: WebhookStores, ...overrides: readonly Partial<StoredEvent>[]): Promise<readonly string[]> {
    const events = overrides.length === 0 ? [{}] : overrides;
    const accepted = await deliveries.accept(
        events.map((event): NewEvent => ({ event: sampleEvent(event), recipients: { types: ['investigation'] } })),
    );
    return accepted.flatMap((one) => one.deliveries);
}

/** Accepts a `test` for one exporter. */
export async function publishTest(
    { deliveries }: WebhookStores,
    exporterId: string,
    overrides: Partial<StoredEvent> = {},
): Promise<string> {
    const [accepted] = await deliveries.accept([{ event: sampleEvent({ kind: 'test', ...overrides }), recipients: { exporterId } }]);
    return only(accepted?.deliveries ?? []);
}

/** Hands out what is due at the beginning, with a wide window. */
export async function dispatch({ deliveries }: WebhookStores, overrides: Partial<DispatchOptions> = {}): Promise<readonly Dispatched[]> {
    return await deliveries.dispatch({ now: at(0), window: 10, breakerAfter: 3, limit: 1000, ...overrides });
}

/** Ids of what a dispatch hands out. */
export async function dispatchedIds(stores: WebhookStores, overrides: Partial<DispatchOptions> = {}): Promise<readonly string[]> {
    return (await dispatch(stores, overrides)).map(({ deliveryId }) => deliveryId);
}

/** Claims deliveries that are `queued`, for a minute. */
export async function claim({ deliveries }: WebhookStores, ids: readonly string[], now: Date = at(0)): Promise<readonly Claim[]> {
    const expiresAt = new Date(now.getTime() + 60_000);
    const claims = await deliveries.claim(ids.map((deliveryId) => ({ deliveryId, token: randomUUID(), now, expiresAt })));
    return claims.filter((one) => one !== null);
}

/** Publishes to one new exporter, dispatches and claims: a delivery that is being sent. */
export async function claimOne(stores: WebhookStores, overrides: Partial<StoredExporter> = {}): Promise<Claim> {
    await addExporter(stores, overrides);
    await publish(stores);
    return only(await claim(stores, await dispatchedIds(stores)));
}

/** The outcome of the claim: delivered, unless `overrides` says otherwise. */
export function success(claim: Claim, overrides: Partial<RecordedOutcome> = {}): RecordedOutcome {
    return {
        deliveryId: claim.deliveryId,
        exporterId: claim.exporter.id,
        token: claim.token,
        finishedAt: at(50),
        outcome: sampleOutcome('delivered'),
        next: { state: 'delivered' },
        health: 'success',
        probeAt: null,
        stopReason: null,
        ...overrides,
    };
}

/** The outcome of a claim that failed and is tried again at `dueAt`. */
export function failure(claim: Claim, dueAt: Date, overrides: Partial<RecordedOutcome> = {}): RecordedOutcome {
    const outcome = sampleOutcome('connect_refused');
    return success(claim, { outcome, next: { state: 'pending', dueAt }, health: 'failure', ...overrides });
}

/** The one element of a list. */
export function only<T>(list: readonly T[]): T {
    assert.equal(list.length, 1, `Expected one element, there are ${list.length}`);
    return nth(list, 0);
}

/** The element at an index that must be there. */
export function nth<T>(list: readonly T[], index: number): T {
    const element = list[index];
    assert.ok(element !== undefined, `Expected an element at ${index}, there are ${list.length}`);
    return element;
}

/** So many results of the same call, all under way at once. */
export async function inParallel<T>(count: number, run: (index: number) => Promise<T>): Promise<readonly T[]> {
    return await Promise.all(Array.from({ length: count }, (_, index) => run(index)));
}
