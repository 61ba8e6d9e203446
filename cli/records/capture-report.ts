import type { CaptureCode } from '../../lib/records/index.ts';
import { table } from '../output/table.ts';

/** What a run came to. */
export interface CaptureReport {
    readonly captured: number;
    readonly failed: number;
    /** Targets that the output held already. */
    readonly skipped: number;
    /** The first thousand; those beyond are counted by `failed`. */
    readonly failures: readonly FailedTarget[];
    /** Told to stop before the end. */
    readonly stopped: boolean;
}

export interface FailedTarget {
    /** The target, or for a bad line of the list its number, for example `line 7`. */
    readonly target: string;
    readonly code: CaptureCode;
    readonly reason: string;
}

/** A run may have millions of failures, and nobody reads them all. */
const KEPT = 1000;

/** Counts as the run goes on. */
export interface CaptureTally {
    captured(): void;
    skipped(): void;
    failed(failure: FailedTarget): void;
    report(stopped: boolean): CaptureReport;
}

export function captureTally(): CaptureTally {
    const failures: FailedTarget[] = [];
    let [captured, skipped, failed] = [0, 0, 0];

    return {
        captured() {
            captured += 1;
        },
        skipped() {
            skipped += 1;
        },
        failed(failure) {
            failed += 1;
            if (failures.length < KEPT) {
                failures.push(failure);
            }
        },
        report: (stopped) => ({ captured, failed, skipped, failures, stopped }),
    };
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
