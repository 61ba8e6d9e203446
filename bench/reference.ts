import type { Figures } from './section.ts';

/** What the floor had at 200 events a second on the machine that absolute bars were made for: milliseconds, and microseconds of the processor an event. */
const THERE: Figures = { p50: 2.1, p95: 3.4, p99: 6.9, cpu: 2_800 };
/** The same as a text. */
export const REFERENCE = 'a floor of 2.1 / 3.4 / 6.9 ms and 2,800 µs at 200/s';

/** An absolute bar: what it is on that machine, and which of the floor's figures it scales with. */
export interface AbsoluteBar {
    readonly there: number;
    readonly by: keyof typeof THERE;
}

/**
 * Makes of what the floor has on this machine what the bars are here, by the names of their figures: a peer that is not to be exceeded.
 *
 * @param prefix What comes before the names of the floor's figures.
 */
export function scaledTo(bars: Readonly<Record<string, AbsoluteBar>>, prefix = ''): (floor: Figures) => Figures {
    return (floor) =>
        Object.fromEntries(
            Object.entries(bars).map(([name, { there, by }]) => [
                name,
                (there * (floor[`${prefix}${by}`] as number)) / (THERE[by] as number),
            ]),
        );
}
