import Joi from 'joi';
import { type ApiKeysSettings, apiKeysSettings } from '../../lib/keys/api-keys.ts';

/** Options of the plugin. */
export interface TokenAuthOptions extends ApiKeysSettings {
    /** Name of the strategy that is registered. Default `token`. */
    readonly strategy?: string | undefined;
}

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<TokenAuthOptions & { readonly strategy: string }> = Joi.object({
    ...apiKeysSettings,
    strategy: Joi.string().default('token'),
}).required();
