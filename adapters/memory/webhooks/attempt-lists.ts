import {
    type AttemptFilter,
    type AttemptStore,
    attemptId,
    attemptOf,
    type ListedAttempt,
} from '../../../lib/webhooks/deliveries/attempt-lists.ts';
import { chosenBy } from './delivery-lists.ts';
import type { DeliveryRow, WebhookState } from './webhook-state.ts';

/** Attempts of the state that have ended. */
export function attemptLists(state: WebhookState): AttemptStore {
    return {
        list: async ({ limit, ...filter }) => structuredClone(chosen(state, filter).slice(0, limit)),
        count: async (filter, max) => Math.min(chosen(state, filter).length, max),
    };
}

function chosen(state: WebhookState, { deliveryId, since, until, outcome, after, ...ofDelivery }: AttemptFilter): readonly ListedAttempt[] {
    const last = after === undefined ? undefined : positionOf(state, after);
    return chosenBy(state, ofDelivery)
        .filter(({ id, seq }) => (deliveryId ?? id) === id && (last === undefined || seq <= last.seq))
        .toReversed()
        .flatMap((row) => listed(row).filter(({ number }) => last === undefined || row.seq < last.seq || number < last.number))
        .filter(
            (attempt) =>
                (since ?? attempt.startedAt) <= attempt.startedAt &&
                (until === undefined || attempt.startedAt < until) &&
                (outcome ?? attempt.outcome?.code) === attempt.outcome?.code,
        );
}

function positionOf({ deliveries }: WebhookState, after: string): { readonly seq: number; readonly number: number } {
    const last = attemptOf(after);
    const seq = last === null ? undefined : deliveries.get(last.deliveryId)?.seq;
    return { seq: seq ?? -1, number: last?.number ?? 0 };
}

/** The last one first. */
function listed({ id: deliveryId, event, exporterId, history }: DeliveryRow): readonly ListedAttempt[] {
    return history
        .toReversed()
        .flatMap(({ token: _, lost: __, ...attempt }) =>
            attempt.outcome === null
                ? []
                : [{ id: attemptId(deliveryId, attempt.number), ...attempt, deliveryId, eventId: event.id, kind: event.kind, exporterId }],
        );
}
