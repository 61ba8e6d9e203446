/** What routes of several plugins have in common: the ids of their paths, their query, how bodies come, answers that repeat them, and a header of every answer. */
import { setImmediate } from 'node:timers/promises';
import type {
    Lifecycle,
    Request,
    ResponseObject,
    ResponseValue,
    RouteOptions,
    RouteOptionsPayload,
    RouteOptionsSecure,
    RouteOptionsSecureObject,
    Server,
} from '@hapi/hapi';
import type Joi from 'joi';
import { printableJson } from '../lib/printable.ts';
import { checked } from '../lib/schema-validation.ts';
import { orBadRequest } from './errors.ts';

const PLAIN_DECIMAL = /^(?:0|[1-9]\d*)$/;

/** The id that a segment of a path writes as a plain decimal number; null for any other text and beyond `max`: no row has such an id. */
export function pathId(segment: string, max: number = Number.MAX_SAFE_INTEGER): number | null {
    return PLAIN_DECIMAL.test(segment) && Number(segment) <= max ? Number(segment) : null;
}

/**
 * The query of the request after the schema.
 *
 * @throws Boom 400 that names the parameter and the rule.
 */
export function queryOf<Query>({ query }: Request, schema: Joi.ObjectSchema<Query>): Query {
    return orBadRequest(() => checked(schema, query));
}

/** What is said, with 415, of a body that {@link isPacked}. */
export const UNPACKED_ONLY = 'Content-Encoding must not be given: JSON is sent as it is';

/**
 * Whether the body of a request is packed. To be asked in `onPreAuth`, since hapi reads the body before `onCredentials`, of routes that take JSON: it would unpack it up to
 * the limit of what is not packed, a thousand times what was sent.
 */
export function isPacked({ headers }: Request): boolean {
    return !/^(?:|identity)$/i.test(String(headers['content-encoding'] ?? '').trim());
}

/** For a route that refuses, or drops, what it is sent: neither the size nor the type of the body is looked at. */
export const UNREAD_BODY: RouteOptionsPayload = {
    parse: false,
    output: 'stream',
    maxBytes: Number.MAX_SAFE_INTEGER,
    override: 'application/octet-stream',
};

/**
 * Cookies are the application's: its strategies and extensions look for theirs on every route, and fail where there is no state at all. They get what
 * can be read; what a browser has of others of the same host, and cannot be, is no reason to refuse.
 */
export const READABLE_COOKIES: NonNullable<RouteOptions['state']> = { parse: true, failAction: 'ignore' };

/** Lets no browser guess what an answer is, whether it comes from a handler or is a refusal; for `onPreResponse` of a route. */
export const unsniffed: { readonly method: Lifecycle.Method } = {
    method({ response }, h) {
        const headers = 'isBoom' in response ? response.output.headers : response.headers;
        headers['x-content-type-options'] = 'nosniff';
        return h.continue;
    },
};

/**
 * Resolves a turn of the event loop later. To be waited for once an event is accepted: its deliveries begin meanwhile, and their messages go out before the answer is
 * made and written, which takes as long as they do and which nobody waits for as much.
 */
export async function messagesFirst(): Promise<void> {
    await setImmediate();
}

/** What hapi puts into answers by the option `security`, where that is on and says nothing else. */
const NOTHING_OF_SECURITY: object = { hsts: false, xframe: false, xss: false, noOpen: false, referrer: false };

/**
 * The same as the option `security` of a route, besides what the application has there for all its routes. It needs no extension, which takes a
 * request longer than the header does.
 */
export function unsniffedBy({ settings }: Server): RouteOptionsSecure {
    const ofAll = (settings.routes?.security || NOTHING_OF_SECURITY) as RouteOptionsSecureObject;
    return { ...ofAll, noSniff: true };
}

/** What hapi's option `routes.json.escape` keeps out of JSON; of what it writes itself it keeps out two line ends besides, which are escaped here anyway. */
const MARKUP = /[<>&]/g;

/**
 * An answer in JSON that says what somebody has sent: control and direction characters are escaped, since a terminal or a page that shows it would act on them.
 * To whoever looks at it in this process, `response.source` or the result of `inject`, it is the object, and it has the form that the server gives to JSON.
 */
export function printableAnswer(request: Request, source: object | null): ResponseObject {
    async function marshal(response: ResponseObject): Promise<ResponseValue> {
        const { source } = response;
        if (typeof source !== 'object' || source === null) {
            return source as ResponseValue;
        }

        const { replacer, space, suffix = '', escape: escapes } = request.route.settings.json ?? {};
        const text = printableJson(JSON.stringify(source, replacer as never, space ?? undefined)) + (suffix ?? '');
        return escapes ? text.replace(MARKUP, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`) : text;
    }

    return request.generateResponse(source, { variety: 'plain', marshal });
}
