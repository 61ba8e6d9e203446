import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Lifecycle, Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { ScanwireError, type ScanwireErrorCode } from '../lib/errors.ts';
import { type Operation, operations } from './operations.ts';
import type { System } from './system.ts';

/** Largest body of a request that is not streamed: an event with room to spare. */
const MAX_BODY = 4 * 1024 * 1024;

const STATUS: Readonly<Record<ScanwireErrorCode, number>> = {
    INVALID_INPUT: 400,
    NOT_FOUND: 404,
    CONFLICT: 409,
    UNAVAILABLE: 503,
    MISCONFIGURED: 500,
    UNSEALABLE: 500,
};

/**
 * A route for each operation, for a server that only its owner reaches. They answer with JSON, an error as
 * `{"error":{code,field,message}}`. Where others reach the server, register them behind an authentication and a prefix.
 */
export function adminRoutes(system: System): ServerRoute[] {
    return operations.map((operation) => ({
        method: operation.method,
        path: operation.path,
        options: {
            auth: false,
            ...(operation.method !== 'GET' && { payload: payloadOf(operation) }),
        },
        handler: handlerOf(operation, system),
    }));
}

function payloadOf({ streamed }: Operation<object, unknown>): object {
    return streamed === true
        ? { parse: false, output: 'stream', maxBytes: Number.MAX_SAFE_INTEGER, timeout: false }
        : { maxBytes: MAX_BODY, allow: 'application/json', protoAction: 'error' };
}

function handlerOf(operation: Operation<object, unknown>, system: System): Lifecycle.Method {
    return async (request, h) => {
        try {
            return h.response((await operation.run(system, inputOf(operation, request))) as object).type('application/json');
        } catch (error) {
            if (operation.streamed === true) {
                await drained(request.payload as Readable);
            }

            return refusal(error, h, request);
        }
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

function inputOf({ streamed }: Operation<object, unknown>, { params, query, payload }: Request): object {
    if (streamed !== true) {
        return { ...query, ...(payload as object | null), ...params };
    }

    // Left as it is when the reader gives up early, so that the reason can still be answered.
    const source = (payload as Readable).iterator({ destroyOnReturn: false });
    return { ...query, ...params, source };
}

function refusal(error: unknown, h: ResponseToolkit, request: Request): ResponseObject {
    if (error instanceof ScanwireError) {
        const { code, field, message } = error;
        return h.response({ error: { code, field, message } }).code(STATUS[code]);
    }

    request.log(['error'], error as Error);
    return h.response({ error: { code: 'INTERNAL', message: 'The server failed; its log says why' } }).code(500);
}
