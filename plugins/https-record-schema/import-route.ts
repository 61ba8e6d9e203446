import type { Readable } from 'node:stream';
import * as Boom from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { importRecords, type RecordStore, readRecords } from '../../lib/records/index.ts';
import { batchPayload, batchQuerySchema, orBatchFailure, queryOf } from './batch.ts';
import type { Access, Settings } from './options.ts';
import { streamResults } from './stream-results.ts';

/** Stores the records of a stream of any length, and says line by line what became of them once they are stored. */
export function importRoute(settings: Settings, store: RecordStore, access: Access): ServerRoute {
    return {
        method: 'POST',
        path: `${settings.path}/records`,
        options: {
            ...access,
            description: 'Stores HTTPS scan records, one JSON object on each line',
            payload: batchPayload(Number.MAX_SAFE_INTEGER),
        },
        handler: (request, h) => orBatchFailure(request, () => importBatch(request, h, settings, store)),
    };
}

async function importBatch(request: Request, h: ResponseToolkit, settings: Settings, store: RecordStore): Promise<ResponseObject> {
    const { maxReported, maxLineBytes, enrich } = settings;
    const { results, ...mending } = queryOf(request, batchQuerySchema);
    const lines = readRecords(receivedBytes(request), { maxLineBytes, ...mending });
    const [batches, totals] = [importRecords(lines, { store, enrich }), () => lines.totals];
    return await streamResults(request, h, { batches, totals, stored: true, all: results === 'all', maxReported });
}

/** The reader knows gzip by its first bytes, whether the client calls it the form of the file or of the request. */
function receivedBytes({ payload, headers }: Request): AsyncIterable<Uint8Array> {
    if (!/^(?:|identity|gzip|x-gzip)$/i.test(String(headers['content-encoding'] ?? '').trim())) {
        throw Boom.unsupportedMediaType('Unknown Content-Encoding: records are sent as they are or as gzip');
    }

    // Destroying a request closes its connection, and with it the way of the answer.
    return (payload as Readable).iterator({ destroyOnReturn: false });
}
