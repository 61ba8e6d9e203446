import Joi from 'joi';
import { checked } from '../checked.ts';
import type { WebhooksContext } from './options.ts';
import { type Attempt, DELIVERY_STATES, type Delivery, type DeliveryQuery, storeRefusals } from './store.ts';

/** A delivery with all its attempts, first to last. */
export interface DeliveryHistory extends Delivery {
    readonly history: readonly Attempt[];
}

/** Reads of deliveries, and their replay. */
export interface Deliveries {
    /** Newest first, 100 unless `limit` says otherwise, at most 1,000. @throws ScanwireError `INVALID_INPUT` with the field. */
    list(query?: Partial<DeliveryQuery>): Promise<readonly Delivery[]>;
    /** @throws ScanwireError `NOT_FOUND`. */
    show(id: string): Promise<DeliveryHistory>;
    /** Sends the same bytes under the same message id once more. @throws ScanwireError `NOT_FOUND`, `CONFLICT`. */
    replay(id: string): Promise<Delivery>;
}

/** What deliveries can be asked by; ids are texts, and one that names nothing finds nothing. */
export const deliveryQuerySchema: Joi.ObjectSchema<DeliveryQuery> = Joi.object<DeliveryQuery, true>({
    state: Joi.string().valid(...DELIVERY_STATES),
    exporterId: Joi.string(),
    after: Joi.string(),
    limit: Joi.number().integer().min(1).max(1000).default(100),
})
    .label('query')
    .default();

/** The deliveries of a store. */
export function deliveriesOf({ deliveries: store, dispatcher }: WebhooksContext): Deliveries {
    return {
        async list(query) {
            return store.list(checked(deliveryQuerySchema, query));
        },

        async show(id) {
            const [delivery, history] = await Promise.all([store.get(id), store.attempts(id)]);
            if (delivery === null) {
                throw storeRefusals.unknownDelivery();
            }

            return { ...delivery, history };
        },

        async replay(id) {
            const delivery = await store.replay(id);
            dispatcher.wake();
            return delivery;
        },
    };
}
