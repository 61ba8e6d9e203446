import type { Acceptance, DeliveryStore, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { HandOutOptions } from '../../../lib/webhooks/dispatching/reservations.ts';
import type { NewEvent, StoredEvent } from '../../../lib/webhooks/events/new-event.ts';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import type { Trace } from '../../../lib/webhooks/observing/trace-store.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { handOut } from './delivery-transitions.ts';
import { roomFor } from './dispatch.ts';
import { turnsOf } from './order-keys.ts';
import { type DeliveryRow, type ExporterRow, isSelective, takesEvents, type WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.accept` says. */
export function accept(
    state: WebhookState,
    newEvents: readonly NewEvent[],
    { tx, handOut, revision = state.revision }: NonNullable<Parameters<DeliveryStore['accept']>[1]>,
): readonly Acceptance[] {
    if (tx !== undefined) {
        throw storeRefusals.noTransactions();
    }

    if (revision !== state.revision) {
        throw storeRefusals.subscribersChanged();
    }

    const repeated = newEvents.map((newEvent) => state.keys.get(keyOf(newEvent) ?? '') ?? null);
    if (repeated.some((known, index) => known !== null && known.digest !== newEvents[index]?.idempotency?.digest)) {
        throw storeRefusals.keyTaken();
    }

    const addressed = newEvents.map((newEvent) => findRecipients(state, newEvent));
    const ids = new Set(newEvents.map(({ event }) => event.id));
    if (ids.size < newEvents.length || [...ids].some((id) => state.events.has(id))) {
        throw storeRefusals.eventExists();
    }

    return newEvents.map((newEvent, index) => {
        const known = repeated[index];
        if (known != null) {
            return { eventId: known.eventId, deliveries: known.deliveries, handedOut: [], leftFor: [] };
        }

        const event = { ...structuredClone(newEvent.event), createdAt: state.clock() };
        const singleAttempt = 'exporterId' in newEvent.recipients;
        const orderKey = singleAttempt ? null : (newEvent.orderKey ?? null);
        const rows = (addressed[index] ?? []).map(([exporter, message]) =>
            newRow(state, { event, orderKey, singleAttempt }, exporter, message),
        );
        state.events.set(event.id, event);
        const deliveries = rows.map(({ id }) => id);
        if (newEvent.traceparent !== undefined) {
            keepTraces(state, [{ eventId: event.id, traceparent: newEvent.traceparent }]);
        }
        const key = keyOf(newEvent);
        if (key !== null) {
            state.keys.set(key, { eventId: event.id, deliveries, digest: newEvent.idempotency?.digest as string });
        }
        const handedOut = handOut === undefined || singleAttempt ? [] : handedOutAtOnce(state, rows, handOut);
        const leftFor = rows.filter(({ state: now }) => now === 'pending').map(({ exporterId }) => exporterId);
        return { eventId: event.id, deliveries, handedOut, leftFor };
    });
}

/** The first trace of an event stays. */
export function keepTraces(state: WebhookState, traces: readonly Trace[]): void {
    for (const { eventId, traceparent } of traces) {
        if (!state.traces.has(eventId)) {
            state.traces.set(eventId, { traceparent, keptAt: state.clock() });
        }
    }
}

function handedOutAtOnce(state: WebhookState, rows: readonly DeliveryRow[], options: Required<HandOutOptions>): readonly HandedOut[] {
    const waiting = rows.filter(({ state: now }) => now === 'pending');
    return waiting.flatMap((row) => {
        if (!turnsOf(state)(row)) {
            return [];
        }
        // Not yet among those that wait, before which nothing else may go.
        state.active.delete(row);
        const room = roomFor(state, state.exporters.get(row.exporterId) as ExporterRow, options);
        state.active.add(row);
        return room > 0 ? [handOut(state, row, state.clock(), options.beginWithin)] : [];
    });
}

function keyOf({ owner = null, idempotency }: NewEvent): string | null {
    return idempotency === undefined ? null : JSON.stringify([owner, idempotency.key]);
}

function findRecipients(
    state: WebhookState,
    { recipients, owner = null }: NewEvent,
): readonly (readonly [ExporterRow, FormattedMessage | null])[] {
    if ('types' in recipients) {
        const subscribers = new Map(recipients.subscribers?.map(({ exporterId, message }) => [exporterId, message]));
        return [...state.exporters.values()]
            .filter(takesEvents)
            .filter((row) => row.owner === null || row.owner === owner)
            .filter((row) => subscribers.has(row.id) || (!isSelective(row) && recipients.types.includes(row.type)))
            .map((row) => [row, subscribers.get(row.id) ?? null]);
    }

    const exporter = state.exporters.get(recipients.exporterId);
    if (exporter === undefined) {
        throw storeRefusals.unknownExporter();
    }
    return [[exporter, recipients.message ?? null]];
}

function newRow(
    state: WebhookState,
    { event, orderKey, singleAttempt }: { readonly event: StoredEvent; readonly orderKey: string | null; readonly singleAttempt: boolean },
    exporter: ExporterRow,
    message: FormattedMessage | null,
): DeliveryRow {
    const isHeld = !singleAttempt && exporter.state !== 'running';
    const row: DeliveryRow = {
        id: state.newId(),
        seq: state.numbered,
        event,
        orderKey: exporter.ordered ? orderKey : null,
        message: structuredClone(message),
        exporterId: exporter.id,
        collector: exporter.collector,
        state: isHeld ? 'held' : 'pending',
        priority: singleAttempt ? 0 : 1,
        attempts: 0,
        attemptsSinceReplay: 0,
        faults: 0,
        expiredClaims: 0,
        dueAt: event.createdAt,
        queuedAt: null,
        reservation: null,
        takenBack: false,
        finishedAt: null,
        claim: null,
        lastCode: null,
        history: [],
        responses: new Map(),
    };
    state.numbered += 1;
    state.deliveries.set(row.id, row);
    if (!isHeld) {
        state.active.add(row);
    }
    if (!isHeld && row.orderKey !== null) {
        state.inOrder.add(row);
    }
    return row;
}
