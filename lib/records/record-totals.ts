import { MEND_KINDS, type MendCounts, type MendKind, type MendProfile } from './mend-record.ts';
import type { ReadRecord } from './read-record.ts';

/** What was read so far, counted. */
export interface RecordTotals {
    /** Lines that hold something: `good` and `bad` ones. */
    readonly records: number;
    readonly good: number;
    readonly bad: number;
    /** Lines that hold nothing but white space; they are passed over. */
    readonly blank: number;
    /** Unpacked. */
    readonly bytes: number;
    /** Records that were mended, among the good ones; where mending was asked for. */
    readonly mended?: number;
    /** How many of them had which kind of mend. */
    readonly mends?: MendCounts;
}

export interface RecordCounter {
    /** Null for a blank line. */
    count(read: ReadRecord<unknown> | null): void;
    totals(bytes: number): RecordTotals;
}

export function recordCounter(mend: MendProfile | undefined): RecordCounter {
    const mends = Object.fromEntries(MEND_KINDS.map((kind) => [kind, 0])) as Record<MendKind, number>;
    let good = 0;
    let bad = 0;
    let blank = 0;
    let mended = 0;

    function countMends(kinds: readonly MendKind[]): void {
        mended += kinds.length > 0 ? 1 : 0;
        for (const kind of kinds) {
            mends[kind] += 1;
        }
    }

    return {
        count(read) {
            if (read === null) {
                blank += 1;
            } else if (read.ok) {
                good += 1;
                countMends(read.mends);
            } else {
                bad += 1;
            }
        },

        totals(bytes) {
            const totals = { records: good + bad, good, bad, blank, bytes };
            return mend === undefined ? totals : { ...totals, mended, mends: { ...mends } };
        },
    };
}
