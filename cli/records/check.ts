import { readRecords } from '../../lib/records/read-records.ts';
import { type ReadingLimits, type RecordsReport, recordsReporter } from './records-report.ts';

/** Checks a file of records, plain or packed with gzip. */
export async function check(source: AsyncIterable<Uint8Array>, limits: ReadingLimits = {}): Promise<RecordsReport> {
    const lines = readRecords(source, limits);
    const reporter = recordsReporter(lines);
    for await (const batch of lines.batches()) {
        batch.forEach(reporter.note);
    }

    return reporter.report();
}
