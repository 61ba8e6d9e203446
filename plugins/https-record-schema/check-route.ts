import type { Readable } from 'node:stream';
import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { inBatches } from '../../lib/records/in-batches.ts';
import { readRecords } from '../../lib/records/index.ts';
import { batchBytes } from './batch-bytes.ts';
import { batchFailure } from './batch-failure.ts';
import { acceptsLines, batchPayload, batchQuerySchema, queryOf } from './batch-request.ts';
import type { Access, Settings } from './options.ts';
import { type BatchReport, batchReport } from './report.ts';
import { restReceived } from './rest-received.ts';
import { streamResults } from './stream-results.ts';
import { untilClosed } from './until-closed.ts';

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
        handler: (request, h) => checkBatch(request, h, settings),
    };
}

async function checkBatch(request: Request, h: ResponseToolkit, settings: Settings): Promise<BatchReport | ResponseObject> {
    const { maxReported, maxLineBytes } = settings;
    const failure = (error: unknown) => batchFailure(request, error);
    try {
        const { results, ...mending } = queryOf(request, batchQuerySchema);
        const limits = { ...settings, signal: untilClosed(request) };
        const bytes = batchBytes(request.payload as Readable, request.headers['content-encoding'] as string | undefined, limits);
        const lines = readRecords(bytes, { maxLineBytes, unpack: false, ...mending });
        return acceptsLines(request)
            ? await streamResults(request, h, {
                  batches: inBatches(lines),
                  totals: () => lines.totals,
                  stored: false,
                  all: results === 'all',
                  maxReported,
                  failure,
              })
            : await batchReport(lines, maxReported);
    } catch (error) {
        const told = failure(error);
        await restReceived(request);
        throw told;
    }
}
