import type { CaptureCode } from '../../lib/records/index.ts';
import { table } from '../output/table.ts';

/** What a run came to; a capture counts in it as it goes on. */
export interface CaptureReport {
    captured: number;
    failed: number;
    /** Targets that the output held already. */
    skipped: number;
    /** The first thousand; those beyond are counted by `failed`. */
    readonly failures: FailedTarget[];
    /** Told to stop before the end. */
    stopped: boolean;
}

interface FailedTarget {
    /** The target, or for a bad line of the list its number, for example `line 7`. */
    readonly target: string;
    readonly code: CaptureCode;
    readonly reason: string;
}

/** A run may have millions of failures, and nobody reads them all. */
const KEPT = 1000;

/** Counts a target that was not captured. */
export function countFailure(report: CaptureReport, failure: FailedTarget): void {
    report.failed += 1;
    if (report.failures.length < KEPT) {
        report.failures.push(failure);
    }
}

/** For people: the failures, and a line with the counts. */
export async function reportText({ captured, failed, skipped, failures, stopped }: CaptureReport): Promise<string> {
    const counts = `${captured} captured, ${failed} failed${skipped === 0 ? '' : `, ${skipped} there already`}${stopped ? '; stopped' : ''}`;
    if (failures.length === 0) {
        return counts;
    }

    const blocked = failures.some(({ code }) => code === 'address_blocked');
    const hint = blocked ? 'SCANWIRE_EGRESS_ALLOW opens addresses that are not public\n' : '';
    const rows = failures.map(({ target, reason }) => [target, reason]);
    const more = failed === failures.length ? '' : `and ${failed - failures.length} more\n`;
    return `${await table(['TARGET', 'FAILURE'], rows, '')}\n${more}${hint}${counts}`;
}

/** Between two counts, in milliseconds. */
const EVERY = 250;

/** One line on stderr that says the counts, where a person looks on. */
export function captureProgress(wanted: boolean): { show(report: Pick<CaptureReport, 'captured' | 'failed'>): void; clear(): void } {
    if (!wanted || !process.stderr.isTTY) {
        return { show() {}, clear() {} };
    }

    let shownAt = 0;
    return {
        show({ captured, failed }) {
            if (performance.now() - shownAt > EVERY) {
                shownAt = performance.now();
                process.stderr.write(`\r${captured} captured, ${failed} failed`);
            }
        },
        clear() {
            process.stderr.write('\r\u001b[K');
        },
    };
}
