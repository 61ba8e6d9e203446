import { type DeliveryState, hasEnded } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { faultDelay } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import { keepOrder } from './order-keys.ts';
import { type AttemptRow, type DeliveryRow, type ExporterRow, later, type WebhookState } from './webhook-state.ts';

/** Moves a delivery to a state; a final one is stamped with `at`. */
export function move(state: WebhookState, row: DeliveryRow, next: DeliveryState, at: Date): void {
    const final = hasEnded(next);
    keepOrder(state, row, next, final);
    row.state = next;
    row.finishedAt = final ? at : null;
    row.reservation = null;
    if (next !== 'sending') {
        row.claim = null;
    }
    if (final) {
        state.active.delete(row);
    } else {
        state.active.add(row);
    }
}

/** Ends the open attempt of a delivery that is `sending` for its holder, who was not heard of again. */
export function interrupt(row: DeliveryRow, at: Date, detail: string): void {
    const attempt = row.history.at(-1);
    if (attempt !== undefined) {
        attempt.finishedAt = at;
        attempt.outcome = interrupted(at.getTime() - attempt.startedAt.getTime(), detail);
        attempt.lost = true;
        row.lastCode = 'interrupted';
    }
}

/** Ends a delivery for good that has not ended, or blocks its order key, or is discarded; an attempt that is being made loses its claim. */
export function end(state: WebhookState, row: DeliveryRow, next: 'cancelled' | 'erased', at: Date): void {
    if (row.state === 'sending') {
        interrupt(row, at, next === 'cancelled' ? INTERRUPTIONS.removed : INTERRUPTIONS.erased);
    }
    move(state, row, next, at);
}

/** The deliveries that have not ended, held ones too. */
export function unendedOf(state: WebhookState, wanted: (row: DeliveryRow) => boolean): readonly DeliveryRow[] {
    return [...state.deliveries.values()].filter((row) => (state.active.has(row) || row.state === 'held') && wanted(row));
}

/** Marks a delivery queued, with a claim for whoever begins within so many milliseconds. */
export function handOut(state: WebhookState, row: DeliveryRow, now: Date, beginWithin: number | undefined): HandedOut {
    const exporter = state.exporters.get(row.exporterId) as ExporterRow;
    row.state = 'queued';
    row.queuedAt = now;
    // What nobody was heard of who may have begun it has to be claimed, so that it is seen if it ends its processes.
    const toBeClaimed = beginWithin === undefined || row.takenBack || row.expiredClaims > 0;
    row.reservation = toBeClaimed ? null : { token: state.newId(), beginBy: now.getTime() + beginWithin };
    const { id: exporterId, collector, generation } = exporter;
    const { generation: settings } = state.deployment;
    return {
        deliveryId: row.id,
        exporterId,
        collector,
        attempt: row.attempts + 1,
        singleAttempt: row.priority === 0,
        reservation: row.reservation && { ...row.reservation, generation, settings, attemptSinceReplay: row.attemptsSinceReplay + 1 },
    };
}

/** Opens the attempt of a delivery that is queued, for the holder of the token. */
export function openAttempt(state: WebhookState, row: DeliveryRow, token: string, startedAt: Date): AttemptRow {
    const attempt = { number: row.attempts + 1, token, startedAt, finishedAt: null, outcome: null, lost: false, late: false };
    row.attempts += 1;
    row.attemptsSinceReplay += 1;
    row.takenBack = false;
    row.history.push(attempt);
    move(state, row, 'sending', startedAt);
    return attempt;
}

/** Due after the back-off for faults of ours. The try is not used up, and what was tried for the first time still is. */
export function retryAfterFault(row: DeliveryRow, now: Date): void {
    row.attemptsSinceReplay -= 1;
    row.faults += 1;
    row.dueAt = later(now, faultDelay(row.faults));
}

/** Restarts the retry schedule of a delivery. */
export function restartSchedule(state: WebhookState, row: DeliveryRow, now: Date): void {
    move(state, row, 'pending', now);
    row.dueAt = now;
    Object.assign(row, { attemptsSinceReplay: 0, faults: 0, expiredClaims: 0 });
    row.priority = row.priority === 0 ? 0 : 1;
}
