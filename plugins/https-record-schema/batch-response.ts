import { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';
import { jsonText } from '../../lib/printable.ts';
import type { ImportedLine, RecordLine, RecordLines, RecordProblem, RecordTotals } from '../../lib/records/index.ts';
import { streamCut, untilClosed, withFirst } from '../streamed-answers.ts';
import { type BatchQuery, batchFailure, restReceived } from './batch-request.ts';

/** A line that breaks the schema. */
export interface BadLine extends Pick<RecordLine, 'line' | 'byteOffset'> {
    readonly problems: readonly RecordProblem[];
}

/** The response to a batch of a client that wants one report. */
export interface BatchReport extends RecordTotals {
    /** Whether every line is a record that keeps the schema. */
    readonly ok: boolean;
    /** The bad lines, as many as the plugin's `maxReported` allows. */
    readonly lines: readonly BadLine[];
    /** How many bad lines are counted but not among `lines`. */
    readonly unreported: number;
}

/** Reads the lines to their end. Bad ones are in the report as far as the reader describes them. */
export async function batchReport(checked: RecordLines): Promise<BatchReport> {
    const lines: BadLine[] = [];
    for await (const result of checked) {
        if (!result.ok && result.problems.length > 0) {
            lines.push({ line: result.line, byteOffset: result.byteOffset, problems: result.problems });
        }
    }

    const { totals } = checked;
    return { ok: totals.bad === 0, ...totals, lines, unreported: totals.bad - lines.length };
}

type Result = RecordLine | ImportedLine;

/** What became of a batch, and how much of it the client wants to know. */
export interface StreamedResults extends Pick<BatchQuery, 'results'> {
    /** The lines of the batch, which `batches` reads: for their totals in the end. */
    readonly lines: Pick<RecordLines, 'totals'>;
    /** In the order of the lines. */
    readonly batches: AsyncGenerator<readonly Result[], void, undefined>;
    /** Whether good lines are stored; then the summary says how many were new. */
    readonly stored: boolean;
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
        if (failure.isServer) {
            streamCut(request, 'https-record-schema')();
        }
        await answer.fail(lineOf({ complete: false, ...failure.output.payload }), failure);
    });
    return h.response(answer.stream).type(LINES_TYPE);
}

async function send(
    answer: AnswerStream,
    batches: AsyncIterable<readonly Result[]>,
    { lines, stored, results }: StreamedResults,
    closed: AbortSignal,
): Promise<void> {
    const all = results === 'all';
    let unreported = 0;
    let added = 0;
    let refused = 0;
    for await (const batch of batches) {
        closed.throwIfAborted();
        const bad = batch.filter((result) => !result.ok);
        const reported = all ? batch : bad.filter(({ problems }) => problems.length > 0);
        const sent = reported.length === 0 || (await answer.write(reported.map(resultLine).join('')));
        unreported += (all ? 0 : bad.length - reported.length) + (sent ? 0 : reported.length);
        added += batch.filter((result) => 'isNew' in result && result.isNew).length;
        refused += batch.filter((result) => 'refused' in result && result.refused).length;
    }

    const { records, good, bad, ...others } = lines.totals;
    const counts = { ...(stored && { new: added }), ...(refused > 0 && { refused }) };
    await answer.end(lineOf({ complete: true, ok: bad === 0, records, good, ...counts, bad, ...others, unreported }));
}

function resultLine(result: Result): string {
    const { line, byteOffset } = result;
    if (!result.ok) {
        return lineOf({ line, byteOffset, ok: false, problems: result.problems });
    }

    const mends = result.mends.length > 0 && { mends: result.mends };
    const stored = 'id' in result && { id: result.id, new: result.isNew, ...(result.refused && { refused: true }) };
    return lineOf({ line, byteOffset, ok: true, ...stored, ...mends });
}

function lineOf(value: object): string {
    return `${jsonText(value)}\n`;
}

/** Text on its way to a client that may still be sending its request, and may read nothing before it has sent everything. */
export interface AnswerStream {
    readonly stream: Readable;
    /**
     * Waits while too much is unread, so that a client that reads slowly gets everything. When it reads nothing for a while, text is
     * not sent until it reads again (false): else both sides would wait for each other.
     */
    write(text: string): Promise<boolean>;
    /** Sends last words. */
    end(text: string): Promise<void>;
    /** Sends last words, then breaks the connection: a cut answer must never look complete. */
    fail(text: string, error: Error): Promise<void>;
}

/** What the stream has to know of the connection. */
interface AnswerStreamOptions {
    /** Aborted when the connection is gone. */
    readonly closed: AbortSignal;
    /** How many bytes wait behind the stream for the client. */
    unsent(): number;
    /** Resolves when the client has sent everything, or is not waited for any longer: then the answer may end. */
    rest(): Promise<void>;
    /** How long a client may read nothing, in milliseconds. 10 s by default. */
    readonly patience?: number;
    /** How many bytes may be unread. 4 MiB by default. */
    readonly maxUnread?: number;
}

const LAST_WORDS_MS = 2_000;
const POLL_MS = 10;

/** A stream for one answer. */
export function answerStream({ closed, unsent, rest, patience = 10_000, maxUnread = 4_194_304 }: AnswerStreamOptions): AnswerStream {
    let room = true;
    let reads = true;
    let makeRoom = (): void => {};
    const stream = new Readable({
        highWaterMark: maxUnread,
        read() {
            room = true;
            reads = true;
            makeRoom();
        },
    });
    // Nobody else hears the error where the client went before the answer began.
    stream.on('error', () => {});

    async function waitForRoom(): Promise<void> {
        const freed = new AbortController();
        makeRoom = () => freed.abort();
        await setTimeout(patience, undefined, { signal: AbortSignal.any([freed.signal, closed]) }).catch(() => {});
        reads = room;
    }

    return {
        stream,

        async write(text) {
            if (!room && reads) {
                await waitForRoom();
            }

            if (!room) {
                return false;
            }

            room = stream.push(text);
            return true;
        },

        async end(text) {
            stream.push(text);
            await rest();
            stream.push(null);
        },

        async fail(text, error) {
            stream.push(text);
            for (let waited = 0; waited < LAST_WORDS_MS && !closed.aborted && stream.readableLength + unsent() > 0; waited += POLL_MS) {
                await setTimeout(POLL_MS);
            }

            await rest();
            stream.destroy(error);
        },
    };
}
