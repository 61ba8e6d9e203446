import type { ApiKeys } from '../../lib/keys/api-keys.ts';

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
