import { randomUUID } from 'node:crypto';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import type { Acceptance, Accepted, Addressees, StoredEvent } from '../../lib/webhooks/store.ts';
import type { DeliveryRow, ExporterRow, WebhookState } from './webhook-state.ts';

/** As `DeliveryStore.accept` says. */
export function accept(state: WebhookState, acceptances: readonly Acceptance[]): readonly Accepted[] {
    const addressed = acceptances.map(({ addressees }) => findAddressees(state, addressees));
    const ids = new Set(acceptances.map(({ event }) => event.id));
    if (ids.size < acceptances.length || [...ids].some((id) => state.events.has(id))) {
        throw new ScanwireError('CONFLICT', 'an event with this id was accepted before');
    }

    return acceptances.map((acceptance, place) => {
        const event = structuredClone(acceptance.event);
        const single = 'exporterId' in acceptance.addressees;
        const rows = (addressed[place] ?? []).map((exporter) => newRow(state, event, exporter, single));
        state.events.set(event.id, event);
        return { eventId: event.id, deliveries: rows.map(({ id }) => id) };
    });
}

function findAddressees(state: WebhookState, addressees: Addressees): readonly ExporterRow[] {
    if ('types' in addressees) {
        return [...state.exporters.values()].filter(({ state, type }) => state === 'running' && addressees.types.includes(type));
    }

    const exporter = state.exporters.get(addressees.exporterId);
    if (exporter === undefined) {
        throw new ScanwireError('NOT_FOUND', 'Unknown exporter');
    }
    return [exporter];
}

function newRow(state: WebhookState, event: StoredEvent, exporter: ExporterRow, single: boolean): DeliveryRow {
    const row: DeliveryRow = {
        id: randomUUID(),
        seq: state.deliveries.size,
        event,
        exporterId: exporter.id,
        collector: exporter.collector,
        state: 'pending',
        priority: single ? 0 : 1,
        attempts: 0,
        round: 0,
        dueAt: event.createdAt,
        queuedAt: null,
        finishedAt: null,
        claim: null,
        lastCode: null,
        history: [],
    };
    state.deliveries.set(row.id, row);
    state.unfinished.add(row);
    return row;
}
