import { ScanwireError } from '../../lib/errors.ts';
import { jsonText, printable, printableJson } from '../../lib/printable.ts';
import type { RecordProblem } from '../../lib/records/check-record.ts';
import { type DecodedRecord, readDecodedRecords } from '../../lib/records/decode-records.ts';
import {
    type ReadRecordsOptions,
    type RecordLine,
    type RecordLines,
    type RecordTotals,
    readRecords,
} from '../../lib/records/read-records.ts';
import { bodyText } from '../../lib/records/response/charset.ts';
import type { HttpResponse } from '../../lib/records/response/parse-response.ts';
import { writeRecords } from '../../lib/records/write-records.ts';
import { table } from '../output/table.ts';
import { writeOutput } from '../output/write-output.ts';

/** How much of a file is read. */
export type ReadingLimits = Pick<ReadRecordsOptions, 'maxLineBytes'>;

/** What reading a file of records has come to. */
export interface RecordsReport extends RecordTotals {
    /** Of the first bad lines, in order; a line may have several. */
    readonly problems: readonly LineProblem[];
    /** Problems beyond those. */
    readonly moreProblems: number;
}

type LineProblem = RecordProblem & Pick<RecordLine<unknown>, 'line' | 'byteOffset'>;

interface Reporter {
    note(line: RecordLine<unknown>): void;
    report(): RecordsReport;
}

/** A file may have millions of bad lines, and nobody reads them all. */
const KEPT = 1000;

/** Takes down what is wrong while a file is read. */
function recordsReporter(lines: RecordLines<unknown>): Reporter {
    const problems: LineProblem[] = [];
    let moreProblems = 0;

    return {
        note(line) {
            if (line.ok) {
                return;
            }

            for (const problem of line.problems) {
                if (problems.length < KEPT) {
                    problems.push({ line: line.line, byteOffset: line.byteOffset, ...problem });
                } else {
                    moreProblems += 1;
                }
            }
        },

        report: () => ({ ...lines.totals, problems, moreProblems }),
    };
}

/** The good records of a file; the bad lines go to the report. */
async function* goodRecords<R>(lines: RecordLines<R>, { note }: Reporter): AsyncGenerator<R, void, undefined> {
    for await (const batch of lines.batches()) {
        for (const line of batch) {
            note(line);
            if (line.ok) {
                yield line.record;
            }
        }
    }
}

/** For people: the problems, and the counts. */
export async function reportText(report: RecordsReport): Promise<string> {
    const { problems, moreProblems } = report;
    const rows = problems.map(({ line, byteOffset, field, reason }) => [String(line), String(byteOffset), field, reason]);
    const listed = rows.length === 0 ? [] : [await table(['LINE', 'BYTE', 'FIELD', 'PROBLEM'], rows, '')];
    const more = moreProblems === 0 ? [] : [`and ${moreProblems} more problems`];
    return [...listed, ...more, counts(report)].join('\n');
}

function counts({ good, bad, mended, mends }: RecordsReport): string {
    const summary = `${good} good, ${bad} bad`;
    if (mends === undefined) {
        return summary;
    }

    const kinds = Object.entries(mends).flatMap(([kind, count]) => (count === 0 ? [] : [`${count} ${kind}`]));
    return `${summary}, ${mended} of the good ones mended${kinds.length === 0 ? '' : `: ${kinds.join(', ')}`}`;
}

/** Checks a file of records, plain or packed with gzip. */
export async function check(source: AsyncIterable<Uint8Array>, limits: ReadingLimits = {}): Promise<RecordsReport> {
    const lines = readRecords(source, limits);
    const reporter = recordsReporter(lines);
    for await (const batch of lines.batches()) {
        batch.forEach(reporter.note);
    }

    return reporter.report();
}

/** How a file of records is read. */
export interface ReadOptions extends ReadingLimits {
    /** A JSON object in each line in place of text. */
    readonly json: boolean;
    /** With the body of each response, as text. */
    readonly body: boolean;
}

/** Characters that go out together. */
const CHUNK = 65_536;

