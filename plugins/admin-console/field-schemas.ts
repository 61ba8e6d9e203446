import Joi from 'joi';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';

/* Fields that several nouns have, in what operations take and answer with. */

/** An id, or another text that is not empty. */
export const id = (): Joi.StringSchema => Joi.string().required();

/** A time, or null. */
export const nullableDate = (): Joi.DateSchema => FIELD_SCHEMAS.time.allow(null);

/** A number, or null. */
export const nullableCount = (): Joi.NumberSchema => FIELD_SCHEMAS.count.allow(null);

/** True or false. */
export const flag = (): Joi.BooleanSchema => Joi.boolean().required();

/** True. */
export const yes = (): Joi.BooleanSchema => flag().valid(true);

/** Input of an operation on one of several. */
export const byId: Joi.ObjectSchema = Joi.object({ id: id().description('Id as lists show it') });
