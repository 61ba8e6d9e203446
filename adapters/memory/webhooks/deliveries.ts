import { DISCARDABLE, isReplayable } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery, DeliveryStore } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { isCountKept } from '../../../lib/webhooks/deliveries/kept-counts.ts';
import type { Outlook } from '../../../lib/webhooks/dispatching/outlook.ts';
import type { DeliveryContent, EventSummary } from '../../../lib/webhooks/events/new-event.ts';
import type { FormattedMessage, MessageStore } from '../../../lib/webhooks/messages/formatted-message.ts';
import type { TraceStore } from '../../../lib/webhooks/observing/trace-store.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { accept, keepTraces } from './acceptance.ts';
import { attemptLists } from './attempt-lists.ts';
import { claim, nameBegun, sweep } from './claims.ts';
import { chosenBy, count, list, sliceOf } from './delivery-lists.ts';
import { end, restartSchedule, unendedOf } from './delivery-transitions.ts';
import { dispatch } from './dispatch.ts';
import { recordOutcomes, responseStore } from './outcomes.ts';
import { replayStore } from './replays.ts';
import { retentionStore } from './retention.ts';
import { asDelivery, later, type WebhookState } from './webhook-state.ts';

/** Events, deliveries and attempts of the state. */
export function deliveryStore(state: WebhookState): DeliveryStore {
    return {
        name: 'The memory of this process',
        transactions: false,
        idempotent: true,
        holds: true,
        ordered: true,
        rated: true,
        filtersByExporters: true,
        keepsCounts: true,
        namesSilent: true,
        attemptLists: attemptLists(state),
        replays: replayStore(state),
        retention: retentionStore(state),
        traces: traceStore(state),
        responses: responseStore(state),
        messages: { keep: async (...given) => keepMessage(state, ...given) },
        accept: async (newEvents, options = {}) => accept(state, newEvents, options),
        now: async () => state.clock(),
        dispatch: async (options) => dispatch(state, options),
        sweep: async (options) => sweep(state, options),
        claim: async (requests, session, maxBytes) => claim(state, requests, session, maxBytes),
        recordOutcomes: async (outcomes, rules) => recordOutcomes(state, outcomes, rules),

        async keepAlive(session, duration, { upTo, attempts } = { upTo: null, attempts: [] }, tell) {
            const now = state.clock();
            for (const attempt of attempts) {
                nameBegun(state, attempt, session.id, now);
            }
            state.sessions.set(session.id, { session: structuredClone(session), until: later(now, duration), spokenAt: upTo ?? now });
            tell?.(outlookOf(state));
            return now;
        },

        async sessions({ silent = false } = {}) {
            const now = state.clock();
            const named = [...state.sessions.values()].filter(({ until }) => silent || until > now);
            return named.map(({ session: { id, process, slots, opensUrls = false } }) => ({ id, process, slots: { ...slots }, opensUrls }));
        },

        async endSessions(ids) {
            for (const id of ids) {
                state.sessions.delete(id);
            }
        },

        async get(id) {
            const row = state.deliveries.get(id);
            return row === undefined ? null : asDelivery(state, row);
        },

        async attempts(deliveryId) {
            const history = state.deliveries.get(deliveryId)?.history ?? [];
            return history.map(({ token: _, lost: __, ...attempt }) => structuredClone(attempt));
        },

        content: async (deliveryId) => contentOf(state, deliveryId),
        list: async (query) => list(state, query),
        count: async (filter, max) => count(chosenBy(state, filter), isCountKept(filter), max),
        activity: async (bounds, options) => bounds.slice(1).map((until, index) => sliceOf(state, bounds[index] as Date, until, options)),
        replay: async (id) => replay(state, id),
        discard: async (id) => discard(state, id),
        event: async (id) => summaryOf(state, id),
        erase: async (eventId) => erase(state, eventId),
    };
}

function summaryOf(state: WebhookState, id: string): EventSummary | null {
    const event = state.events.get(id);
    return event === undefined
        ? null
        : structuredClone({ id, kind: event.kind, createdAt: event.createdAt, erasedAt: state.erased.get(id) ?? null });
}

function contentOf(state: WebhookState, deliveryId: string): DeliveryContent | null {
    const row = state.deliveries.get(deliveryId);
    if (row === undefined) {
        return null;
    }
    const { exporterId, event, message } = row;
    return structuredClone({ exporterId, event: { ...event, erasedAt: state.erased.get(event.id) ?? null }, message });
}

function keepMessage(state: WebhookState, ...[deliveryId, message, failure]: Parameters<MessageStore['keep']>): FormattedMessage | null {
    const row = state.deliveries.get(deliveryId);
    if (row?.message && row.message.failure === failure) {
        row.message = structuredClone(message);
    }
    return structuredClone(row?.message ?? null);
}

function erase(state: WebhookState, eventId: string): EventSummary & { readonly ended: number } {
    const event = state.events.get(eventId);
    if (event === undefined) {
        throw storeRefusals.unknownEvent();
    }

    const at = state.clock();
    const holding = [...state.inOrder].filter((row) => row.event.id === eventId && !state.active.has(row));
    const ending = [...unendedOf(state, (row) => row.event.id === eventId), ...holding];
    if (!state.erased.has(eventId)) {
        for (const row of [...state.deliveries.values()].filter(({ event }) => event.id === eventId)) {
            row.message = null;
            row.responses.clear();
        }
        state.erased.set(eventId, at);
        event.body = '';
    }
    for (const row of ending) {
        end(state, row, 'erased', at);
    }
    return { ...(summaryOf(state, eventId) as EventSummary), ended: ending.length };
}

function replay(state: WebhookState, id: string): Delivery {
    const row = state.deliveries.get(id);
    if (row === undefined) {
        throw storeRefusals.unknownDelivery();
    }
    if (state.erased.has(row.event.id)) {
        throw storeRefusals.eventErased();
    }
    if (!state.exporters.has(row.exporterId) || !isReplayable(row)) {
        throw storeRefusals.notReplayable();
    }

    restartSchedule(state, row, state.clock());
    return asDelivery(state, row);
}

function discard(state: WebhookState, id: string): Delivery {
    const row = state.deliveries.get(id);
    if (row === undefined) {
        throw storeRefusals.unknownDelivery();
    }
    if (!DISCARDABLE.includes(row.state)) {
        throw storeRefusals.notDiscardable();
    }

    end(state, row, 'cancelled', state.clock());
    return asDelivery(state, row);
}

function outlookOf(state: WebhookState): Outlook {
    return {
        settings: state.deployment.generation,
        accepted: state.numbered,
        inFlight: [...state.active].some((row) => row.state === 'queued' || row.state === 'sending'),
        replays: [...state.replays.values()].some(({ replay }) => replay.state === 'running'),
        notices: state.notices.length > 0,
    };
}

/** Traces of the state. */
function traceStore(state: WebhookState): TraceStore {
    return {
        keptByAccept: true,
        keep: async (traces) => keepTraces(state, traces),

        async of(eventIds) {
            const found = eventIds.map((eventId) => [eventId, state.traces.get(eventId)?.traceparent] as const);
            return new Map(found.filter((one): one is readonly [string, string] => one[1] !== undefined));
        },
    };
}
