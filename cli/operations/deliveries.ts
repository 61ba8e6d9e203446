import type { Delivery, DeliveryState } from '../../lib/webhooks/store.ts';
import { type Operation, operation } from './operation.ts';
import { type ShownAttempt, shownAttempt } from './shown-attempt.ts';

export type ShownDelivery = Omit<Delivery, 'attempts'> & { readonly attempts: readonly ShownAttempt[] };

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

export const showDelivery: Operation<{ id: string }, ShownDelivery> = operation({
    name: 'deliveries.show',
    method: 'GET',
    path: '/deliveries/{id}',
    async run(system, { id }) {
        const delivery = await system.webhooks.deliveries.show(id);
        return { ...delivery, attempts: delivery.attempts.map(shownAttempt) };
    },
});

export const replayDelivery: Operation<{ id: string }, Delivery> = operation({
    name: 'deliveries.replay',
    method: 'POST',
    path: '/deliveries/{id}/replay',
    run: (system, { id }) => system.webhooks.deliveries.replay(id),
});
