import { type ReadRecordsOptions, readRecords } from '../../lib/records/read-records.ts';
import { writeRecords } from '../../lib/records/write-records.ts';
import { goodRecords, type RecordsReport, recordsReporter } from './records-report.ts';
import { writeOutput } from './write-output.ts';

export interface RewriteOptions extends ReadRecordsOptions {
    readonly gzip?: boolean;
    /** File to write; stdout by default. */
    readonly output?: string;
}

/** Writes the good records of a file, mended where that is asked for. */
export async function rewrite(source: AsyncIterable<Uint8Array>, options: RewriteOptions): Promise<RecordsReport> {
    const { gzip = false, output, ...reading } = options;
    const lines = readRecords(source, reading);
    const reporter = recordsReporter(lines);
    await writeOutput(writeRecords(goodRecords(lines, reporter), { gzip }), output);
    return reporter.report();
}
