import type { ReadRecordsOptions, RecordLine, RecordLines, RecordProblem, RecordTotals } from '../../lib/records/index.ts';
import { table } from '../output/table.ts';

/** How much of a file is read. */
export type ReadingLimits = Pick<ReadRecordsOptions, 'maxLineBytes'>;

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
export function recordsReporter(lines: RecordLines<unknown>): Reporter {
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
export async function* goodRecords<R>(lines: RecordLines<R>, { note }: Reporter): AsyncGenerator<R, void, undefined> {
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