/** Prints what is in the records of a file, a line for each. */
export async function read(source: AsyncIterable<Uint8Array>, { json, body, ...limits }: ReadOptions): Promise<RecordsReport> {
    const lines = readDecodedRecords(source, limits);
    const reporter = recordsReporter(lines);

    async function* printed(): AsyncGenerator<Uint8Array, void, undefined> {
        let text = '';
        for await (const record of goodRecords(lines, reporter)) {
            text += `${json ? jsonText(documentOf(record, body)) : lineOf(record, body)}\n`;
            if (text.length >= CHUNK) {
                yield Buffer.from(text);
                text = '';
            }
        }

        yield Buffer.from(text);
    }

    await writeOutput(printed(), undefined);
    return reporter.report();
}

function documentOf({ response, ...endpoint }: DecodedRecord, withBody: boolean): object {
    if (!response.http) {
        return { ...endpoint, response: { http: false, bytes: response.bytes.length } };
    }

    const { body, rawBody: _, ...head } = response;
    return { ...endpoint, response: { ...head, bodyBytes: body.length, ...(withBody && { body: bodyText(response) }) } };
}

function lineOf({ host, ip, port, path, response }: DecodedRecord, withBody: boolean): string {
    const where = `https://${host.includes(':') ? `[${host}]` : host}:${port}${path ?? '/'}`;
    const what = response.http ? [String(response.status), where, ip, ...described(response)] : ['---', where, ip, 'not HTTP'];
    const line = printable(what.join('  '));
    return withBody && response.http ? `${line}\n\n${bodyLines(response)}\n` : line;
}

function described({ headers, title, truncated }: HttpResponse): string[] {
    const server = headers.find(({ name }) => name === 'server')?.value ?? '';
    return [server, title === null ? '' : JSON.stringify(title), truncated ? '(truncated)' : ''].filter((text) => text !== '');
}

function bodyLines(response: HttpResponse): string {
    return bodyText(response).replaceAll('\t', '    ').split(/\r?\n/).map(printable).join('\n');
}

/** How a file of records is written anew. */
export interface RewriteOptions extends ReadRecordsOptions {
    readonly gzip?: boolean;
    /** File to write; stdout by default. */
    readonly output?: string;
    /** The file to write is the one that is read. */
    readonly inPlace?: boolean;
    /** Writes signs that a terminal acts on as JSON escapes them: the records say the same. */
    readonly printable?: boolean;
}

/** What writing a file of records anew has come to. */
export interface RewriteReport extends RecordsReport {
    /** False when the file was left as it was: no line was good, or bad ones would have been lost with the file that is read. */
    readonly written: boolean;
}

/** Writes the good records of a file, mended where that is asked for. */
export async function rewrite(source: AsyncIterable<Uint8Array>, options: RewriteOptions): Promise<RewriteReport> {
    const { gzip = false, output, inPlace = false, printable: isPrintable = false, ...reading } = options;
    const lines = readRecords(source, reading);
    const reporter = recordsReporter(lines);
    let written = true;
    const bytes = writeRecords(goodRecords(lines, reporter), { gzip });
    await writeOutput(isPrintable ? printableLinesOf(bytes) : bytes, output, {
        isWanted() {
            const { good, bad } = lines.totals;
            written = bad === 0 || (good > 0 && !inPlace);
            return written;
        },
    });
    return { ...reporter.report(), written };
}

/** Pieces of whole lines stay what they are. */
async function* printableLinesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
    for await (const piece of pieces) {
        yield printableJson(Buffer.from(piece).toString());
    }
}

/** The options of a command by which it knows how records go out. */
interface RecordsOut {
    readonly gzip?: unknown;
    readonly output?: unknown;
    readonly json?: unknown;
}

/**
 * Whether the output is to be gzip: it is asked for, or the name of the file says so.
 *
 * @throws ScanwireError `INVALID_INPUT` for a terminal, which would act on the bytes.
 */
export function packs({ gzip, output }: RecordsOut): boolean {
    if (gzip === true && output === undefined && process.stdout.isTTY) {
        throw new ScanwireError('INVALID_INPUT', 'Cannot write packed records to a terminal: name a file by --output', { field: 'gzip' });
    }

    return gzip === true || (typeof output === 'string' && /\.gz$/i.test(output));
}

/** Whether records are shown, to a person or as an answer in JSON. In a file, or in a pipe to one, they are as they are. */
export function shows({ gzip, output, json }: RecordsOut): boolean {
    return output === undefined && gzip !== true && (json === true || process.stdout.isTTY);
}
