/** What routes over a store have in common: the ids of their paths, and responses that come out of the store batch by batch. */
import * as Boom from '@hapi/boom';
import type { Lifecycle, Request } from '@hapi/hapi';
import type Joi from 'joi';
import { ScanwireError } from '../lib/errors.ts';
import { checked } from '../lib/schema-validation.ts';
import type { InstanceOptions } from './instance.ts';
import { announcing, logFailure } from './log-and-events.ts';

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

/** What `read` returns. A value that it refuses is the client's fault. */
export function orBadRequest<T>(read: () => T): T {
    try {
        return read();
    } catch (error) {
        throw error instanceof ScanwireError ? Boom.badRequest(error.message) : error;
    }
}

/**
 * Aborts when the connection of the request is gone, and nobody waits for the rest of the work. Destroying the response's stream alone does not reach a store that waits for its
 * next batch: a generator ends only between two of them.
 */
export function untilClosed({ raw }: Request): AbortSignal {
    const controller = new AbortController();
    raw.res.once('close', () => controller.abort());
    return controller.signal;
}

/** Lets no browser guess what an answer is, whether it comes from a handler or is a refusal; for `onPreResponse` of a route. */
export const unsniffed: { readonly method: Lifecycle.Method } = {
    method({ response }, h) {
        const headers = 'isBoom' in response ? response.output.headers : response.headers;
        headers['x-content-type-options'] = 'nosniff';
        return h.continue;
    },
};

/** How a plugin reports that its store failed. */
export interface StoreFailure {
    /** Name of the plugin, for the log. */
    readonly plugin: string;
    /** Of its instance, where the route is not its own. */
    readonly instance?: string | undefined;
    /** What the client reads; it says nothing of the cause. */
    readonly message: string;
}

/** What `ask` resolves to. When it fails, the client gets a 503 and the cause goes to the log. */
export async function orUnavailable<T>(request: Request, failure: StoreFailure, ask: () => T | Promise<T>): Promise<T> {
    try {
        return await ask();
    } catch (cause) {
        throw unavailable(request, failure, cause);
    }
}

/** The 503 for a store that failed, its cause written to the log of the request. */
export function unavailable(request: Request, { plugin, instance, message }: StoreFailure, cause: unknown): Boom.Boom {
    logFailure(request, plugin, cause, instance);
    return Boom.serverUnavailable(message);
}

/** Tells the server that the answer to a request broke off, unless it was the client who left. */
export function streamCut(request: Request, plugin: string): () => void {
    return () => {
        const { server, route, path, info, raw } = request;
        if (!raw.res.closed) {
            announcing(server, plugin, route.realm.pluginOptions as InstanceOptions)({ type: 'stream.cut', path, requestId: info.id });
        }
    };
}

/** A sequence whose first piece has been read already. */
export interface Begun<T> {
    /** Undefined when the sequence is empty. */
    readonly first: T | undefined;
    /** Every piece, the first included; to be iterated once. */
    readonly all: AsyncIterable<T>;
}

/**
 * Reads the first piece before the response begins, so that what fails at once becomes a proper error. Later a failure can only break
 * the connection, and must: a cut response never looks complete.
 *
 * Ending `all` ends the sequence even when nothing was taken from it, as with a HEAD request; a generator around the sequence would
 * not do that, since one that never started runs none of its code when it is ended.
 *
 * @param cut Called when a later piece cannot be read.
 */
export async function withFirst<T>(pieces: AsyncGenerator<T, void, undefined>, cut: () => void = () => {}): Promise<Begun<T>> {
    const first = await pieces.next();
    let unread: IteratorResult<T, void> | null = first;
    const iterator: AsyncIterator<T, void> = {
        async next() {
            try {
                const result = unread ?? (await pieces.next());
                unread = null;
                return result;
            } catch (error) {
                cut();
                throw error;
            }
        },
        return: () => pieces.return(),
    };
    return { first: first.done === true ? undefined : first.value, all: { [Symbol.asyncIterator]: () => iterator } };
}
