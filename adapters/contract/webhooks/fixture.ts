import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { checked } from '../../../lib/schema-validation.ts';
import type { DeliveryQuery } from '../../../lib/webhooks/deliveries/deliveries.ts';
import type {
    Acceptance,
    Claim,
    Delivery,
    DeliveryStore,
    DispatchOptions,
    HandedOut,
    RecordedOutcome,
} from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeploymentSettings } from '../../../lib/webhooks/deployment-settings.ts';
import type { NewEvent, Recipients } from '../../../lib/webhooks/events/new-event.ts';
import { newExporter, newExporterSchema, type StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterPatch } from '../../../lib/webhooks/exporters/exporter-patch.ts';
import type { PlainSetting } from '../../../lib/webhooks/exporters/plain-settings.ts';
import type { BreakerRules } from '../../../lib/webhooks/outcomes/breaker.ts';
import type { Outcome, OutcomeCode } from '../../../lib/webhooks/outcomes/outcome.ts';
import { assertFields, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import type { HostTransaction, WebhookStores } from './stores.ts';

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

/** Something that a plain setting can be and is not by default. */
export function unlikeDefault(setting: PlainSetting): unknown {
    switch (setting.as) {
        case 'text':
            return 'Ü"\\🦉';
        case 'names':
            return ['idr_*', 'other'];
        case 'number':
            return setting.max;
        case 'flag':
            return setting.byDefault === false;
        case 'choice':
            return setting.of.find((choice) => choice !== setting.byDefault);
        case 'choices':
            return setting.of.toReversed();
        case 'json':
            return { all: [] };
    }
}

/** An event to publish. */
export function sampleEvent(overrides: Partial<NewEvent['event']> = {}): NewEvent['event'] {
    return { id: randomUUID(), kind: 'idr_investigation_created', body: '{"title":"x"}', ...overrides };
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

/** The event for every running exporter of the type `investigation`. */
export function forAll(event: NewEvent['event']): NewEvent {
    return { event, recipients: { types: ['investigation'] } };
}

/** What an outcome says of the claim that it was made under. */
export type Holder = Pick<Claim, 'deliveryId' | 'token'> & { readonly exporter: Pick<StoredExporter, 'id'> };

/** Who begins under the claim that a delivery was handed out with, which must have one. */
export function holderOf({ deliveryId, exporterId, reservation }: HandedOut): Holder {
    const { token } = present(reservation, 'its claim');
    return { deliveryId, token, exporter: { id: exporterId } };
}

/** The outcome of the claim: delivered, unless `overrides` says otherwise. */
export function success(claim: Holder, overrides: Partial<RecordedOutcome> = {}): RecordedOutcome {
    return {
        deliveryId: claim.deliveryId,
        exporterId: claim.exporter.id,
        token: claim.token,
        begunAt: null,
        outcome: sampleOutcome('delivered'),
        next: { state: 'delivered' },
        health: 'success',
        pause: null,
        stopReason: null,
        ...overrides,
    };
}

/** The outcome of a claim that failed and is tried again after so many milliseconds. */
export function failure(claim: Holder, delay: number, overrides: Partial<RecordedOutcome> = {}): RecordedOutcome {
    const outcome = sampleOutcome('connect_refused');
    return success(claim, { outcome, next: { state: 'pending', delay }, health: 'failure', ...overrides });
}

/** What a host declares. */
export const SETTINGS: DeploymentSettings = {
    vendor: 'Acme',
    kinds: ['scan_finished'],
    window: 50,
    breakerAfter: 10,
    stopAfter: 432_000_000,
    maxBodyBytes: 1_048_576,
    attemptTimeout: 15_000,
    egress: { allow: ['10.0.0.0/8', 'siem.example.internal'] },
    queue: 'Redis',
    prefix: '{scanwire:x}',
};

/** A breaker that opens at the third failure. */
export const RULES: BreakerRules = { after: 3, firstProbe: 1000, maxProbe: 4000, stopAfter: 1_000_000, window: 10 };

/** Milliseconds within which an attempt must begin under a claim that is handed out. */
export const BEGIN_WITHIN = 1_000;

/** What is dispatched, and when. */
type DispatchAt = Partial<DispatchOptions> & { readonly now?: Date };

/** The stores under test, and what the laws do with them. */
export class WebhookBench {
    readonly exporters: WebhookStores['exporters'];
    readonly deliveries: DeliveryStore;
    readonly settings: WebhookStores['settings'];
    readonly #stores: WebhookStores;

    constructor(stores: WebhookStores) {
        this.exporters = stores.exporters;
        this.deliveries = stores.deliveries;
        this.settings = stores.settings;
        this.#stores = stores;
    }

    /** From now on it is so late in the store. */
    async setTime(time: Date): Promise<void> {
        await this.#stores.setTime(time);
    }

    /** Opens a transaction of the application. */
    async begin(): Promise<HostTransaction> {
        return await present(await this.#stores.begin?.(), 'begin()');
    }

    /** Listens for commits, and counts what is heard from then on. */
    async listen(): Promise<{ heard(): number; close(): Promise<void> }> {
        let heard = 0;
        const errors: Error[] = [];
        const hear = (): void => {
            heard += 1;
        };
        const listening = present(
            this.deliveries.listen?.(hear, (error) => errors.push(error)),
            'listen()',
        );
        await listening.ready;
        heard = 0;
        const count = (): number => {
            assert.deepEqual(errors, []);
            return heard;
        };
        return { heard: count, close: () => listening.close() };
    }

    /** Accepts so many events in a transaction of the application, which then ends so. */
    async publishIn(end: 'commit' | 'rollback', count = 1, beforeEnd = (): void => {}): Promise<readonly string[]> {
        const host = await this.begin();
        try {
            const accepted = [];
            for (let number = 0; number < count; number += 1) {
                accepted.push(...(await this.deliveries.accept([forAll(sampleEvent())], { tx: host.tx })));
            }
            await host.tx.query('select 1');
            beforeEnd();
            return accepted.flatMap(({ deliveries }) => deliveries);
        } finally {
            await host[end]();
        }
    }

    /** Inserts an exporter. */
    async addExporter(overrides: Partial<StoredExporter> = {}): Promise<StoredExporter> {
        const exporter = sampleExporter(overrides);
        await this.exporters.insert(exporter);
        return exporter;
    }

    /** Accepts one event per entry of `overrides`, for all exporters, at the beginning; answers with all deliveries, in order. */
    async publish(...overrides: readonly Partial<NewEvent['event']>[]): Promise<readonly string[]> {
        return await this.publishAt(at(0), ...overrides);
    }

    /** The same at another time. */
    async publishAt(time: Date, ...overrides: readonly Partial<NewEvent['event']>[]): Promise<readonly string[]> {
        await this.setTime(time);
        const events = overrides.length === 0 ? [{}] : overrides;
        const accepted = await this.deliveries.accept(events.map((event) => forAll(sampleEvent(event))));
        return accepted.flatMap((one) => one.deliveries);
    }

    /** Accepts so many events, for all exporters unless told otherwise, of which as many as have room are handed out at once. */
    async acceptAtOnce(
        count: number = 1,
        { now = at(0), window = 10 }: DispatchAt = {},
        recipients: Recipients = forAll(sampleEvent()).recipients,
    ): Promise<readonly Acceptance[]> {
        await this.setTime(now);
        const events = Array.from({ length: count }, () => ({ event: sampleEvent(), recipients }));
        return await this.deliveries.accept(events, { handOut: { window, breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN } });
    }

    /** A delivery that was handed out when it was accepted, at the beginning. */
    async handOutOne(): Promise<Holder> {
        const [accepted] = await this.acceptAtOnce();
        return holderOf(only(present(accepted).handedOut));
    }

    /** Claims by statement, for a minute, what was handed out with a claim. */
    async claimHeld({ deliveryId, token: reservation }: Holder): Promise<Claim> {
        const request = { deliveryId, token: randomUUID(), duration: 60_000, reservation };
        return present(only(await this.deliveries.claim([request], null)), 'the claim');
    }

    /** Accepts a `test` for one exporter. */
    async publishTest(exporterId: string, time: Date = at(0)): Promise<string> {
        await this.setTime(time);
        const [accepted] = await this.deliveries.accept([{ event: sampleEvent({ kind: 'test' }), recipients: { exporterId } }]);
        return only(accepted?.deliveries ?? []);
    }

    /** Hands out what is due at the beginning, with a wide window. */
    async dispatch({ now = at(0), ...overrides }: DispatchAt = {}): Promise<readonly HandedOut[]> {
        await this.setTime(now);
        return (await this.deliveries.dispatch({ window: 10, breakerAfter: RULES.after, limit: 1000, ...overrides })).handedOut;
    }

    /** Ids of what a dispatch hands out. */
    async dispatchedIds(overrides: DispatchAt = {}): Promise<readonly string[]> {
        return (await this.dispatch(overrides)).map(({ deliveryId }) => deliveryId);
    }

    /** Claims deliveries that are `queued`, for a minute. */
    async claim(ids: readonly string[], now: Date = at(0), session: string | null = null): Promise<readonly Claim[]> {
        await this.setTime(now);
        const requests = ids.map((deliveryId) => ({ deliveryId, token: randomUUID(), duration: 60_000 }));
        return (await this.deliveries.claim(requests, session)).filter((one) => one !== null);
    }

    /** Dispatches and claims, for a minute: deliveries that are being sent. */
    async claimDue(overrides: DispatchAt = {}): Promise<readonly Claim[]> {
        return await this.claim(await this.dispatchedIds(overrides), overrides.now);
    }

    /** Ids of so many deliveries of one new exporter, all `queued`. */
    async queueMany(count: number): Promise<readonly string[]> {
        await this.addExporter();
        const published = await this.publish(...Array(count).fill({}));
        await this.dispatch();
        return published;
    }

    /** So many deliveries of one new exporter, all being sent. */
    async claimMany(count: number): Promise<readonly Claim[]> {
        const claims = await this.claim(await this.queueMany(count));
        assert.equal(claims.length, count);
        return claims;
    }

    /** A delivery of one new exporter, being sent. */
    async claimOne(): Promise<Claim> {
        return only(await this.claimMany(1));
    }

    /** Records outcomes. */
    async record(outcomes: readonly RecordedOutcome[], now: Date = at(50)): Promise<readonly boolean[]> {
        await this.setTime(now);
        return await this.deliveries.recordOutcomes(outcomes, RULES);
    }

    /** Records a failure of every claim, all in one call, that is tried again at `dueAt`. */
    async fail(claims: readonly Claim[], dueAt: Date, overrides: Partial<RecordedOutcome> = {}): Promise<void> {
        const now = dueAt < at(50) ? dueAt : at(50);
        const delay = dueAt.getTime() - now.getTime();
        await this.record(
            claims.map((one) => failure(one, delay, overrides)),
            now,
        );
    }

    /** Sends one due delivery after the other, each of which fails and is due again at once: from `start` on every 10 ms. */
    async failInTurn(times: number, start: number): Promise<void> {
        for (let time = start; time < start + 10 * times; time += 10) {
            const [claimed] = await this.claimDue({ now: at(time), limit: 1 });
            await this.record([failure(present(claimed), 0)], at(time + 5));
        }
    }

    /** Changes an exporter. */
    async update(id: string, patch: ExporterPatch, now: Date): Promise<StoredExporter> {
        await this.setTime(now);
        return await this.exporters.update(id, patch);
    }

    /** Removes an exporter. */
    async remove(id: string, now: Date): Promise<boolean> {
        await this.setTime(now);
        return await this.exporters.remove(id);
    }

    /** Replays a delivery. */
    async replay(id: string, now: Date): Promise<Delivery> {
        await this.setTime(now);
        return await this.deliveries.replay(id);
    }

    /** Asserts that the delivery is there and has these fields. */
    async assertDelivery(id: string, expected: Partial<Delivery>): Promise<void> {
        assertFields(await this.deliveries.get(id), expected);
    }

    /** The newest deliveries, all that a law makes unless `query` says otherwise. */
    async listed(query: Partial<DeliveryQuery> = {}): Promise<readonly Delivery[]> {
        return await this.deliveries.list({ limit: 100, ...query });
    }
}

/** Laws of the bench as laws of the stores. */
export function onBench(laws: Laws<WebhookBench>): Laws<WebhookStores> {
    const ofStores = Object.entries(laws).map(([name, law]) => [name, (stores: WebhookStores) => law(new WebhookBench(stores))]);
    return Object.fromEntries(ofStores);
}
