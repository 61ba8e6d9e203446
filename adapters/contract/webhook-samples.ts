import { randomUUID } from 'node:crypto';
import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import type { Outcome, OutcomeCode } from '../../lib/webhooks/outcome.ts';
import type { Acceptance, Claim, Dispatched, DispatchOptions, Settlement, StoredEvent } from '../../lib/webhooks/store.ts';
import type { WebhookStores } from './webhook-stores.ts';

const START = Date.UTC(2026, 10, 21, 9, 30, 0, 123);

/** So many milliseconds after the time at which every law begins. */
export function at(milliseconds: number): Date {
    return new Date(START + milliseconds);
}

export function sampleExporter(given: Partial<StoredExporter> = {}): StoredExporter {
    return {
        id: randomUUID(),
        name: 'siem',
        url: 'https://receiver.example/hook',
        collector: 'default',
        type: 'investigation',
        legacy: false,
        trust: 'strict',
        signatures: ['base64'],
        headerNames: [],
        state: 'running',
        stopReason: null,
        consecutiveFailures: 0,
        createdAt: at(0),
        updatedAt: at(0),
        sealedSecret: 'sealed',
        sealedPreviousSecret: null,
        previousSecretUntil: null,
        sealedHeaders: null,
        schedule: null,
        ...given,
    };
}

export function sampleEvent(given: Partial<StoredEvent> = {}): StoredEvent {
    return { id: randomUUID(), kind: 'idr_investigation_created', body: '{"title":"x"}', createdAt: at(0), ...given };
}

export function sampleOutcome(code: OutcomeCode, given: Partial<Outcome> = {}): Outcome {
    return {
        code,
        status: code === 'delivered' ? 204 : null,
        detail: `it was ${code}`,
        retryAfter: null,
        timings: { dns: 1, connect: 2, tls: null, firstByte: 4, total: 9 },
        address: '192.0.2.7',
        fingerprint: null,
        ...given,
    };
}

/** Inserts an exporter. */
export async function addExporter({ exporters }: WebhookStores, given: Partial<StoredExporter> = {}): Promise<StoredExporter> {
    const exporter = sampleExporter(given);
    await exporters.insert(exporter);
    return exporter;
}

/** Accepts one event per entry of `given` for every exporter of the type `investigation`; answers with all deliveries, in order. */
export async function publish({ deliveries }: WebhookStores, ...given: readonly Partial<StoredEvent>[]): Promise<readonly string[]> {
    const events = given.length === 0 ? [{}] : given;
    const accepted = await deliveries.accept(
        events.map((event): Acceptance => ({ event: sampleEvent(event), addressees: { types: ['investigation'] } })),
    );
    return accepted.flatMap((one) => one.deliveries);
}

/** Accepts a `test` for one exporter. */
export async function publishTest({ deliveries }: WebhookStores, exporterId: string, given: Partial<StoredEvent> = {}): Promise<string> {
    const [accepted] = await deliveries.accept([{ event: sampleEvent({ kind: 'test', ...given }), addressees: { exporterId } }]);
    return only(accepted?.deliveries ?? []);
}

export async function dispatch({ deliveries }: WebhookStores, given: Partial<DispatchOptions> = {}): Promise<readonly Dispatched[]> {
    return await deliveries.dispatch({ now: at(0), window: 10, breakerAfter: 3, limit: 1000, ...given });
}

/** Ids of what a dispatch hands out. */
export async function dispatchedIds(stores: WebhookStores, given: Partial<DispatchOptions> = {}): Promise<readonly string[]> {
    return (await dispatch(stores, given)).map(({ deliveryId }) => deliveryId);
}

/** Claims deliveries that are `queued`, for a minute. */
export async function claim({ deliveries }: WebhookStores, ids: readonly string[], now: Date = at(0)): Promise<readonly Claim[]> {
    const expiresAt = new Date(now.getTime() + 60_000);
    const claims = await deliveries.claim(ids.map((deliveryId) => ({ deliveryId, token: randomUUID(), now, expiresAt })));
    return claims.filter((one) => one !== null);
}

/** Publishes to one new exporter, dispatches and claims: a delivery that is being sent. */
export async function claimOne(stores: WebhookStores, given: Partial<StoredExporter> = {}): Promise<Claim> {
    await addExporter(stores, given);
    await publish(stores);
    return only(await claim(stores, await dispatchedIds(stores)));
}

/** A settlement of the claim: delivered, unless `given` says otherwise. */
export function settlement(claim: Claim, given: Partial<Settlement> = {}): Settlement {
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
        ...given,
    };
}

/** A settlement of the claim that failed and is tried again at `dueAt`. */
export function failure(claim: Claim, dueAt: Date, given: Partial<Settlement> = {}): Settlement {
    const outcome = sampleOutcome('connect_refused');
    return settlement(claim, { outcome, next: { state: 'pending', dueAt }, health: 'failure', ...given });
}

/** The one element of a list. */
export function only<T>(list: readonly T[]): T {
    const [first, ...more] = list;
    if (first === undefined || more.length > 0) {
        throw new Error(`expected one element, there are ${list.length}`);
    }
    return first;
}

/** The element at a place that must be there. */
export function nth<T>(list: readonly T[], place: number): T {
    const element = list[place];
    if (element === undefined) {
        throw new Error(`expected an element at ${place}, there are ${list.length}`);
    }
    return element;
}

/** So many results of the same call, all under way at once. */
export async function inParallel<T>(count: number, run: (place: number) => Promise<T>): Promise<readonly T[]> {
    return await Promise.all(Array.from({ length: count }, (_, place) => run(place)));
}
