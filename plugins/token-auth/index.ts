import type { NamedPlugin, Server } from '@hapi/hapi';
import { checked } from '../../lib/checked.ts';
import { type ApiKeys, apiKeys } from '../../lib/keys/api-keys.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';
import { VERSION } from '../../lib/version.ts';
import { optionsSchema, type TokenAuthOptions } from './options.ts';
import { tokenScheme } from './scheme.ts';

export type { ApiKeySummary, RevealedApiKey } from '../../lib/keys/api-keys.ts';
export type { TokenAuthOptions } from './options.ts';
export { simulate } from './simulate.ts';
export type { TokenAuth, TokenAuthRefs, TokenCredentials } from './types.ts';

/** Registers the scheme `token` and a strategy of it, and offers the making, listing, showing and revoking of keys. */
export const plugin: NamedPlugin<TokenAuthOptions> = {
    name: 'token-auth',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },

    register(server, options) {
        const { strategy = 'token', ...settings } = checked(optionsSchema, options, {
            subject: 'token-auth options',
            code: 'MISCONFIGURED',
        });
        const keys = apiKeys(settings);

        server.auth.scheme('token', tokenScheme(keys));
        server.auth.strategy(strategy, 'token');
        exposeKeys(server, keys);
        server.ext('onPreStart', () => refuseUnknownSealingKey(server, keys));
    },
};

function exposeKeys(server: Server, { create, list, reveal, revoke }: ApiKeys): void {
    server.expose({ create, list, reveal, revoke });
}

/** A key ring that lacks a key can never work; a store that is down now may be up by the first request. */
async function refuseUnknownSealingKey(server: Server, keys: ApiKeys): Promise<void> {
    try {
        await keys.checkSealing();
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'MISCONFIGURED') {
            throw error;
        }

        server.log(['token-auth', 'error'], error as Error);
    }
}
