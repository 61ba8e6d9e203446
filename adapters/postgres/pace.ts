/** How many rows a slice has, the first one and any, and how many milliseconds it should take. */
export interface Sizes {
    readonly first: number;
    readonly min: number;
    readonly max: number;
    readonly takes: number;
}

/**
 * How many hosts a slice has, and how many milliseconds it should take, since a request may wait for several. Smaller ones would save
 * little: a third of a slice of 50 is the same for each (measured on the embedded database).
 */
const SLICE: Sizes = { max: 150, first: 75, min: 50, takes: 40 };

/** How many hosts, or other rows, go into a slice, by how long those before took. */
export interface Pace {
    size(): number;
    /**
     * Does the work of a slice of so many.
     *
     * @param most At most so many times as many has the next one.
     * @param took Milliseconds without what the work has waited for others, where it knows.
     */
    timed<T>(
        size: number,
        work: () => Promise<T>,
        told?: { readonly most?: (result: T) => number; readonly took?: (result: T) => number | undefined },
    ): Promise<T>;
}

/** The pace of a series of slices. Of one that took much longer or less only half is believed: something else may have come between. */
export function paceOf(monotonic: () => number = () => performance.now(), slice: Sizes = SLICE): Pace {
    let next: number = slice.first;
    return {
        size: () => next,

        async timed(size, work, { most = () => 2, took = () => undefined } = {}) {
            const begun = monotonic();
            const result = await work();
            const fitting = (size * slice.takes) / Math.max(1, took(result) ?? monotonic() - begun);
            const believed = Math.min(Math.max(fitting, next / 2), most(result) * next);
            next = Math.round(Math.min(Math.max(believed, slice.min), slice.max));
            return result;
        },
    };
}
