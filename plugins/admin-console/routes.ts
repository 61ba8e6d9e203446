import { PassThrough, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type * as Boom from '@hapi/boom';
import type {
    Lifecycle,
    Request,
    ResponseObject,
    ResponseToolkit,
    RouteOptionsPayload,
    RouteOptionsValidate,
    ServerRoute,
} from '@hapi/hapi';
import Joi from 'joi';
import { quickly } from '../../lib/compiled-schema.ts';
import { sha256In } from '../../lib/content-digest.ts';
import { type Problem, ScanwireError } from '../../lib/errors.ts';
import type { Export } from '../../lib/inventory/export.ts';
import { jsonText } from '../../lib/printable.ts';
import { STORABLE, schemaRefusal, VALIDATION } from '../../lib/schema-validation.ts';
import { STATUS } from '../errors.ts';
import { begunInTime, noteArrival } from '../in-time.ts';
import { logFailure, logWarning } from '../log-and-events.ts';
import { isPacked, printableAnswer, READABLE_COOKIES, UNPACKED_ONLY, unsniffed } from '../route-parts.ts';
import { seesCuts, streamCut, untilClosed, withFirst } from '../streamed-answers.ts';
import { performerOf } from './handlers.ts';
import { errorSchema, schemas } from './operation-schemas.ts';
import { type Endpoint, endpoints, type OperationName, PROGRESS_TYPE } from './operations.ts';
import { callerIn, isAuthorized, operationsOf, type Settings } from './options.ts';
import { sendsOwnFiles } from './own-files.ts';
import { readingInTime } from './reading.ts';
import { LedFromElsewhere } from './request-site.ts';

type Handler = (input: object) => Promise<unknown>;

/** A route for each operation of the parts that the system has. They answer with JSON, an error as `{"error":{code,field,message}}`. */
export function adminRoutes(settings: Settings): ServerRoute[] {
    return operationsOf(settings).map((name) => adminRoute(name, settings));
}

function adminRoute(name: OperationName, settings: Settings): ServerRoute {
    const { prefix, auth, instance } = settings;
    const endpoint = endpoints[name];
    const { description, response } = schemas[name];
    return {
        method: endpoint.method,
        path: prefix + endpoint.path,
        options: {
            id: ['admin-console', ...(instance === undefined ? [] : [instance]), name].join('.'),
            description,
            tags: ['api', 'admin-console'],
            auth: auth === false ? false : { strategies: [auth], mode: 'required' },
            // Whatever the server opens to other sites, these routes it does not.
            cors: false,
            cache: { otherwise: 'no-store' },
            state: READABLE_COOKIES,
            ext: {
                onPreAuth: [{ method: inUtf8 }, ...(endpoint.streamed === true ? [] : arriving(endpoint))],
                onPostAuth: { method: authorized(settings) },
                onPreResponse: unsniffed,
            },
            ...(endpoint.method !== 'GET' && { payload: payloadOf(endpoint) }),
            validate: { options: VALIDATION, failAction: invalid(endpoint), ...validationOf(name, endpoint) },
            // For documentation: an answer that breaks its schema must not turn what has been done into a failure.
            response: { sample: 0, schema: response, status: REFUSALS },
        },
        handler: handlerOf(name, settings),
    };
}

const MAX_JSON = 4 * 1024 * 1024;

/** Types that no form, and no script without CORS, of another site can send with the cookies of somebody who is signed in. */
const JSON_TYPES = ['application/json'];
const STREAM_TYPES = [...JSON_TYPES, 'application/octet-stream', 'application/x-ndjson', 'application/xml', 'text/xml'];

/** What hapi takes a body without a type for: one that is not allowed. */
const UNTYPED = 'text/plain';

function payloadOf({ method, streamed }: Endpoint): RouteOptionsPayload {
    return {
        failAction: unreadable,
        // A DELETE of another site is never sent without CORS, and carries no body.
        ...(method !== 'DELETE' && { defaultContentType: UNTYPED }),
        ...(streamed
            ? { parse: false, output: 'stream', maxBytes: Number.MAX_SAFE_INTEGER, timeout: false, allow: STREAM_TYPES }
            : { maxBytes: MAX_JSON, allow: JSON_TYPES, protoAction: 'error' }),
    };
}

const NO_FIELDS = Joi.object({});

function validationOf(name: OperationName, { method, streamed }: Endpoint): RouteOptionsValidate {
    const { params, headers, query = NO_FIELDS, payload = NO_FIELDS.allow(null) } = schemas[name];
    return {
        query: quickly(query, [STORABLE]),
        ...(params && { params: quickly(params, [STORABLE]) }),
        ...(headers && { headers }),
        ...(method !== 'GET' && !streamed && { payload: quickly(payload, [STORABLE]) }),
    };
}

/** What is streamed may be packed, and is read within its own limits. */
const asItIs: Lifecycle.Method = (request, h) =>
    isPacked(request) ? refused(request, 415, { code: 'INVALID_INPUT', message: UNPACKED_ONLY }).takeover() : h.continue;

/** A text in the query that is no UTF-8, as half a surrogate pair is none, would come with other characters in its place, and be stored so. */
const inUtf8: Lifecycle.Method = (request, h) =>
    JSON.stringify(request.query).includes('\ufffd') && !/%ef%bf%bd/i.test(request.url.search)
        ? refused(request, 400, { code: 'INVALID_INPUT', message: 'The query must be UTF-8 that is percent-encoded' }).takeover()
        : h.continue;

/** What has a body has arrived once that was read, however long its client takes to send it. */
function arriving({ method }: Endpoint): { readonly method: Lifecycle.Method }[] {
    return [...(method === 'GET' ? [{ method: noteArrival }] : []), { method: asItIs }];
}

function authorized(settings: Pick<Settings, 'authorize'>): Lifecycle.Method {
    return async (request, h) =>
        (await isAuthorized(request, settings))
            ? h.continue
            : refused(request, 403, { code: 'FORBIDDEN', message: 'Access needs the rights of an administrator' }).takeover();
}

/** A body that is too long, of another type, or no JSON. */
function unreadable(request: Request, _h: ResponseToolkit, error?: Error): ResponseObject {
    const { statusCode } = (error as Boom.Boom).output;
    const allowed = request.route.settings.payload?.allow as string[];
    const message = statusCode === 415 ? `Content-Type must be ${allowed.join(' or ')}` : (error as Boom.Boom).message;
    return refused(request, statusCode, { code: 'INVALID_INPUT', message }).takeover();
}

/** Input that breaks the schema. */
function invalid({ streamed }: Endpoint): Lifecycle.FailAction {
    return async (request, _h, error) => {
        const refusal = await failure(schemaRefusal(error as Joi.ValidationError), request, streamed);
        return refusal.takeover();
    };
}

function handlerOf(name: OperationName, settings: Settings): Lifecycle.Method {
    const { streamed, downloads } = endpoints[name];
    return async (request, h) => {
        try {
            const perform = readingInTime(request, performerOf(settings.system, await callerIn(request, settings)));
            const handler: Handler = (input) => perform(name, input as never);
            const input = inputOf(request, streamed);
            if (downloads) {
                return await download(handler, input, request, h);
            }

            if (streamed && request.headers.accept === PROGRESS_TYPE) {
                return await followed(handler, input, request, h);
            }

            return printableAnswer(request, (await handler(input)) as object).type('application/json');
        } catch (error) {
            return await failure(error, request, streamed);
        }
    };
}

const CUT_UNSEEN = `Over HTTP/1.0 a file that was cut would look complete: ask for it by HTTP/1.1 (nginx needs "proxy_http_version 1.1;" for that)`;

/** To be saved, never shown: what scans bring may be written by an attacker, and the pages of the server have its cookies. */
async function download(handler: Handler, input: object, request: Request, h: ResponseToolkit): Promise<ResponseObject> {
    const { type, text } = (await handler({ ...input, signal: untilClosed(request) })) as Export;
    if (!type.includes('xml') && !seesCuts(request)) {
        return refused(request, 505, { code: 'INVALID_INPUT', message: CUT_UNSEEN });
    }

    const { all } = await begunInTime(request, () => withFirst(text, { cut: streamCut(request, 'admin-console') }));
    return h
        .response(Readable.from(all, { objectMode: false }))
        .type(type)
        .header('content-disposition', 'attachment');
}

/**
 * Begins to answer with the first progress, by when everything was received: `{"progress":…}`, and in the end `{"result":…}` or
 * `{"error":…}`. What ends before is answered as ever.
 */
async function followed(handler: Handler, input: object, request: Request, h: ResponseToolkit): Promise<ResponseObject> {
    const lines = new PassThrough();
    const write = (line: object): boolean => lines.write(`${jsonText(line)}\n`);
    const begun = new Promise<null>((resolve) => {
        const onProgress = (progress: object): void => {
            write({ progress });
            resolve(null);
        };
        Object.assign(input, { onProgress });
    });
    const work = handler(input);
    const early = await Promise.race([begun, work.then((result) => ({ result }))]);
    if (early !== null) {
        return printableAnswer(request, early.result as object).type('application/json');
    }

    void work
        .then(
            (result) => write({ result }),
            (error: unknown) => write({ error: refusalOf(error, request) }),
        )
        .then(() => lines.end());
    return h.response(lines).type(PROGRESS_TYPE);
}

function inputOf(request: Request, streamed = false): object {
    const { params, query, payload, headers } = request;
    if (!streamed) {
        return { ...query, ...(payload as object | null), ...params };
    }

    // Left as it is when the reader gives up early, so that the reason can still be answered.
    const source = (payload as Readable).iterator({ destroyOnReturn: false });
    return {
        ...query,
        ...params,
        source,
        sha256: sha256In(String(headers['content-digest'] ?? '')),
        signal: untilClosed(request),
        isRequest: !sendsOwnFiles(request),
        onWarning: (message: string) => logWarning(request, 'admin-console', message),
    };
}

/** The rest is read before a refusal goes out: an answer to somebody who still writes is lost with the connection. */
async function drained(payload: Readable): Promise<void> {
    try {
        await finished(payload.resume(), { writable: false });
    } catch {
        // The sender has gone, and nobody waits for the answer.
    }
}

interface Refusal {
    readonly code: string;
    readonly field?: string | undefined;
    readonly message: string;
    readonly problems?: readonly Problem[] | undefined;
}

const REFUSALS: Readonly<Record<number, Joi.ObjectSchema>> = Object.fromEntries(
    [400, 403, ...Object.values(STATUS)].map((status) => [status, errorSchema]),
);

async function failure(error: unknown, request: Request, streamed = false): Promise<ResponseObject> {
    if (streamed) {
        await drained(request.payload as Readable);
    }

    if (error instanceof LedFromElsewhere) {
        return refused(request, 403, { code: 'FORBIDDEN', message: error.message });
    }

    return refused(request, error instanceof ScanwireError ? STATUS[error.code] : 500, refusalOf(error, request));
}

/** What is said of an error. One that is no {@link ScanwireError} is logged instead. */
function refusalOf(error: unknown, request: Request): Refusal {
    if (error instanceof ScanwireError) {
        return { code: error.code, field: error.field, message: error.message, problems: error.problems };
    }

    logFailure(request, 'admin-console', error);
    return { code: 'INTERNAL', message: 'The server failed; its log says why' };
}

function refused(request: Request, status: number, error: Refusal): ResponseObject {
    return printableAnswer(request, { error }).code(status);
}
