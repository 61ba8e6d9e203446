/** Values from the first to the last, both included. */
export type Interval<T extends number | string> = readonly [first: T, last: T];

/**
 * The same values in ascending intervals that do not overlap. The first of none may lie behind its last.
 *
 * @param meet Whether what ends with the one goes on with the other, where the ends of intervals need not overlap for that.
 */
export function mergedIntervals<T extends number | string>(
    intervals: readonly Interval<T>[],
    meet: (last: T, first: T) => boolean = (last, first) => first <= last,
): readonly Interval<T>[] {
    const merged: [T, T][] = [];
    for (const [first, last] of intervals.toSorted(([one], [other]) => (one < other ? -1 : Number(one > other)))) {
        const before = merged.at(-1);
        if (before === undefined || !meet(before[1], first)) {
            merged.push([first, last]);
        } else if (before[1] < last) {
            before[1] = last;
        }
    }

    return merged;
}

/** Whether a value lies in one of some merged intervals; of many it looks at few. */
export function isWithinOne<T extends number | string>(merged: readonly Interval<T>[], value: T): boolean {
    let [low, high] = [0, merged.length];
    while (low < high) {
        const middle = (low + high) >>> 1;
        const [first, last] = merged[middle] as Interval<T>;
        if (first <= value && value <= last) {
            return true;
        }
        if (value < first) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }

    return false;
}
