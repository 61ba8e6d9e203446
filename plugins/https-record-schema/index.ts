import type { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { NamedPlugin, Request, ServerRoute } from '@hapi/hapi';
import { checked } from '../../lib/checked.ts';
import { checkRecord, checkRecordLines, recordJsonSchema } from '../../lib/records/index.ts';
import { VERSION } from '../../lib/version.ts';
import { batchBytes } from './batch-bytes.ts';
import { type HttpsRecordSchemaOptions, optionsSchema, type Settings } from './options.ts';
import { type BatchReport, batchReport } from './report.ts';

export type { CheckedRecord, HttpsRecord, RecordProblem } from '../../lib/records/index.ts';
export type { HttpsRecordSchemaOptions } from './options.ts';
export type { BadLine, BatchReport } from './report.ts';
export type { HttpsRecordSchema } from './types.ts';

/** Serves the JSON Schema of HTTPS scan records and checks records against it. */
export const plugin: NamedPlugin<HttpsRecordSchemaOptions> = {
    name: 'https-record-schema',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },

    register(server, options) {
        const settings = checked(optionsSchema, options ?? {}, { subject: 'https-record-schema options', code: 'MISCONFIGURED' });
        const access = settings.auth === undefined ? {} : { auth: settings.auth };

        server.expose('validate', checkRecord);
        server.route(schemaRoute(settings, access));
        server.route(checkRoute(settings, access));
    },
};

type Access = Pick<Settings, 'auth'>;

const SCHEMA_TEXT = JSON.stringify(recordJsonSchema);
const BATCH_TYPES = ['application/x-ndjson', 'application/jsonl', 'text/plain', 'application/octet-stream'];

function schemaRoute({ path }: Settings, access: Access): ServerRoute {
    return {
        method: 'GET',
        path,
        options: { ...access, description: 'JSON Schema of an HTTPS scan record' },
        handler: (_request, h) => h.response(SCHEMA_TEXT).type('application/schema+json'),
    };
}

function checkRoute(settings: Settings, access: Access): ServerRoute {
    return {
        method: 'POST',
        path: `${settings.path}/check`,
        options: {
            ...access,
            description: 'Checks a batch of HTTPS scan records, one JSON object on each line',
            payload: { output: 'stream', parse: false, maxBytes: settings.maxBytes, allow: BATCH_TYPES },
        },
        handler: (request) => checkBatch(request, settings),
    };
}

async function checkBatch(request: Request, settings: Settings): Promise<BatchReport> {
    const received = request.payload as Readable;
    const limits = { ...settings, signal: untilClosed(request) };
    try {
        const bytes = batchBytes(received, request.headers['content-encoding'] as string | undefined, limits);
        return await batchReport(checkRecordLines(bytes, settings), settings.maxReported);
    } catch (error) {
        // What is left is thrown away as it comes, so that the client gets to read the answer.
        received.resume();
        throw Boom.isBoom(error) ? error : Boom.badRequest('The batch was not received to its end');
    }
}

/** Aborts when the connection is gone: a small batch can hold minutes of work that nobody would wait for. */
function untilClosed({ raw }: Request): AbortSignal {
    const controller = new AbortController();
    raw.res.once('close', () => controller.abort());
    return controller.signal;
}
