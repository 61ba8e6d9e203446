import Boom from '@hapi/boom';
import type { Lifecycle, Server } from '@hapi/hapi';
import { ScanwireError } from '../lib/errors.ts';
import type { ApiKeyScope } from '../lib/keys/scopes.ts';

/**
 * Adds routes that name an authentication strategy. hapi's own message for an unknown one does not say which option it came from.
 *
 * @param message What is said of a strategy that the server does not have.
 * @throws ScanwireError `MISCONFIGURED`, field `auth`.
 */
export function withStrategy(message: string, addRoutes: () => void): void {
    refusedAs({ assertion: /authentication strategy/, message, field: 'auth' }, addRoutes);
}

/**
 * Registers a scheme or a strategy of a plugin under the name that the option gives it.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `option`, when the server has given the name already.
 */
export function withName(plugin: string, option: 'scheme' | 'strategy', register: () => void): void {
    const message = `${plugin} options: ${option} must be a name that no other ${option} of the server has`;
    refusedAs({ assertion: /^Authentication (?:scheme|strategy) name already exists/, message, field: option }, register);
}

function refusedAs(
    { assertion, message, field }: { readonly assertion: RegExp; readonly message: string; readonly field: string },
    register: () => void,
): void {
    try {
        register();
    } catch (cause) {
        if (!assertion.test((cause as Error).message)) {
            throw cause;
        }

        throw new ScanwireError('MISCONFIGURED', message, { field, cause });
    }
}

/** What a scheme exposes whose credentials are keys of the REST API, so that a plugin that wants more than a key can tell. */
export const API_KEY_SCHEME: object = { acceptsApiKeys: true };

/** Whether a request passes the strategy with a key of the REST API. */
export function acceptsApiKeys(server: Server, strategy: string): boolean {
    const exposed: { readonly acceptsApiKeys?: unknown } | undefined = server.auth.api[strategy];
    return exposed?.acceptsApiKeys === true;
}

/**
 * Refuses API keys without the scope, with 403; for `onCredentials` of a route. Whoever came in by a strategy of the application is the
 * application's own concern. Asked of the request, since a server's default strategy may be set after its routes.
 */
export function needsScope(scope: ApiKeyScope, denial: string): Lifecycle.Method {
    return ({ auth, server }, h) => {
        const granted: unknown = auth.credentials?.scope;
        if (acceptsApiKeys(server, auth.strategy) && !(Array.isArray(granted) && granted.includes(scope))) {
            throw Boom.forbidden(denial);
        }

        return h.continue;
    };
}
