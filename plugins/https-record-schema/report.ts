import type { RecordLines, RecordProblem, RecordTotals } from '../../lib/records/index.ts';

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
export async function batchReport(checked: RecordLines, maxReported: number): Promise<BatchReport> {
    const lines: BadLine[] = [];
    for await (const result of checked) {
        if (!result.ok && lines.length < maxReported) {
            lines.push({ line: result.line, byteOffset: result.byteOffset, problems: result.problems });
        }
    }

    const { totals } = checked;
    return { ok: totals.bad === 0, ...totals, lines, unreported: totals.bad - lines.length };
}
