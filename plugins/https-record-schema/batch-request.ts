import * as Boom from '@hapi/boom';
import type { Request, ResponseToolkit, RouteOptionsPayload } from '@hapi/hapi';
import Joi from 'joi';
import { checked } from '../../lib/checked.ts';
import { MEND_PROFILES, type MendProfile } from '../../lib/records/index.ts';
import { ScanwireError } from '../../lib/scanwire-error.ts';

const TYPES = ['application/x-ndjson', 'application/jsonl', 'text/plain', 'application/octet-stream'];

/** A batch is read as it arrives. */
export function batchPayload(maxBytes: number): RouteOptionsPayload {
    return { output: 'stream', parse: false, maxBytes, allow: TYPES, failAction: refuse };
}

/** curl calls what it posts a form unless it is told otherwise, and hapi would not say what is wanted. */
function refuse(_request: Request, _h: ResponseToolkit, error: Error | undefined): never {
    throw Boom.isBoom(error, 415) ? Boom.unsupportedMediaType(`Content-Type must be one of ${TYPES.join(', ')}`) : error;
}

export interface BatchQuery {
    /** Which results are described. */
    readonly results: 'bad' | 'all';
    /** How records are mended first. */
    readonly mend?: MendProfile;
}

export const batchQuerySchema: Joi.ObjectSchema<BatchQuery> = Joi.object<BatchQuery, true>({
    results: Joi.string().valid('bad', 'all').default('bad'),
    mend: Joi.string().valid(...MEND_PROFILES),
});

/**
 * The query of the request after the schema.
 *
 * @throws Boom 400 that names the parameter and the rule.
 */
export function queryOf<Query>({ query }: Request, schema: Joi.ObjectSchema<Query>): Query {
    try {
        return checked(schema, query);
    } catch (error) {
        throw error instanceof ScanwireError ? Boom.badRequest(error.message) : error;
    }
}

/** Whether the client asks for JSON lines, and so for an answer that streams. */
export function acceptsLines({ headers }: Request): boolean {
    return /(?:^|[ ,])application\/x-ndjson(?:[ ;,]|$)/i.test(String(headers.accept ?? ''));
}
