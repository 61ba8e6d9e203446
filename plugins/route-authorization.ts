import Boom from '@hapi/boom';
import type { Lifecycle, Request, Server } from '@hapi/hapi';
import { ScanwireError } from '../lib/errors.ts';
import { type Eventual, whenThere } from '../lib/eventual.ts';
import { DENIAL } from '../lib/keys/api-keys.ts';
import { workspacesOf } from '../lib/keys/limits.ts';
import type { ApiKeyScope } from '../lib/keys/scopes.ts';
import type { LicenseSource } from '../lib/license/license-source.ts';
import { orUnavailable, type StoreFailure } from './errors.ts';
import { inTime } from './in-time.ts';

/**
 * Adds routes that name an authentication strategy. hapi's own message for an unknown one does not say which option it came from.
 *
 * @param message What is said of a strategy that the server does not have.
 * @param option As in {@link atFreePaths}.
 * @throws ScanwireError `MISCONFIGURED`, field `auth`, or as {@link atFreePaths}.
 */
export function withStrategy(message: string, option: string, addRoutes: () => void): void {
    refusedAs({ assertion: /authentication strategy/, message, field: 'auth' }, () => atFreePaths(option, addRoutes));
}

/** What hapi says of a path that it knows already. */
const TAKEN = /^New route (\S+) conflicts with existing /;

/**
 * Adds routes whose paths the server may have already, as it does where a plugin is registered twice.
 *
 * @param option The option that says where they are, for example `metrics options: path`; its last word is the field.
 * @throws ScanwireError `MISCONFIGURED` that names it.
 */
export function atFreePaths(option: string, addRoutes: () => void): void {
    try {
        addRoutes();
    } catch (cause) {
        const [, path] = TAKEN.exec((cause as Error).message) ?? [];
        if (path === undefined) {
            throw cause;
        }

        const message = `${option} must lead to paths that no other route of the server has: ${path} is taken`;
        throw new ScanwireError('MISCONFIGURED', message, { field: option.slice(option.lastIndexOf(' ') + 1), cause });
    }
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
    return (request, h) => {
        if (!hasScope(request, scope)) {
            throw Boom.forbidden(denial);
        }

        return h.continue;
    };
}

/** Whether a request may do what the scope stands for. Asked like {@link needsScope}: of API keys only. */
export function hasScope({ auth, server }: Request, scope: ApiKeyScope): boolean {
    const granted: unknown = auth.credentials?.scope;
    return !acceptsApiKeys(server, auth.strategy) || (Array.isArray(granted) && granted.includes(scope));
}

/** What a route asks of a request besides a key: the key's scope first. */
export interface Entry {
    readonly scope: ApiKeyScope;
    /** What is said to a key without it. */
    readonly denial: string;
    /** Throws what refuses the request all the same. */
    also(request: Request): Eventual<void>;
}

/** Where a route has its {@link Entry}, and a request that it has passed it. */
interface AtEntry {
    scanwireEntry?: Entry;
    scanwireEntered?: boolean;
}

/**
 * For the option `plugins` of a route whose strategy takes API keys, with {@link afterEntry}: the scheme asks it as soon as it knows the key. An extension
 * takes a request longer than what it asks.
 */
export function withEntry(entry: Entry): object {
    return { scanwireEntry: entry } satisfies AtEntry;
}

/** Lets a request with a valid key into its route, unless that asks for more. */
export function enter(request: Request, scopes: readonly ApiKeyScope[]): Eventual<void> {
    return entered(request, (scope) => scopes.includes(scope));
}

/** The handler of a route that may have an {@link Entry}. Who came with credentials and no key, as tests do, is asked only here. */
export function afterEntry(handler: Lifecycle.Method): Lifecycle.Method {
    return (request, h) =>
        (request.plugins as AtEntry).scanwireEntered === true
            ? handler.call(null, request, h)
            : whenThere<void, Said>(
                  entered(request, (scope) => hasScope(request, scope)),
                  () => handler.call(null, request, h) as Eventual<Said>,
              );
}

function entered(request: Request, isGranted: (scope: ApiKeyScope) => boolean): Eventual<void> {
    const { scanwireEntry: entry } = request.route.settings.plugins as AtEntry;
    if (entry === undefined) {
        return;
    }
    if (!isGranted(entry.scope)) {
        throw Boom.forbidden(entry.denial);
    }

    return whenThere(entry.also(request), () => {
        (request.plugins as AtEntry).scanwireEntered = true;
    });
}

const BEARER = /^bearer +(\S+)$/i;

/** Puts the key of `Authorization: Bearer`, or of the query's `token`, where its strategy looks for it; for `onPreAuth` of a route. */
export function bearerKey(fromQuery: boolean): Lifecycle.Method {
    return ({ headers, url }, h) => {
        const [, bearer] = BEARER.exec(String(headers.authorization ?? '')) ?? [];
        const key = bearer ?? (fromQuery ? url.searchParams.get('token') : null);
        if (key) {
            headers.token = key;
        }
        return h.continue;
    };
}

/** The only workspaces that the key of a request sees; null for all. Asked like {@link needsScope}: of API keys only. */
export function workspacesSeen({ auth, server }: Request): ReadonlySet<number> | null {
    const seen = acceptsApiKeys(server, auth.strategy) ? workspacesOf(auth.credentials as Parameters<typeof workspacesOf>[0]) : null;
    return seen === null ? null : new Set(seen);
}

/** Refuses, with 403, API keys that see some workspaces only, where rows belong to none; for `onCredentials` of a route. */
export const needsAllWorkspaces: Lifecycle.Method = (request, h) => {
    if (workspacesSeen(request) !== null) {
        throw Boom.forbidden('The API key is limited to workspaces, and what is here belongs to none');
    }

    return h.continue;
};

/** Refuses like a wrong key does while the licence is not valid; for `onPostAuth` of a route. */
export function licensed(license: LicenseSource, failure: StoreFailure): Lifecycle.Method {
    return (request, h) => whenThere(assertLicensed(request, license, failure), () => h.continue);
}

/** @throws Boom as {@link licensed}. */
export function assertLicensed(request: Request, license: LicenseSource, failure: StoreFailure): Eventual<void> {
    return whenThere(
        orUnavailable(request, failure, () => inTime(request, () => license.valid())),
        (isValid) => {
            if (!isValid) {
                throw Boom.forbidden(DENIAL);
            }
        },
    );
}

type Said = Awaited<Lifecycle.ReturnValue>;

/** Extensions of one point, one after the other as hapi runs them, in one: each that it runs by itself takes a request longer than most of them do. */
export function inTurn(...methods: readonly Lifecycle.Method[]): Lifecycle.Method {
    return (request, h) => {
        let result: Eventual<Said> = h.continue;
        for (const method of methods) {
            result = whenThere<Said, Said>(result, (said) =>
                said === h.continue ? (method.call(null, request, h) as Eventual<Said>) : said,
            );
        }
        return result;
    };
}
