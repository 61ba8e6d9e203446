import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { Outcome, OutcomeCode } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/**
 * Emitted by the process that has recorded the outcome of an attempt: `failed` is tried again, `exhausted` is not. `poisoned` is emitted by the
 * process that has set the delivery aside, after attempts whose processes ended. Nothing is emitted for what came too late, and nothing twice;
 * what must not be missed is in the rows.
 */
export interface DeliveryEvent extends Pick<Outcome, 'code' | 'status' | 'detail' | 'certificate'> {
    readonly type: (typeof DELIVERY_EVENTS)[number];
    readonly deliveryId: string;
    readonly eventId: string;
    /** Of the event, for example `idr_investigation_created`. */
    readonly kind: string;
    readonly exporterId: string;
    readonly collector: string;
    /** Number of the attempt since the delivery was accepted, from 1. */
    readonly attempt: number;
    /** Whether it has a single attempt and is never retried: a `test`. */
    readonly singleAttempt: boolean;
    /** Milliseconds that the attempt took. */
    readonly duration: number;
    /**
     * Milliseconds from the acceptance of the event to the end of the attempt, with those for which it was `held`; null after an attempt that
     * was `interrupted` or came before a replay, and when it is `poisoned`.
     */
    readonly latency: number | null;
}

/** What became of an exporter: emitted by one process of the deployment, the first that finds it noted in the store. */
export interface ExporterEvent {
    readonly type: (typeof EXPORTER_EVENTS)[number];
    readonly exporterId: string;
    readonly collector: string;
    /** When it was, in the store's time. */
    readonly at: Date;
    /** Failures in a row. */
    readonly failures: number;
    /** Since when it fails or, of one that has recovered, had failed; null when no failure is on record. */
    readonly failingSince: Date | null;
    /** Why it was stopped, else null. */
    readonly reason: string | null;
    /** Of the last outcome, null before the first. */
    readonly code: OutcomeCode | null;
}

export const EXPORTER_EVENTS = ['exporter.failing', 'exporter.stopped', 'exporter.recovered'] as const;

/** What is emitted for an event that was accepted for the first time, by the process that published it. */
export interface AcceptedNotice {
    readonly type: 'event.accepted';
    readonly eventId: string;
    readonly kind: string;
    /** How many exporters want it. */
    readonly deliveries: number;
    /** Whether it is accepted only if a transaction of the application commits, which it has not yet. */
    readonly inTransaction: boolean;
}

/** What is emitted to `onEvent`, a function of the application; it is sent to no receiver. */
export type WebhookEvent = DeliveryEvent | AcceptedNotice | ExporterEvent;

export const DELIVERY_EVENTS = ['delivery.delivered', 'delivery.failed', 'delivery.exhausted', 'delivery.poisoned'] as const;

const EVENT_TYPES = { delivered: 'delivery.delivered', exhausted: 'delivery.exhausted', pending: 'delivery.failed' } as const;

/** What is emitted for an outcome that was recorded. */
export function deliveryEvent(claim: Claim, { outcome, next }: RecordedOutcome): DeliveryEvent {
    const { deliveryId, event, exporter, attempt, attemptSinceReplay, singleAttempt, claimedAt } = claim;
    const { code, status, detail, timings, certificate } = outcome;
    return {
        type: EVENT_TYPES[next.state],
        deliveryId,
        eventId: event.id,
        kind: event.kind,
        exporterId: exporter.id,
        collector: exporter.collector,
        attempt,
        singleAttempt,
        duration: timings.total,
        latency: attempt === attemptSinceReplay ? claimedAt.getTime() - event.createdAt.getTime() + timings.total : null,
        code,
        status,
        detail,
        ...(certificate !== undefined && { certificate }),
    };
}

type EmittingContext = Pick<WebhooksContext, 'deliveries' | 'onEvent' | 'onError'>;

/** Emits an event for each delivery that this process has set aside. So few are that each is read, and a sweep returns no more than ids. */
export async function emitPoisoned(ids: readonly string[], context: EmittingContext): Promise<void> {
    await Promise.all(ids.map((id) => emit(id, context).catch(context.onError)));
}

async function emit(id: string, { deliveries, onEvent }: EmittingContext): Promise<void> {
    const event = await poisonedEvent(id, deliveries);
    if (event !== null) {
        await onEvent(event);
    }
}

/** Null when it is not set aside any more: a success was heard of late, or somebody has replayed it. */
async function poisonedEvent(id: string, deliveries: EmittingContext['deliveries']): Promise<DeliveryEvent | null> {
    const options = { patient: true };
    const [delivery, attempts] = await Promise.all([deliveries.get(id, options), deliveries.attempts(id, options)]);
    const outcome = attempts.at(-1)?.outcome;
    if (delivery?.state !== 'poisoned' || !outcome) {
        return null;
    }

    const { eventId, kind, exporterId, collector } = delivery;
    const { code, status, detail, timings } = outcome;
    return {
        type: 'delivery.poisoned',
        deliveryId: id,
        eventId,
        kind,
        exporterId,
        collector,
        attempt: delivery.attempts,
        singleAttempt: false,
        duration: timings.total,
        latency: null,
        code,
        status,
        detail,
    };
}
