import Joi from 'joi';
import { type ApiKeysSettings, apiKeysSettings } from '../../lib/keys/api-keys.ts';
import { mapErrorsSchema } from '../errors.ts';
import { type InstanceOptions, instanceSchema, strategySchema } from '../instance.ts';

/** Options of the plugin. */
export interface TokenAuthOptions extends ApiKeysSettings, InstanceOptions {
    /** Name of the strategy that is registered: by default `token`, that of a named instance the name of the instance. */
    readonly strategy?: string | undefined;
    /** Name of the scheme, which no other scheme of the server may have. Default as for `strategy`. */
    readonly scheme?: string | undefined;
    /** Whether every ScanwireError that leaves a handler of the server is answered with its status, as `toBoom` does. Default false. */
    readonly mapErrors?: boolean | undefined;
}

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<TokenAuthOptions & { readonly mapErrors: boolean }> = Joi.object({
    ...apiKeysSettings,
    strategy: strategySchema,
    scheme: strategySchema,
    instance: instanceSchema,
    mapErrors: mapErrorsSchema,
}).required();
