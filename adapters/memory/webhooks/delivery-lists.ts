import type { SliceCounts, SliceOptions } from '../../../lib/webhooks/deliveries/activity.ts';
import type { DeliveryFilter, DeliveryQuery } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { hasEnded } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { asDelivery, type DeliveryRow, type WebhookState } from './webhook-state.ts';

/** The newest deliveries that a query asks for. */
export function list(state: WebhookState, { limit, ...filter }: DeliveryQuery): readonly Delivery[] {
    return chosenBy(state, filter)
        .reverse()
        .slice(0, limit)
        .map((row) => asDelivery(state, row));
}

/** First to last. */
export function chosenBy(
    state: WebhookState,
    { exporterId, exporterIds, kind, eventId, since, until, outcome, after, ...asked }: DeliveryFilter,
): DeliveryRow[] {
    const below = after === undefined ? Number.POSITIVE_INFINITY : (state.deliveries.get(after)?.seq ?? -1);
    return [...state.deliveries.values()].filter((row) => {
        const { event } = row;
        const ofEvent = (kind ?? event.kind) === event.kind && (eventId ?? event.id) === event.id;
        const inTime = (since ?? event.createdAt) <= event.createdAt && (until === undefined || event.createdAt < until);
        const ofState = (asked.state ?? row.state) === row.state && (outcome ?? row.lastCode) === row.lastCode;
        const toThem = (exporterId ?? row.exporterId) === row.exporterId && exporterIds?.includes(row.exporterId) !== false;
        return ofEvent && inTime && ofState && toThem && row.seq < below;
    });
}

/** As a store that would have to count them one by one, but for those that have ended. */
export function count(rows: readonly DeliveryRow[], isKept: boolean, max: number): number {
    const countedOneByOne = isKept ? rows.filter((row) => !hasEnded(row.state)) : rows;
    return countedOneByOne.length < max ? rows.length : max;
}

/** What became of the deliveries between two times. */
export function sliceOf(state: WebhookState, since: Date, until: Date, { max, ...filter }: SliceOptions): SliceCounts {
    const rows = chosenBy(state, { ...filter, since, until }).slice(-max);
    const took = rows
        .flatMap((row) => (row.state === 'delivered' && row.finishedAt ? [row.finishedAt.getTime() - row.event.createdAt.getTime()] : []))
        .sort((one, other) => one - other);
    const least = (share: number): number => took[Math.ceil(share * took.length) - 1] as number;
    return {
        deliveries: rows.length,
        delivered: took.length,
        failed: rows.filter(({ lastCode }) => lastCode !== null && lastCode !== 'delivered').length,
        latency: took.length === 0 ? null : { p50: least(0.5), p95: least(0.95) },
    };
}
