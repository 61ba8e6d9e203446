import { checkRecordLines, type RecordProblem, type RecordTotals } from '../lib/records/index.ts';
import { unpacked } from '../lib/unpacked.ts';

export interface RecordsReport extends RecordTotals {
    /** Of the first bad lines, in order; a line may have several. */
    readonly problems: readonly LineProblem[];
    /** Problems beyond those. */
    readonly moreProblems: number;
}

export interface LineProblem extends RecordProblem {
    /** From 1. */
    readonly line: number;
    readonly byteOffset: number;
}

/** A file may have millions of bad lines, and nobody reads them all. */
const KEPT = 1000;

/** Checks a file of records, plain or packed with gzip. */
export async function checkRecords(source: AsyncIterable<Uint8Array>): Promise<RecordsReport> {
    const lines = checkRecordLines(unpacked(source));
    const kept: LineProblem[] = [];
    let more = 0;
    for await (const checked of lines) {
        for (const problem of checked.ok ? [] : checked.problems) {
            if (kept.length < KEPT) {
                kept.push({ line: checked.line, byteOffset: checked.byteOffset, ...problem });
            } else {
                more += 1;
            }
        }
    }

    return { ...lines.totals, problems: kept, moreProblems: more };
}
