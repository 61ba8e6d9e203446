import { EVENT_MARGIN, type RetentionStore } from '../../../lib/webhooks/deliveries/retention.ts';
import { type DeliveryRow, later, type WebhookState } from './webhook-state.ts';

/** Retention of the state. A turn is one step. */
export function retentionStore(state: WebhookState): RetentionStore {
    let begun: Date | null = null;
    return {
        async begin(every) {
            const now = state.clock();
            const isDue = begun === null || begun <= later(now, -every) || begun > now;
            begun = isDue ? now : begun;
            return isDue;
        },

        async *expire(keepFor) {
            const before = later(state.clock(), -keepFor);
            expireReplays(state, before);
            expireTraces(state, later(before, -EVENT_MARGIN));
            yield { deliveries: expireDeliveries(state, before), events: expireEvents(state, later(before, -EVENT_MARGIN)) };
        },
    };
}

function expireDeliveries(state: WebhookState, before: Date): number {
    const expired = [...state.deliveries.values()].filter(
        (row) => row.event.createdAt < before && hasEndedBefore(row, before) && !state.inOrder.has(row),
    );
    for (const { id } of expired) {
        state.deliveries.delete(id);
    }
    return expired.length;
}

function hasEndedBefore({ state, finishedAt }: DeliveryRow, before: Date): boolean {
    return state === 'held' || (finishedAt !== null && finishedAt < before);
}

function expireReplays({ replays }: WebhookState, before: Date): void {
    for (const [id, { replay }] of replays) {
        if (replay.finishedAt !== null && replay.finishedAt < before) {
            replays.delete(id);
        }
    }
}

function expireTraces(state: WebhookState, before: Date): void {
    for (const [eventId, { keptAt }] of state.traces) {
        if (keptAt < before) {
            state.traces.delete(eventId);
        }
    }
}

function expireEvents(state: WebhookState, before: Date): number {
    const kept = new Set([...state.deliveries.values()].map(({ event }) => event.id));
    const expired = [...state.events.values()].filter(({ id, createdAt }) => createdAt < before && !kept.has(id));
    for (const { id } of expired) {
        state.events.delete(id);
        state.erased.delete(id);
    }
    for (const [key, { eventId }] of state.keys) {
        if (!state.events.has(eventId)) {
            state.keys.delete(key);
        }
    }
    return expired.length;
}
