/** What errors come to over HTTP, as the table of `docs/errors.md` says. */
import * as Boom from '@hapi/boom';
import type { Lifecycle, Request, Server } from '@hapi/hapi';
import Joi from 'joi';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import { type Eventual, isComing } from '../lib/eventual.ts';
import { printable } from '../lib/printable.ts';
import { logFailure } from './log-and-events.ts';

/** The status of each code. */
export const STATUS: Readonly<Record<ScanwireErrorCode, number>> = {
    INVALID_INPUT: 400,
    NOT_FOUND: 404,
    CONFLICT: 409,
    UNAVAILABLE: 503,
    MISCONFIGURED: 500,
    UNSEALABLE: 500,
    UNVERIFIED: 401,
};

/** What an error answers with besides hapi's `statusCode`, `error` and `message`: in the body and as `data`. */
export interface ErrorDetails {
    readonly code: ScanwireErrorCode;
    /** Path of the offending field, absent where none is at fault; control and direction characters in it are shown as `�`. */
    readonly field?: string;
}

/** What a client reads of a store that is away; which one, and where it is, is none of its business. */
const TRY_LATER = 'This cannot be done now; try again later';

/**
 * The error as hapi answers it. A ScanwireError has the status of its code; the body of what the client can do something about has
 * `code`, `field` and the message, both printable: they may name what a client made up. A Boom stays as it is, and anything else is a 500.
 */
export function toBoom(error: unknown): Boom.Boom {
    if (!(error instanceof ScanwireError)) {
        return Boom.boomify(error instanceof Error ? error : new Error('Something was thrown that is no error', { cause: error }));
    }

    const { code, field, message } = error;
    const statusCode = STATUS[code];
    if (statusCode === 500) {
        return Boom.boomify(error);
    }

    const details: ErrorDetails = { code, ...(field !== undefined && { field: printable(field) }) };
    const boom = new Boom.Boom(statusCode === 503 ? TRY_LATER : printable(message), { statusCode, data: details });
    Object.assign(boom.output.payload, details);
    return Object.assign(boom, { cause: error });
}

/** Rule of the option `mapErrors` of plugins whose functions an application calls in handlers of its own. */
export const mapErrorsSchema: Joi.BooleanSchema = Joi.boolean().default(false);

/** Requests whose error has been answered: each plugin of a server may be told to. */
const answered = new WeakSet<Request>();

/** What errors said before they were answered: one may be kept by the application, and thrown again. */
const saidBefore = new WeakMap<ScanwireError, string>();

/**
 * Answers every ScanwireError that leaves a handler of the server, the application's own included, as {@link toBoom} does, and logs what a 503 came from. What hapi
 * has made of the error stays the response, or those who look at responses after this one would not be asked.
 */
export function mapErrors(server: Server, plugin: string): void {
    const method: Lifecycle.Method = (request, h) => {
        const { response } = request;
        if (!Boom.isBoom(response) || !(response instanceof ScanwireError) || answered.has(request)) {
            return h.continue;
        }

        answered.add(request);
        const { output, data, isServer, message } = toBoom(response);
        if (output.statusCode === 503) {
            // As it was: what follows hides the reason from whoever shows the message.
            const said = saidBefore.get(response) ?? response.message;
            saidBefore.set(response, said);
            logFailure(request, plugin, new ScanwireError(response.code, said, { cause: response.cause }));
        }
        const headers = { ...response.output.headers, ...output.headers };
        Object.assign(response, { output: { ...output, headers }, data, isServer, message });
        return h.continue;
    };
    server.ext('onPreResponse', method);
}

/** What `read` returns. A value that it refuses is the client's fault. */
export function orBadRequest<T>(read: () => T): T {
    try {
        return read();
    } catch (error) {
        // It may name what the client made up, as a parameter that there is none of.
        throw error instanceof ScanwireError ? Boom.badRequest(printable(error.message)) : error;
    }
}

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
export function orUnavailable<T>(request: Request, failure: StoreFailure, ask: () => Eventual<T>): Eventual<T> {
    try {
        const answer = ask();
        return isComing(answer) ? Promise.resolve(answer).catch((cause) => Promise.reject(unavailable(request, failure, cause))) : answer;
    } catch (cause) {
        throw unavailable(request, failure, cause);
    }
}

/** The 503 for a store that failed, its cause written to the log of the request. */
export function unavailable(request: Request, { plugin, instance, message }: StoreFailure, cause: unknown): Boom.Boom {
    logFailure(request, plugin, cause, instance);
    return Boom.serverUnavailable(message);
}

/** Whole seconds, at least one. */
export const seconds = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1000));

/** The answer with the time after which its client may try again. */
export function retryLater(boom: Boom.Boom, milliseconds: number): Boom.Boom {
    boom.output.headers['retry-after'] = seconds(milliseconds);
    return boom;
}
