import type { Delivery, DeliveryState } from '../../lib/webhooks/store.ts';
import type { DeliveryHistory } from '../../lib/webhooks/webhooks.ts';
import { type Operation, operation } from './operation.ts';

export interface DeliveryFilter {
    readonly state?: DeliveryState;
    readonly exporterId?: string;
    readonly after?: string;
    readonly limit?: number;
}

export const listDeliveries: Operation<DeliveryFilter, readonly Delivery[]> = operation({
    name: 'deliveries.list',
    method: 'GET',
    path: '/deliveries',
    run: (system, filter) => system.webhooks.deliveries.list(filter),
});

export const showDelivery: Operation<{ id: string }, DeliveryHistory> = operation({
    name: 'deliveries.show',
    method: 'GET',
    path: '/deliveries/{id}',
    run: (system, { id }) => system.webhooks.deliveries.show(id),
});

export const replayDelivery: Operation<{ id: string }, Delivery> = operation({
    name: 'deliveries.replay',
    method: 'POST',
    path: '/deliveries/{id}/replay',
    run: (system, { id }) => system.webhooks.deliveries.replay(id),
});
