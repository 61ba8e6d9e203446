import Joi from 'joi';
import type { DeliveryQuery, DeliveryState } from './store.ts';

const STATES: readonly DeliveryState[] = ['pending', 'queued', 'sending', 'delivered', 'exhausted', 'cancelled'];

/** Most deliveries of one answer. */
const MOST = 1000;
const DEFAULT_LIMIT = 100;

/** What deliveries can be asked by; ids are texts, and one that names nothing finds nothing. */
export const deliveryQuerySchema: Joi.ObjectSchema<DeliveryQuery> = Joi.object<DeliveryQuery, true>({
    state: Joi.string().valid(...STATES),
    exporterId: Joi.string(),
    after: Joi.string(),
    limit: Joi.number().integer().min(1).max(MOST).default(DEFAULT_LIMIT),
})
    .label('query')
    .default({ limit: DEFAULT_LIMIT });
