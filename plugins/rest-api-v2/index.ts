import type { Lifecycle, NamedPlugin, Request, RequestRoute, RouteOptions, Server } from '@hapi/hapi';
import { DENIAL } from '../../lib/keys/api-keys.ts';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import { checked } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { arrived } from '../in-time.ts';
import { claimInstance } from '../instance.ts';
import { isBelowIn, isDecodable, leadPathsBelow } from '../leading-paths.ts';
import { logging } from '../log-and-events.ts';
import { MAX_STREAMS, streamsOf } from '../open-streams.ts';
import {
    acceptsApiKeys,
    afterEntry,
    assertLicensed,
    atFreePaths,
    inTurn,
    licensed,
    needsScope,
    withEntry,
    withStrategy,
} from '../route-authorization.ts';
import { READABLE_COOKIES, UNREAD_BODY, unsniffedBy } from '../route-parts.ts';
import { base as basePage, type Resource, read, UNREADABLE, unknownRoute } from './handlers.ts';
import { optionsSchema, type RestApiV2Options } from './options.ts';
import { type RequestLimiting, requestLimiting } from './request-limits.ts';
import { BASE, PREFIX, resources } from './resources.ts';

export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export type { ScanwireEvent } from '../log-and-events.ts';
export type { OwnResource, ResourceRow, RestApiV2Options } from './options.ts';
export type { RequestLimit } from './request-limits.ts';

const SCOPE: ApiKeyScope = 'inventory:read';

const UNKNOWN_STRATEGY =
    'rest-api-v2 options: auth must name a strategy of the server: register token-auth before, or a strategy of your own';

const BASE_PATH = '/rest_api/v2';
const DOCUMENT = '/openapi.json';
/** One slash at the end, which stands for nothing. */
const SLASH = /[^/]\/$/;
const UNKNOWN_PATH = `${BASE_PATH}/{path*}`;

/** Registers the read-only REST API over the application's store, below `/rest_api/v2`. */
export const plugin: NamedPlugin<RestApiV2Options> = {
    name: 'rest-api-v2',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    async register(server, options) {
        const settings = checked(optionsSchema, options, { subject: 'rest-api-v2 options', code: 'MISCONFIGURED' });
        claimInstance(server, 'rest-api-v2', settings);
        const { rateLimit, maxStreams } = settings;
        const limiting = rateLimit === undefined ? null : await requestLimiting(rateLimit, settings);
        const log = logging(server, 'rest-api-v2', settings);
        const table = resources(settings, (message) => log('warn', message));
        const streams = streamsOf(settings.store, maxStreams ?? MAX_STREAMS);
        const routeOptions = optionsOfEveryRoute(server, settings, limiting);

        withStrategy(UNKNOWN_STRATEGY, PREFIX, () => {
            addGetRoute(server, routeOptions, BASE, afterEntry(basePage));
            for (const resource of table) {
                const path = `${resource.path}/{${resource.idName}?}`;
                atFreePaths(resource.option, () => addGetRoute(server, routeOptions, path, afterEntry(read(resource, streams))));
            }
            // Whatever is no route is refused or unknown like a row: without a key nobody learns which.
            const options = { ...routeOptions, payload: UNREAD_BODY };
            server.route({ method: '*', path: UNKNOWN_PATH, handler: afterEntry(unknownRoute), options });
        });
        await describeApi(server, settings, { table, routeOptions });
        const base = `${server.realm.modifiers.route.prefix ?? ''}${BASE_PATH}`;
        leadPathsBelow(server, base, { meant: withoutSlash(server, base, isBelowIn(server, base)), arrived });
    },
};

