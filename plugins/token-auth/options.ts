import Joi from 'joi';
import { type ApiKeysSettings, apiKeysSettings } from '../../lib/keys/api-keys.ts';
import { mapErrorsSchema } from '../errors.ts';

/** Options of the plugin. */
export interface TokenAuthOptions extends ApiKeysSettings {
    /** Name of the strategy that is registered. Default `token`. */
    readonly strategy?: string | undefined;
    /** Whether every ScanwireError that leaves a handler of the server is answered with its status, as `toBoom` does. Default false. */
    readonly mapErrors?: boolean | undefined;
}

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<TokenAuthOptions & { readonly strategy: string; readonly mapErrors: boolean }> = Joi.object({
    ...apiKeysSettings,
    strategy: Joi.string().default('token'),
    mapErrors: mapErrorsSchema,
}).required();
