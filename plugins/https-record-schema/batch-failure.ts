import type { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import { ScanwireError } from '../../lib/scanwire-error.ts';

/** What the client is told when reading or storing its batch failed; what the client has not done goes to the log. */
export function batchFailure(request: Request, error: unknown): Boom.Boom {
    if (Boom.isBoom(error)) {
        return error;
    }

    if ((request.payload as Readable).errored !== null || request.raw.res.closed) {
        return Boom.badRequest('The batch was not received to its end');
    }

    if (error instanceof ScanwireError && error.code === 'INVALID_INPUT') {
        return Boom.badRequest(error.message);
    }

    return storeFailure(request, error);
}

/** The answer says nothing of the cause; the cause goes to the log. */
export function storeFailure(request: Request, error: unknown): Boom.Boom {
    request.log(['https-record-schema', 'error'], error as Error);
    return Boom.serverUnavailable('The records cannot be stored or read now; try again later');
}
