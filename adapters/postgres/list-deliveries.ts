import type { Executor } from '../../lib/executor.ts';
import type { Delivery, DeliveryQuery } from '../../lib/webhooks/store.ts';
import { STAGES } from './statements/deliveries.ts';
import { isUuid } from './uuid.ts';
import { DELIVERY_COLUMNS, type DeliveryRow, deliveryFromRow } from './webhook-rows.ts';

/** As `DeliveryStore.list` says. An id that is no UUID names nothing, so nothing is found. */
export async function listDeliveries(db: Executor, { state, exporterId, after, limit }: DeliveryQuery): Promise<readonly Delivery[]> {
    if (![exporterId, after].every((id) => id === undefined || isUuid(id))) {
        return [];
    }

    const values: unknown[] = [limit];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const conditions = [
        ...(state === undefined ? [] : [`d.stage = '${STAGES[state]}'`, `d.state = ${parameter(state)}`]),
        ...(exporterId === undefined ? [] : [`d.exporter_id = ${parameter(exporterId)}`]),
        ...(after === undefined ? [] : [`d.seq < (select x.seq from scanwire.deliveries x where x.id = ${parameter(after)})`]),
    ];
    const { rows } = await db.query<DeliveryRow>(
        `select ${DELIVERY_COLUMNS}
        from (select * from scanwire.deliveries d ${where(conditions)} order by d.seq desc limit $1) d
        join scanwire.events v on v.id = d.event_id
        left join scanwire.exporters e on e.id = d.exporter_id
        order by d.seq desc`,
        values,
    );
    return rows.map(deliveryFromRow);
}

function where(conditions: readonly string[]): string {
    return conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`;
}
