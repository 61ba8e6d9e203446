import Joi from 'joi';
import { FIELD_SCHEMAS } from '../../lib/inventory/fields.ts';
import { newKeySchema, scopesSchema, workspacesSchema } from '../../lib/keys/limits.ts';
import { DEFAULT_SCOPES } from '../../lib/keys/scopes.ts';
import { nameSchema } from '../../lib/schema-validation.ts';
import { byId, flag, id, nullableDate, yes } from './field-schemas.ts';
import type { OperationSchemas } from './operation-schemas.ts';
import type { OperationName } from './operations.ts';

const { time: date, text } = FIELD_SCHEMAS;

const revealedKeySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    name: text,
    key: id().description('The key itself, for the header `token`').example('scw_QfO4IXtQ…'),
}).label('RevealedApiKey');

const keySummarySchema: Joi.ObjectSchema = Joi.object({
    id: id(),
    name: text,
    start: id().description('First characters of the key'),
    revealable: flag().description('Whether the key can be shown again'),
    scopes: scopesSchema.required().description('What the key may do'),
    workspaces: workspacesSchema.required().allow(null).description('Ids of the only workspaces that it sees; null for all'),
    createdAt: date,
    expiresAt: nullableDate().description('From when on it is refused; null for never'),
    expired: flag(),
    lastUsedAt: nullableDate().description('Exact to a minute'),
    revokedAt: nullableDate(),
}).label('ApiKey');

type KeyOperation = Extract<OperationName, `${string}Key` | `${string}Keys`>;

/** The schemas of the operations on keys of the REST API. */
export const keySchemas: Readonly<Record<KeyOperation, OperationSchemas>> = {
    createKey: {
        description: 'Makes a key of the REST API and shows it',
        payload: Joi.object({
            name: nameSchema.trim().required().description('Need not be unique'),
            scopes: scopesSchema.min(1).description(`What the key may do; ${DEFAULT_SCOPES.join(', ')} when nothing is said`),
            workspaces: newKeySchema.extract('workspaces').description('Ids of the only workspaces that it sees; all when nothing is said'),
            expiresAt: newKeySchema.extract('expiresAt').description('From when on it is refused; never when nothing is said'),
        }),
        response: revealedKeySchema,
    },
    listKeys: { description: 'All keys, revoked ones included, oldest first', response: Joi.array().items(keySummarySchema) },
    revealKey: { description: 'Shows a key again', params: byId, response: revealedKeySchema },
    revokeKey: { description: 'Refuses a key from now on, for good', params: byId, response: Joi.object({ id: id(), revoked: yes() }) },
};
