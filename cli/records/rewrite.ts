import type { ReadRecordsOptions } from '../../lib/records/read-lines.ts';
import { readRecords } from '../../lib/records/read-records.ts';
import { writeRecords } from '../../lib/records/write-records.ts';
import { goodRecords, type RecordsReport, recordsReporter } from './records-report.ts';
import { writeOutput } from './write-output.ts';

export interface RewriteOptions extends ReadRecordsOptions {
    readonly gzip?: boolean;
    /** File to write; stdout by default. */
    readonly output?: string;
    /** The file to write is the one that is read. */
    readonly inPlace?: boolean;
}

export interface RewriteReport extends RecordsReport {
    /** False when the file was left as it was: no line was good, or bad ones would have been lost with the file that is read. */
    readonly written: boolean;
}

/** Writes the good records of a file, mended where that is asked for. */
export async function rewrite(source: AsyncIterable<Uint8Array>, options: RewriteOptions): Promise<RewriteReport> {
    const { gzip = false, output, inPlace = false, ...reading } = options;
    const lines = readRecords(source, reading);
    const reporter = recordsReporter(lines);
    let written = true;
    await writeOutput(writeRecords(goodRecords(lines, reporter), { gzip }), output, () => {
        const { good, bad } = lines.totals;
        written = bad === 0 || (good > 0 && !inPlace);
        return written;
    });
    return { ...reporter.report(), written };
}
