import type { Delivery, DeliveryStore, DispatchOptions, HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { name } from './delivery-model.ts';
import { type Ledger, windowOf } from './ledger.ts';
import { OrderLedger } from './order-ledger.ts';
import { RateLedger } from './rate-ledger.ts';
import type { SlotsOf } from './session-ledger.ts';

/** Keeps account of what is handed out, and says what must not be. */
export class DispatchLedger {
    private readonly rows: Ledger;
    private readonly order: OrderLedger;
    private readonly rate: RateLedger;

    constructor(rows: Ledger) {
        this.rows = rows;
        this.order = new OrderLedger(rows);
        this.rate = new RateLedger(rows);
    }

    /** Rows that were marked queued when they were accepted. */
    async accepted(rows: readonly HandedOut[], store: DeliveryStore): Promise<void> {
        if (this.rows.rate !== null && rows.length > 0) {
            this.rows.violate(`${rows.length} are handed out when they are accepted, although there is a rate of the deployment`);
        }
        await this.order.handedOut(rows, store);
        this.handedOut(rows);
    }

    /** Rows that were marked queued, accepted or dispatched. */
    handedOut(rows: readonly HandedOut[]): void {
        for (const { deliveryId, reservation } of rows) {
            const entry = this.rows.entries.get(deliveryId);
            if (entry === undefined) {
                continue;
            }

            if (entry.ended !== null && !entry.accepted.single) {
                this.rows.violate(`${name(deliveryId)} is handed out after it was ${entry.ended}`);
            }
            entry.queuedAt = this.rows.timeline.now;
            const { generation } = this.rows.sessions;
            const settings = this.rows.exporters.get(entry.accepted.exporterId)?.settings;
            entry.handedOut = reservation === null ? null : { reservation, generation, settings, readBy: null };
            if (reservation !== null && !entry.accepted.single && reservation.attemptSinceReplay !== entry.failures + 1) {
                this.rows.violate(
                    `${name(deliveryId)} is at try ${reservation.attemptSinceReplay} after ${entry.failures} failures of its receiver`,
                );
            }
        }
    }

    /** @param slots Those for slow exporters when it was asked. */
    async dispatched(rows: readonly HandedOut[], options: DispatchOptions, slots: SlotsOf, store: DeliveryStore): Promise<void> {
        const { now } = this.rows.timeline;
        const window = windowOf(options);
        const handedOut = new Set(rows.map(({ deliveryId }) => deliveryId));
        const waiting = this.rows.open().filter(({ accepted, queuedAt }) => queuedAt === null && !handedOut.has(accepted.id));
        if (rows.length === 0 && waiting.length === 0) {
            return;
        }

        this.rows.timeline.note(`queued ${[...handedOut].map(name).join()}`);
        const inFlight = await inFlightOf(store);
        const isBehind = await this.order.behind(
            waiting.map(({ accepted }) => accepted.id),
            store,
        );
        const [least, most] = [this.rate.left(true), this.rate.left()];
        this.rate.handedOut(rows.length);
        const hasRoom = ({ id, exporterId }: { readonly id: string; readonly exporterId: string }): boolean =>
            !isBehind(id) && this.placesOf(exporterId, { window, slots, inFlight }) > 0;
        const left = rows.length < options.limit ? waiting.map(({ accepted }) => accepted).filter(hasRoom) : [];
        if (rows.length < least) {
            for (const { id } of left) {
                this.rows.violate(`${name(id)} is not handed out, although there is room for it`);
            }
        } else if (most > 0) {
            const handedOut = rows.map(({ deliveryId, exporterId }) => ({ id: deliveryId, exporterId }));
            this.rate.usedUp(most, handedOut, { waiting: left, retries: await this.retriesLeft({ window, slots, inFlight }, store) });
        }
        this.checkShares(rows, slots, inFlight);
        this.checkRates(rows);
        await this.order.handedOut(rows, store);
        for (const { deliveryId } of rows) {
            const entry = this.rows.entries.get(deliveryId);
            const model = this.rows.exporters.get(entry?.accepted.exporterId ?? '');
            if (entry === undefined || model === undefined) {
                this.rows.violate(`${name(deliveryId)} is handed out, but nobody accepted it`);
                continue;
            }

            const { single, exporterId } = entry.accepted;
            const room = single ? window : model.room(now, window);
            const flying = inFlight.filter((one) => one.exporterId === exporterId && (one.kind === 'test' || !single)).length;
            if (flying > room) {
                this.rows.violate(`${flying} deliveries are in flight to an exporter that has room for ${room}`);
            }
            const recovered = model.recoveredAt !== null && entry.queuedAt !== null && entry.queuedAt < model.recoveredAt;
            if (now < entry.notBefore && !recovered) {
                this.rows.violate(`${name(deliveryId)} is handed out ${(entry.notBefore - now).toFixed(0)} ms before it is due`);
            }
            entry.queuedAt = now;
        }
    }

    /** How many more of the exporter could be in flight; 0 where its own rate may be what they wait for. */
    private placesOf(exporterId: string, { window, slots, inFlight }: InFlight): number {
        const model = this.rows.exporters.get(exporterId);
        const collector = this.collectorOf(exporterId);
        const flying = inFlight.filter((one) => one.exporterId === exporterId).length;
        const share = Math.max(1, Math.floor(slots(collector) / this.rows.exporters.size));
        const room = Math.min(model?.room(this.rows.timeline.now, window) ?? 0, share);
        const isFull = inFlight.filter((one) => this.collectorOf(one.exporterId) === collector).length >= slots(collector);
        return model?.isLimited === false && !isFull ? Math.max(0, room - flying) : 0;
    }

    /** Retries that are due and that nothing but the rate of the deployment keeps waiting. */
    private async retriesLeft(situation: InFlight, store: DeliveryStore) {
        const { now } = this.rows.timeline;
        const flying = new Set(situation.inFlight.map(({ id }) => id));
        const due = this.rows.open().filter((entry) => {
            const { accepted, failures, notBefore } = entry;
            return failures > 0 && !accepted.single && notBefore < now && !flying.has(accepted.id) && entry.current.length === 0;
        });
        const isBehind = await this.order.behind(
            due.map(({ accepted }) => accepted.id),
            store,
        );
        const hasRetryInFlight = (exporterId: string): boolean =>
            situation.inFlight.some((one) => one.exporterId === exporterId && this.rate.isRetry(one.id));
        // Where slots are few, exporters take turns for them before it is asked what is a retry.
        const isCrowded = (exporterId: string): boolean => {
            const collector = this.collectorOf(exporterId);
            const flying = situation.inFlight.filter((one) => this.collectorOf(one.exporterId) === collector).length;
            return situation.slots(collector) - flying < this.rows.exporters.size;
        };
        return due
            .map(({ accepted: { id, exporterId } }) => ({ id, exporterId, places: this.placesOf(exporterId, situation) }))
            .filter(({ id, exporterId, places }) => places > 0 && !isBehind(id) && !hasRetryInFlight(exporterId) && !isCrowded(exporterId));
    }

    /** Slow exporters have half of the slots of their collector among them, each the same share: who has more gets nothing more. */
    private checkShares(rows: readonly HandedOut[], slots: SlotsOf, inFlight: readonly Delivery[]): void {
        const handedOut = new Map(rows.map((row) => [row.deliveryId, row]));
        for (const collector of new Set([...this.rows.exporters.values()].map(({ settings }) => settings.collector))) {
            const flying = inFlight.filter(({ exporterId }) => {
                return this.collectorOf(exporterId) === collector && this.rows.exporters.get(exporterId)?.slow === true;
            });
            const fresh = flying.filter(({ id }) => handedOut.get(id)?.singleAttempt === false);
            const tests = flying.filter(({ id }) => handedOut.get(id)?.singleAttempt === true);
            if (fresh.length > 0 && flying.length - tests.length > slots(collector)) {
                this.rows.violate(
                    `${flying.length} deliveries are in flight to slow exporters of ${collector}, who share ${slots(collector)}`,
                );
            }
        }
    }

    private checkRates(rows: readonly HandedOut[]): void {
        for (const [exporterId, model] of this.rows.exporters) {
            const count = rows.filter((row) => row.exporterId === exporterId && !row.singleAttempt).length;
            if (!model.allows(count, this.rows.timeline.now)) {
                this.rows.violate(`${count} more deliveries are handed out than the rate of their exporter allows`);
            }
        }
    }

    private collectorOf(exporterId: string): string | undefined {
        return this.rows.exporters.get(exporterId)?.settings.collector;
    }
}

/** What decides whether more can be in flight. */
interface InFlight {
    readonly window: number;
    readonly slots: SlotsOf;
    readonly inFlight: readonly Delivery[];
}

/** How many deliveries of each exporter are in flight. */
async function inFlightOf(store: DeliveryStore): Promise<readonly Delivery[]> {
    const inFlight = await Promise.all((['queued', 'sending'] as const).map((state) => store.list({ state, limit: 1000 })));
    return inFlight.flat();
}
