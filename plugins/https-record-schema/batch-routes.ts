import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { inBatches } from '../../lib/records/import-records.ts';
import { importRecords, type RecordStore, readRecords } from '../../lib/records/index.ts';
import { printableAnswer, queryOf } from '../route-parts.ts';
import { untilClosed } from '../streamed-answers.ts';
import { acceptsLines, batchBytes, batchPayload, batchQuerySchema, orBatchFailure } from './batch-request.ts';
import { batchReport, streamResults } from './batch-response.ts';
import type { Access, Settings } from './options.ts';

/** Says what is wrong with each line of a batch: in one report, or streamed to whoever accepts JSON lines. */
export function checkRoute(settings: Settings, access: Access): ServerRoute {
    return {
        method: 'POST',
        path: `${settings.path}/check`,
        options: {
            ...access,
            description: 'Checks a batch of HTTPS scan records, one JSON object on each line',
            payload: batchPayload(settings.maxBytes),
        },
        handler: (request, h) => orBatchFailure(request, () => checkBatch(request, h, settings)),
    };
}

async function checkBatch(request: Request, h: ResponseToolkit, settings: Settings): Promise<ResponseObject> {
    const { maxReported, maxLineBytes } = settings;
    const { results, ...mending } = queryOf(request, batchQuerySchema);
    const signal = untilClosed(request);
    const { source, received } = batchBytes(request, { ...settings, signal });
    const maxDescribed = results === 'all' && acceptsLines(request) ? Infinity : maxReported;
    const lines = readRecords(source, { maxLineBytes, unpack: false, maxDescribed, received, signal, ...mending });
    if (!acceptsLines(request)) {
        return printableAnswer(request, await batchReport(lines));
    }

    return await streamResults(request, h, { lines, batches: inBatches(lines), stored: false, results });
}

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
    const signal = untilClosed(request);
    const { source, received } = batchBytes(request, { signal });
    const maxDescribed = results === 'all' ? Infinity : maxReported;
    const lines = readRecords(source, { maxLineBytes, unpack: false, maxDescribed, received, signal, ...mending });
    const batches = importRecords(lines, { store, enrich });
    return await streamResults(request, h, { lines, batches, stored: true, results });
}
