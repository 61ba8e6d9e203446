import Boom from '@hapi/boom';
import type { NamedPlugin, ResponseObject, Server, ServerAuthScheme, ServerInjectOptions } from '@hapi/hapi';
import { checked } from '../../lib/checked.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type ApiKeys, apiKeys, DENIAL } from '../../lib/keys/api-keys.ts';
import { VERSION } from '../../lib/version.ts';
import { mapErrors } from '../errors.ts';
import { orUnavailable, type StoreFailure } from '../request.ts';
import { API_KEY_SCHEME } from '../strategy.ts';
import { optionsSchema, type TokenAuthOptions } from './options.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { ApiKeySummary, RevealedApiKey } from '../../lib/keys/api-keys.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { TokenAuthOptions } from './options.ts';

/** Registers the scheme `token` and a strategy of it, and offers the making, listing, showing and revoking of keys. */
export const plugin: NamedPlugin<TokenAuthOptions> = {
    name: 'token-auth',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },

    register(server, options) {
        const {
            strategy,
            mapErrors: mapsErrors,
            ...settings
        } = checked(optionsSchema, options, {
            subject: 'token-auth options',
            code: 'MISCONFIGURED',
        });
        const keys = apiKeys(settings);

        server.auth.scheme('token', tokenScheme(keys));
        server.auth.strategy(strategy, 'token');
        const { create, list, reveal, revoke } = keys;
        server.expose({ create, list, reveal, revoke });
        if (mapsErrors) {
            mapErrors(server);
        }

        server.ext('onPreStart', () => refuseUnknownSealingKey(server, keys));
    },
};

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

/** hapi has the names of headers in lower case, however they were sent. */
const HEADER = 'token';
const DEFAULT_CACHING = 'no-cache';
const UNREACHABLE: StoreFailure = { plugin: 'token-auth', message: 'The store of the API keys cannot be reached now' };

/**
 * The scheme: the header `token` carries an API key. Whatever is wrong with it, the answer is the same 403; a header that
 * was sent twice reaches us joined by a comma and a space, which no key contains.
 */
function tokenScheme(keys: ApiKeys): ServerAuthScheme {
    return () => ({
        api: API_KEY_SCHEME,

        async authenticate(request, h) {
            const key: unknown = request.headers[HEADER];
            const credentials = typeof key === 'string' ? await orUnavailable(request, UNREACHABLE, () => keys.verify(key)) : null;
            return credentials === null ? h.unauthenticated(Boom.forbidden(DENIAL)) : h.authenticated({ credentials: { ...credentials } });
        },

        // What took a key is not for caches, unless route or handler say how long it may be kept; by then hapi has set what it sets else.
        response({ response }, h) {
            const { headers } = response as ResponseObject;
            if ((headers['cache-control'] ?? DEFAULT_CACHING) === DEFAULT_CACHING) {
                headers['cache-control'] = 'no-store';
            }

            return h.continue;
        },
    });
}

const ANYBODY: TokenCredentials = { id: '00000000-0000-4000-8000-000000000000', name: 'simulated' };

/**
 * For tests of an application's own routes: the `auth` of `server.inject` as if a valid key had been sent.
 *
 * @example
 * await server.inject({ url: '/reports', auth: simulate({ name: 'nightly job' }) });
 */
export function simulate(credentials: Partial<TokenCredentials> = {}, strategy = 'token'): NonNullable<ServerInjectOptions['auth']> {
    const simulated: object = { ...ANYBODY, ...credentials };
    return { strategy, credentials: simulated };
}

/** `request.auth.credentials` of a route with the strategy: which key was used. */
export interface TokenCredentials {
    readonly id: string;
    readonly name: string;
}

/**
 * Types the credentials of one route and leaves those of all others alone:
 * `server.route<TokenAuthRefs>({ …, handler: (request) => request.auth.credentials.name })`.
 */
export interface TokenAuthRefs {
    AuthCredentialsExtra: TokenCredentials;
}

/** What `server.plugins['token-auth']` offers. */
export type TokenAuth = Pick<ApiKeys, 'create' | 'list' | 'reveal' | 'revoke'>;

declare module '@hapi/hapi' {
    interface PluginProperties {
        'token-auth': TokenAuth;
    }
}
