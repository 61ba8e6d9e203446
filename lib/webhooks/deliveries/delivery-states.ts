import type { Delivery } from './delivery-store.ts';

/**
 * - `pending`: waits for its time (`dueAt`), or for what else dispatch asks: room in its exporter's window, slots, a rate, its order key, a breaker
 *   that lets it through, an exporter that runs and is not paused.
 * - `queued`: its job is, or is about to be, in the queue.
 * - `sending`: an attempt was claimed and its outcome has not been recorded.
 * - `delivered`, `exhausted` (is not tried again; kept for replay), `poisoned` (its attempts seem to end the processes that make them; kept for
 *   replay), `cancelled` (its exporter was removed, or it was discarded), `erased` (the body of its event was erased before it had ended): these
 *   are final. A delivery in one of them has ended.
 * - `held`: was accepted while its exporter was stopped by an outcome. It has not ended, yet waits for nothing but a replay, the removal of its
 *   exporter or the erasure of its event.
 */
export const DELIVERY_STATES = [
    'pending',
    'queued',
    'sending',
    'delivered',
    'exhausted',
    'poisoned',
    'cancelled',
    'erased',
    'held',
] as const;

/** One of {@link DELIVERY_STATES}. */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** States of active deliveries: those that wait to be handed out, or are on their way. A `held` one is not active, and has not ended either. */
export const ACTIVE_STATES = ['pending', 'queued', 'sending'] as const;

/** Whether a delivery was handed out, or an attempt of it was claimed, and has no outcome yet. */
export function isInFlight(state: DeliveryState): boolean {
    return state === 'queued' || state === 'sending';
}

const ENDED: ReadonlySet<DeliveryState> = new Set(['delivered', 'exhausted', 'poisoned', 'cancelled', 'erased']);

/** Whether nothing more comes of a delivery by itself. */
export function hasEnded(state: DeliveryState): boolean {
    return ENDED.has(state);
}

/** Whether a delivery has ended because its attempts failed. */
export function hasFailed(state: DeliveryState): boolean {
    return state === 'exhausted' || state === 'poisoned';
}

/** Whether a delivery has had an attempt, and is tried again by itself. */
export function waitsAgain({ state, attempts }: Pick<Delivery, 'state' | 'attempts'>): boolean {
    return state === 'pending' && attempts > 0;
}

/** States in which a store replays a delivery, however many attempts it has had; see {@link isReplayable} for the others. */
export const REPLAYABLE: readonly DeliveryState[] = ['delivered', 'exhausted', 'poisoned', 'held'];

/** Whether a store replays a delivery: one that was delivered, has failed or is held, or waits and has had an attempt. */
export function isReplayable(delivery: Pick<Delivery, 'state' | 'attempts'>): boolean {
    return REPLAYABLE.includes(delivery.state) || waitsAgain(delivery);
}

/** States of deliveries that a store ends for good when it is asked to. */
export const DISCARDABLE: readonly DeliveryState[] = ['pending', 'exhausted', 'poisoned', 'held'];
