import type { Measured } from './section.ts';

export interface Interval {
    readonly low: number;
    readonly high: number;
}

export type Verdict = 'better' | 'same' | 'worse';

/** A figure of scanwire, over that of the peer or of the other checkout. */
export interface Comparison {
    readonly ours: number;
    readonly theirs: number;
    /** Median of the ratios of each round. */
    readonly ratio: number;
    /** Of the ratio; null where rounds are too few. */
    readonly interval: Interval | null;
    /** `same` unless the interval lies wholly on one side of 1. */
    readonly verdict: Verdict;
}

/** Null where one of the two has no such figure. */
export function compared({ scanwire, beside, figures }: Measured, name: string): Comparison | null {
    const ours = scanwire.map((run) => run[name] ?? Number.NaN);
    const theirs = beside?.runs.map((run) => run[name] ?? Number.NaN) ?? [Number.NaN];
    if ([...ours, ...theirs].some(Number.isNaN)) {
        return null;
    }

    // Both may be 0.
    const ratios = ours.map((value, round) => (value === theirs[round] ? 1 : value / (theirs[round] as number)));
    const interval = medianInterval(ratios);
    const verdict = verdictOf(interval, figures[name]?.moreIsBetter ?? false);
    return { ours: median(ours), theirs: median(theirs), ratio: median(ratios), interval, verdict };
}

function verdictOf(interval: Interval | null, moreIsBetter: boolean): Verdict {
    if (interval === null || (interval.low <= 1 && interval.high >= 1)) {
        return 'same';
    }

    return interval.low > 1 === moreIsBetter ? 'better' : 'worse';
}

export function median(values: readonly number[]): number {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** How likely the interval misses the median on either side, at most. */
export const MISS = 0.05;

/**
 * Where the median of what the values were drawn from lies with at least 90 %, whatever the distribution: between the narrowest pair
 * of order statistics for that, such as the 2nd and the 8th of nine values. Null for fewer than five.
 */
export function medianInterval(values: readonly number[]): Interval | null {
    const sorted = values.toSorted((a, b) => a - b);
    const count = sorted.length;
    let below = 0;
    // The chances that exactly, and that at most, so many values lie below the median, as heads of so many tossed coins.
    let exactly = 0.5 ** count;
    let most = exactly;
    while (most <= MISS) {
        below += 1;
        exactly *= (count - below + 1) / below;
        most += exactly;
    }

    const [low, high] = [sorted[below - 1], sorted[count - below]];
    return low === undefined || high === undefined ? null : { low, high };
}
