/*
 * Times as people write them: lengths in words, such as `5s`, `30m`, `2h` or `7d`, and instants of ISO 8601. The command line loads this file at every start, and no Joi.
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

const ISO_WITH_ZONE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})$/i;
const DAY = /^(?:[+-]\d{2})?(\d{4})-(\d{2})-(\d{2})/;

/** The time of an ISO 8601 text with a zone; null for anything else. */
export function instantOf(text: string): Date | null {
    if (!ISO_WITH_ZONE.test(text) || !namesRealDay(text)) {
        return null;
    }

    const time = new Date(
        text
            .toUpperCase()
            .replace(',', '.')
            .replace(/([+-]\d{2})(\d{2})$/, '$1:$2'),
    );
    return Number.isNaN(time.getTime()) ? null : time;
}

/** Whether the month of an ISO 8601 text has the day that it begins with: JavaScript itself takes 30 February for 2 March. True where none is named. */
export function namesRealDay(text: string): boolean {
    const [, year, month, day] = DAY.exec(text) ?? [];
    return month === undefined || Number(day) <= daysIn(Number(year), Number(month));
}

function daysIn(year: number, month: number): number {
    return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
