/*
 * A length of time in words, such as `5s`, `30m`, `2h` or `7d`. The command line loads this file at every start.
 */

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
];

const SPAN = /^([1-9]\d{0,4})([smhd])$/;

/** Its milliseconds; null for what is no such text. */
export function spanOf(text: string): number | null {
    const [, count, named] = SPAN.exec(text) ?? [];
    const [, length] = UNITS.find(([unit]) => unit === named) ?? [];
    return length === undefined ? null : Number(count) * length;
}

/** The same words for milliseconds, in the largest unit of which they are a whole number: `90s`, `1.5s`. */
export function spanText(ms: number): string {
    const [unit, length] = UNITS.find(([, size]) => ms % size === 0) ?? ['s', 1_000];
    return `${ms / length}${unit}`;
}
