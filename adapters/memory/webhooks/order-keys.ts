import { type DeliveryState, hasFailed, isInFlight } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { DeliveryRow, ExporterRow, WebhookState } from './webhook-state.ts';

/** Before a delivery moves: what has ended comes back into the order when it is replayed, and leaves it when it ends, unless it blocks its key. */
export function keepOrder({ inOrder, exporters }: WebhookState, row: DeliveryRow, next: DeliveryState, isFinal: boolean): void {
    const exporter = exporters.get(row.exporterId);
    const ended = row.state === 'held' || row.finishedAt !== null;
    const holds = hasFailed(next) && exporter !== undefined && holdsKeys(exporter);
    if (next === 'pending' && ended && row.orderKey !== null && exporter?.ordered === true) {
        inOrder.add(row);
    } else if (isFinal && !holds) {
        inOrder.delete(row);
    }
}

/** Whether what fails for good holds what has its order key. */
function holdsKeys({ ordered, afterExhausted }: Pick<StoredExporter, 'ordered' | 'afterExhausted'>): boolean {
    return ordered && afterExhausted === 'hold';
}

/** Once an exporter is not ordered all go that wait; once it holds nothing, what has failed for good holds nothing. */
export function releaseOrder({ inOrder, active }: WebhookState, exporter: ExporterRow): void {
    for (const row of inOrder) {
        if (row.exporterId === exporter.id && (!exporter.ordered || (!holdsKeys(exporter) && !active.has(row)))) {
            inOrder.delete(row);
        }
    }
}

/** Which deliveries have their turn: all but those of whose exporter and key another is in flight, or one that was accepted before is in order. */
export function turnsOf({ inOrder }: Pick<WebhookState, 'inOrder'>): (row: DeliveryRow) => boolean {
    const firsts = new Map<string, DeliveryRow>();
    const flying = new Set<string>();
    for (const row of inOrder) {
        const key = keyOf(row);
        const first = firsts.get(key) ?? row;
        firsts.set(key, row.seq < first.seq ? row : first);
        if (isInFlight(row.state)) {
            flying.add(key);
        }
    }
    return (row) => !inOrder.has(row) || (firsts.get(keyOf(row)) === row && !flying.has(keyOf(row)));
}

function keyOf({ exporterId, orderKey }: DeliveryRow): string {
    return `${exporterId} ${orderKey}`;
}
