import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import { storableText, storableTime } from '../../schema-validation.ts';
import { OUTCOME_CODES } from '../outcomes/outcome.ts';
import type { AttemptFilter, AttemptQuery } from './attempt-lists.ts';
import type { AskedFilter, AskedQuery, DeliveryFilter, DeliveryQuery } from './deliveries.ts';
import { DELIVERY_STATES } from './delivery-states.ts';
import type { DeliveryStore } from './delivery-store.ts';

/** What deliveries can be filtered by. Ids and kinds may be any text that a store keeps; one that names nothing finds nothing. */
const FIELDS = {
    state: Joi.string().valid(...DELIVERY_STATES),
    exporterId: storableText(),
    kind: storableText(),
    eventId: storableText(),
    since: storableTime(),
    until: storableTime(),
    outcome: Joi.string().valid(...OUTCOME_CODES),
    after: storableText(),
};

/** What attempts can be filtered by. */
const ATTEMPT_FIELDS = { ...FIELDS, deliveryId: storableText() };

const LIMIT = Joi.number().integer().min(1).max(1000).default(100);

/** The rules of {@link DeliveryFilter}, but for that of several exporters. */
export const deliveryFilterSchema: Joi.ObjectSchema<AskedFilter> = Joi.object<AskedFilter, true>(FIELDS).label('query').default();

/** The rules of {@link DeliveryQuery}, with their defaults, but for that of several exporters. */
export const deliveryQuerySchema: Joi.ObjectSchema<AskedQuery> = Joi.object<AskedQuery, true>({ ...FIELDS, limit: LIMIT })
    .label('query')
    .default();

/** The rules of {@link AttemptFilter}, but for that of several exporters. */
export const attemptFilterSchema: Joi.ObjectSchema<Omit<AttemptFilter, 'exporterIds'>> = Joi.object<
    Omit<AttemptFilter, 'exporterIds'>,
    true
>(ATTEMPT_FIELDS)
    .label('query')
    .default();

/** The rules of {@link AttemptQuery}, with their defaults, but for that of several exporters. */
export const attemptQuerySchema: Joi.ObjectSchema<Omit<AttemptQuery, 'exporterIds'>> = Joi.object<Omit<AttemptQuery, 'exporterIds'>, true>({
    ...ATTEMPT_FIELDS,
    limit: LIMIT,
})
    .label('query')
    .default();

/*
 * The same with `exporterIds`, which only code of this package sets (the admin console, for an owner's exporters); requests from outside cannot.
 */

/** The rules of {@link DeliveryFilter}. */
export const wholeFilterSchema: Joi.ObjectSchema<DeliveryFilter> = ofSeveral(deliveryFilterSchema);

/** The rules of {@link DeliveryQuery}. */
export const wholeQuerySchema: Joi.ObjectSchema<DeliveryQuery> = ofSeveral(deliveryQuerySchema);

/** The rules of {@link AttemptFilter}. */
export const wholeAttemptFilterSchema: Joi.ObjectSchema<AttemptFilter> = ofSeveral(attemptFilterSchema);

/** The rules of {@link AttemptQuery}. */
export const wholeAttemptQuerySchema: Joi.ObjectSchema<AttemptQuery> = ofSeveral(attemptQuerySchema);

function ofSeveral<Filter extends object>(schema: Joi.ObjectSchema<Omit<Filter, 'exporterIds'>>): Joi.ObjectSchema<Filter> {
    return schema.concat(Joi.object({ exporterIds: Joi.array().items(storableText()) })) as unknown as Joi.ObjectSchema<Filter>;
}

/**
 * Refuses a filter by several exporters where the store does not heed it: such a store would answer with the rows of all exporters.
 *
 * @param what It is looked for, for example `deliveries`.
 * @throws ScanwireError `MISCONFIGURED`, field `exporterIds`.
 */
export function heeded<Filter extends Pick<DeliveryFilter, 'exporterIds'>>(
    filter: Filter,
    { filtersByExporters }: DeliveryStore,
    what: 'deliveries' | 'attempts' = 'deliveries',
): Filter {
    if (filter.exporterIds !== undefined && filtersByExporters !== true) {
        throw new ScanwireError('MISCONFIGURED', `Cannot look for the ${what} of several exporters: the store does not`, {
            field: 'exporterIds',
        });
    }

    return filter;
}
