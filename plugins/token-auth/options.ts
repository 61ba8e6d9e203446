import Joi from 'joi';
import { objectWith } from '../../lib/checked.ts';
import type { Clock } from '../../lib/clock.ts';
import type { KeyRing } from '../../lib/keys/key-ring.ts';
import type { ApiKeyStore } from '../../lib/keys/store.ts';

/** Options of the plugin. */
export interface TokenAuthOptions {
    /** Where the keys are. */
    readonly store: ApiKeyStore;
    /** Seals the keys at rest; required unless `revealable` is false. */
    readonly keyRing?: KeyRing | undefined;
    /** Whether a key can be shown again after it was made. Default true. */
    readonly revealable?: boolean | undefined;
    /** Whether keys of another form, issued elsewhere and known to the store by digest, are accepted too. Default false. */
    readonly acceptForeignKeys?: boolean | undefined;
    /** Name of the strategy that is registered. Default `token`. */
    readonly strategy?: string | undefined;
    /** The time now. Default: the clock of the machine. */
    readonly clock?: Clock | undefined;
}

/** Checks the options and fills in their defaults. */
export const optionsSchema: Joi.ObjectSchema<TokenAuthOptions> = Joi.object<TokenAuthOptions, true>({
    store: objectWith<ApiKeyStore>('insert', 'findByDigest', 'get', 'list', 'revoke', 'touch').required(),
    keyRing: objectWith<KeyRing>('seal', 'open').when('revealable', { is: false, otherwise: Joi.required() }),
    revealable: Joi.boolean().default(true),
    acceptForeignKeys: Joi.boolean().default(false),
    strategy: Joi.string().default('token'),
    clock: Joi.function(),
}).required();
