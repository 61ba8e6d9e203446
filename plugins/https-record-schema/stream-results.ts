import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { ImportedLine, RecordLine, RecordTotals } from '../../lib/records/index.ts';
import { untilClosed, withFirst } from '../store-routes.ts';
import { type AnswerStream, answerStream } from './answer-stream.ts';
import { batchFailure, restReceived } from './batch.ts';

type Result = RecordLine | ImportedLine;

/** What became of a batch, and how much of it the client wants to know. */
export interface StreamedResults {
    /** In the order of the lines. */
    readonly batches: AsyncGenerator<readonly Result[], void, undefined>;
    /** Of all lines, asked for when they came out. */
    totals(): RecordTotals;
    /** Whether good lines are stored; then the summary says how many were new. */
    readonly stored: boolean;
    /** Describes good lines as well, and every line. */
    readonly all: boolean;
    /** How many bad lines are described, unless `all`. */
    readonly maxReported: number;
}

/** Media type of JSON lines. */
export const LINES_TYPE = 'application/x-ndjson';

/**
 * Answers with a JSON object on each line: the results as they come, and a summary at the end, by which a client knows that the answer
 * is complete. What fails before the first results is thrown.
 */
export async function streamResults(request: Request, h: ResponseToolkit, results: StreamedResults): Promise<ResponseObject> {
    const { res } = request.raw;
    const closed = untilClosed(request);
    const { all } = await withFirst(results.batches);
    const answer = answerStream({ closed, unsent: () => res.writableLength, rest: () => restReceived(request) });
    void send(answer, all, results, closed).catch(async (error: unknown) => {
        const failure = batchFailure(request, error);
        await answer.fail(lineOf({ complete: false, ...failure.output.payload }), failure);
    });
    return h.response(answer.stream).type(LINES_TYPE);
}

async function send(
    answer: AnswerStream,
    batches: AsyncIterable<readonly Result[]>,
    { totals, stored, all, maxReported }: StreamedResults,
    closed: AbortSignal,
): Promise<void> {
    let described = 0;
    let unreported = 0;
    let added = 0;
    for await (const batch of batches) {
        closed.throwIfAborted();
        const bad = batch.filter(({ ok }) => !ok);
        const reported = all ? batch : bad.slice(0, maxReported - described);
        const sent = reported.length === 0 || (await answer.write(reported.map(resultLine).join('')));
        described += reported.length;
        unreported += (all ? 0 : bad.length - reported.length) + (sent ? 0 : reported.length);
        added += batch.filter((result) => 'isNew' in result && result.isNew).length;
    }

    const { records, good, bad, ...others } = totals();
    await answer.end(lineOf({ complete: true, ok: bad === 0, records, good, ...(stored && { new: added }), bad, ...others, unreported }));
}

function resultLine(result: Result): string {
    const { line, byteOffset } = result;
    if (!result.ok) {
        return lineOf({ line, byteOffset, ok: false, problems: result.problems });
    }

    const mends = result.mends.length > 0 && { mends: result.mends };
    return lineOf({ line, byteOffset, ok: true, ...('id' in result && { id: result.id, new: result.isNew }), ...mends });
}

function lineOf(value: object): string {
    return `${JSON.stringify(value)}\n`;
}