/** Tells what the server offers as soon as somebody asks, so that all its plugins are there by then; what makes the document is loaded then too. */
async function describeApi(
    server: Server,
    settings: RestApiV2Options,
    { table, routeOptions }: { readonly table: readonly Resource[]; readonly routeOptions: RouteOptions },
): Promise<void> {
    const { enabled = true, public: isPublic = false, page } = settings.openapi ?? {};
    if (!enabled) {
        return;
    }

    const base = `${server.realm.modifiers.route.prefix ?? ''}${BASE_PATH}`;
    let text: string | undefined;
    const handler: Lifecycle.Method = async (_, h) => {
        const { openApiDocument } = await import('./openapi.ts');
        text ??= JSON.stringify(
            openApiDocument({
                server,
                resources: table,
                base,
                auth: settings.auth ?? 'token',
                isLimited: settings.rateLimit !== undefined,
            }),
        );
        return h.response(text).type('application/json; charset=utf-8');
    };
    const options = isPublic ? { ...routeOptions, auth: false as const, ext: {}, plugins: {} } : routeOptions;
    atFreePaths(PREFIX, () => addGetRoute(server, options, DOCUMENT, afterEntry(handler)));
    if (page !== undefined) {
        const { addDocsPage } = await import('./api-docs.ts');
        atFreePaths('rest-api-v2 options: openapi.page', () => addDocsPage(server, page, `${base}${DOCUMENT}`));
    }
}

/** A valid key that may read the inventory first, then a valid licence, then anything else. */
function optionsOfEveryRoute(
    server: Server,
    settings: Pick<RestApiV2Options, 'auth' | 'license'>,
    limiting: RequestLimiting | null,
): RouteOptions {
    const { auth = 'token' } = settings;
    return {
        auth: auth === false ? false : { strategies: [auth], mode: 'required' },
        cache: { otherwise: 'no-store' },
        ...whoMayRead(server, settings, limiting),
        // A range of an answer whose bytes may have changed since the last one is worth nothing.
        response: { ranges: false },
        security: unsniffedBy(server),
        state: READABLE_COOKIES,
    };
}

/** Asked where the scheme of API keys knows the key, unless requests are counted between the one and the other. */
function whoMayRead(
    server: Server,
    { auth = 'token', license }: Pick<RestApiV2Options, 'auth' | 'license'>,
    limiting: RequestLimiting | null,
): Pick<RouteOptions, 'ext' | 'plugins'> {
    if (limiting === null && auth !== false && acceptsApiKeys(server, auth)) {
        return { plugins: withEntry({ scope: SCOPE, denial: DENIAL, also: (request) => assertLicensed(request, license, UNREADABLE) }) };
    }

    const method = inTurn(needsScope(SCOPE, DENIAL), ...(limiting === null ? [] : [limiting.count]), licensed(license, UNREADABLE));
    return { ext: { onPostAuth: { method }, ...(limiting !== null && { onPreResponse: { method: limiting.tell } }) } };
}

/**
 * The path without its trailing slash, where that is one of ours: a server takes as long to check the options of each route as to load a file. Null for
 * any other.
 */
function withoutSlash({ realm, settings }: Server, base: string, isBelow: (path: string) => boolean): (request: Request) => string | null {
    const { stripTrailingSlash = false } = settings.router ?? {};
    const isOurs = (found: RequestRoute | null): boolean => found?.realm === realm && found.path !== `${base}/{path*}`;

    return ({ server, info, path, method }) => {
        const isAsked = SLASH.test(path) && (method === 'get' || method === 'head') && !stripTrailingSlash && isBelow(path);
        if (!isAsked || !isDecodable(path)) {
            return null;
        }

        const [found, bare] = [server.match('get', path, info.hostname), path.slice(0, -1)];
        // A route of the application may have the slash; what it has for whatever is not found is not meant.
        const isTaken = isOurs(found) || found?.path.endsWith('/') === true;
        return !isTaken && isOurs(server.match('get', bare, info.hostname)) ? bare : null;
    };
}

function addGetRoute(server: Server, options: RouteOptions, path: string, handler: Lifecycle.Method): void {
    server.route({ method: 'GET', path: `${BASE_PATH}${path}`, handler, options });
}
