import type { Boom } from '@hapi/boom';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import type { ImportedLine, RecordLine, RecordTotals } from '../../lib/records/index.ts';
import { type AnswerStream, answerStream } from './answer-stream.ts';
import { restReceived } from './batch.ts';
import { untilClosed } from './until-closed.ts';

export interface StreamedResults {
    /** In the order of the lines. */
    readonly batches: AsyncGenerator<readonly (RecordLine | ImportedLine)[], void, undefined>;
    /** Of all lines, asked for when they came out. */
    totals(): RecordTotals;
    /** Whether good lines are stored; then the summary says how many were new. */
    readonly stored: boolean;
    /** Describes good lines as well, and every line. */
    readonly all: boolean;
    /** How many bad lines are described, unless `all`. */
    readonly maxReported: number;
    /** What the client is told of a failure. */
    failure(error: unknown): Boom;
}

type Batch = readonly (RecordLine | ImportedLine)[];

export const LINES_TYPE = 'application/x-ndjson';

/**
 * Answers with a JSON object on each line: the results as they come, and a summary at the end, by which a client knows that
 * the answer is complete. The first batch is awaited before, so that what fails at once is a proper error.
 */
export async function streamResults(request: Request, h: ResponseToolkit, results: StreamedResults): Promise<ResponseObject> {
    const { res } = request.raw;
    const closed = untilClosed(request);
    const first = await results.batches.next().catch((error: unknown) => {
        throw results.failure(error);
    });
    const answer = answerStream({ closed, unsent: () => res.writableLength, rest: () => restReceived(request) });
    void send(answer, first, results, closed).catch(async (error: unknown) => {
        const failure = results.failure(error);
        await answer.fail(lineOf({ complete: false, ...failure.output.payload }), failure);
    });
    return h.response(answer.stream).type(LINES_TYPE);
}

async function send(
    answer: AnswerStream,
    first: IteratorResult<Batch, void>,
    { batches, totals, stored, all, maxReported }: StreamedResults,
    closed: AbortSignal,
): Promise<void> {
    let described = 0;
    let unreported = 0;
    let added = 0;
    try {
        for (let next = first; next.done !== true; next = await batches.next()) {
            closed.throwIfAborted();
            const bad = next.value.filter(({ ok }) => !ok);
            const told = all ? next.value : bad.slice(0, maxReported - described);
            const taken = told.length === 0 || (await answer.write(told.map(resultLine).join('')));
            described += told.length;
            unreported += (all ? 0 : bad.length - told.length) + (taken ? 0 : told.length);
            added += next.value.filter((result) => 'isNew' in result && result.isNew).length;
        }
    } finally {
        void batches.return();
    }

    const { records, good, bad, ...others } = totals();
    await answer.end(lineOf({ complete: true, ok: bad === 0, records, good, ...(stored && { new: added }), bad, ...others, unreported }));
}

function resultLine(result: RecordLine | ImportedLine): string {
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
