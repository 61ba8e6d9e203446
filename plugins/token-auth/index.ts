import Boom from '@hapi/boom';
import type {
    Auth,
    NamedPlugin,
    Request,
    ResponseObject,
    ResponseToolkit,
    Server,
    ServerAuthScheme,
    ServerInjectOptions,
} from '@hapi/hapi';
import { ScanwireError } from '../../lib/errors.ts';
import { whenThere } from '../../lib/eventual.ts';
import { type ApiKeys, apiKeys, DENIAL } from '../../lib/keys/api-keys.ts';
import { UNSCOPED } from '../../lib/keys/scopes.ts';
import { checked } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { mapErrors, orUnavailable, type StoreFailure } from '../errors.ts';
import { inTime } from '../in-time.ts';
import { claimInstance, exposeInstance, type Instances } from '../instance.ts';
import { announcing, logging, logTags } from '../log-and-events.ts';
import { API_KEY_SCHEME, enter, withName } from '../route-authorization.ts';
import { optionsSchema, type TokenAuthOptions } from './options.ts';
import { Refusals } from './refusal-pacing.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export type { ApiKeySummary, RevealedApiKey } from '../../lib/keys/api-keys.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export { redact, type ScanwireEvent } from '../log-and-events.ts';
export type { TokenAuthOptions } from './options.ts';

/** Registers a scheme, `token` by default, and a strategy of it, and offers the making, listing, showing and revoking of keys. */
export const plugin: NamedPlugin<TokenAuthOptions> = {
    name: 'token-auth',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    register(server, options) {
        const checkedOptions = checked(optionsSchema, options, { subject: 'token-auth options', code: 'MISCONFIGURED' });
        const { instance, mapErrors: mapsErrors, ...named } = checkedOptions;
        const { strategy = instance ?? 'token', scheme = instance ?? 'token', ...settings } = named;
        claimInstance(server, 'token-auth', checkedOptions);
        const log = logging(server, 'token-auth', checkedOptions);
        const onEvent = announcing(server, 'token-auth', checkedOptions, log);
        const keys = apiKeys({ ...settings, onEvent, onError: (error) => log('error', error) });

        withName('token-auth', 'scheme', () => server.auth.scheme(scheme, tokenScheme(keys, { instance, scheme })));
        withName('token-auth', 'strategy', () => server.auth.strategy(strategy, scheme));
        const { create, list, reveal, revoke, sealAnew } = keys;
        exposeInstance(server, 'token-auth', checkedOptions, { create, list, reveal, revoke, sealAnew });
        if (mapsErrors) {
            mapErrors(server, 'token-auth');
        }

        server.ext('onPreStart', () => refuseUnknownSealingKey(server, keys, instance));
    },
};

/** A key ring that lacks a key can never work; a store that is down now may be up by the first request. */
async function refuseUnknownSealingKey(server: Server, keys: ApiKeys, instance: string | undefined): Promise<void> {
    try {
        await keys.checkSealing();
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'MISCONFIGURED') {
            throw error;
        }

        server.log([...logTags('token-auth', instance), 'error'], error as Error);
    }
}

/** hapi has the names of headers in lower case, however they were sent. */
const HEADER = 'token';
const DEFAULT_CACHING = 'no-cache';
const UNREACHABLE: StoreFailure = { plugin: 'token-auth', message: 'The store of the API keys cannot be reached now' };

/**
 * The scheme: the header `token` carries an API key. Whatever is wrong with it, the answer is the same 403; a header that
 * was sent twice reaches us joined by a comma and a space, which no key contains.
 *
 * A header that is missing is missing, as with hapi's own schemes, where the route has another strategy to ask or lets anybody in. Where a
 * key is all that a route takes, it is refused like a wrong one.
 */
function tokenScheme(
    keys: ApiKeys,
    { scheme, instance }: { readonly scheme: string; readonly instance: string | undefined },
): ServerAuthScheme {
    const failure = { ...UNREACHABLE, instance };
    const refusals = new Refusals();

    async function refused({ raw }: Request, h: ResponseToolkit): Promise<Auth> {
        const { socket } = raw.req;
        if (!(await refusals.turn(() => !socket.destroyed))) {
            socket.destroy();
        }
        return h.unauthenticated(Boom.forbidden(DENIAL));
    }

    return () => ({
        api: API_KEY_SCHEME,

        authenticate(request, h) {
            const key: unknown = request.headers[HEADER];
            if (!key && isOneOfSeveralWays(request)) {
                return h.unauthenticated(Boom.unauthorized(null, scheme));
            }

            const checked = typeof key === 'string' ? orUnavailable(request, failure, () => inTime(request, () => keys.check(key))) : null;
            return whenThere(checked, (verified) => {
                if (verified === null) {
                    return refused(request, h);
                }

                const { id, name, scopes, workspaces } = verified;
                return whenThere(enter(request, scopes), () =>
                    h.authenticated({ credentials: { id, name, scope: [...scopes], workspaces } as object }),
                );
            });
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

/** Whether a request gets into its route by something else than a key as well. */
function isOneOfSeveralWays({ server, route }: Request): boolean {
    // hapi's types leave it out.
    const { lookup } = server.auth as unknown as { lookup(of: typeof route): { mode: string; strategies: readonly string[] } | false };
    const access = lookup.call(server.auth, route);
    return access !== false && (access.mode !== 'required' || access.strategies.length > 1);
}

const ANYBODY: TokenCredentials = { id: '00000000-0000-4000-8000-000000000000', name: 'simulated', scope: [...UNSCOPED], workspaces: null };

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

/**
 * `request.auth.credentials` of a route with the strategy: which key was used, its scopes, for hapi's own `auth.scope`, and the ids of the
 * only workspaces that it sees, null for all.
 */
export interface TokenCredentials {
    readonly id: string;
    readonly name: string;
    readonly scope: string[];
    readonly workspaces: readonly number[] | null;
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
        'token-auth': TokenAuth & Instances<TokenAuth>;
    }
}
