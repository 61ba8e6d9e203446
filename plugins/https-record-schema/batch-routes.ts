import type { Request, ResponseObject, ResponseToolkit, ServerRoute } from '@hapi/hapi';
import { inBatches } from '../../lib/records/import-records.ts';
import {
    importRecords,
    type RecordLines,
    type RecordProblem,
    type RecordStore,
    type RecordTotals,
    readRecords,
} from '../../lib/records/index.ts';
import { untilClosed } from '../store-routes.ts';
import { acceptsLines, batchBytes, batchPayload, batchQuerySchema, orBatchFailure, queryOf } from './batch.ts';
import type { Access, Settings } from './options.ts';
import { streamResults } from './stream-results.ts';

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

async function checkBatch(request: Request, h: ResponseToolkit, settings: Settings): Promise<BatchReport | ResponseObject> {
    const { maxReported, maxLineBytes } = settings;
    const { results, ...mending } = queryOf(request, batchQuerySchema);
    const bytes = batchBytes(request, { ...settings, signal: untilClosed(request) });
    const lines = readRecords(bytes, { maxLineBytes, unpack: false, ...mending });
    if (!acceptsLines(request)) {
        return await batchReport(lines, maxReported);
    }

    const [batches, totals] = [inBatches(lines), () => lines.totals];
    return await streamResults(request, h, { batches, totals, stored: false, all: results === 'all', maxReported });
}

/** A line that breaks the schema. */
export interface BadLine {
    /** From 1. */
    readonly line: number;
    /** Where the line begins, in bytes from the start of the batch (after decompression). */
    readonly byteOffset: number;
    readonly problems: readonly RecordProblem[];
}

/** The answer to a batch. */
export interface BatchReport extends RecordTotals {
    /** Whether every line is a record that keeps the schema. */
    readonly ok: boolean;
    /** The bad lines, as many as the plugin's `maxReported` allows. */
    readonly lines: readonly BadLine[];
    /** How many bad lines are counted but not among `lines`. */
    readonly unreported: number;
}

/** Reads the lines to their end. */
async function batchReport(checked: RecordLines, maxReported: number): Promise<BatchReport> {
    const lines: BadLine[] = [];
    for await (const result of checked) {
        if (!result.ok && lines.length < maxReported) {
            lines.push({ line: result.line, byteOffset: result.byteOffset, problems: result.problems });
        }
    }

    const { totals } = checked;
    return { ok: totals.bad === 0, ...totals, lines, unreported: totals.bad - lines.length };
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
    const lines = readRecords(batchBytes(request), { maxLineBytes, unpack: false, ...mending });
    const [batches, totals] = [importRecords(lines, { store, enrich }), () => lines.totals];
    return await streamResults(request, h, { batches, totals, stored: true, all: results === 'all', maxReported });
}
