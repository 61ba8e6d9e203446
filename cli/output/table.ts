import { printable } from '../../lib/printable.ts';

/** Aligned columns under a head, without lines or colours. `none` is said when there are no rows. */
export async function table(head: readonly string[], rows: readonly (readonly string[])[], none: string): Promise<string> {
    return rows.length === 0 ? none : aligned([head, ...rows]);
}

const GAP = '  ';

/** Rows in aligned columns, for example names and values. */
export async function aligned(rows: readonly (readonly string[])[]): Promise<string> {
    const shown = rows.map((row) => row.map(printable));
    const columns = await widthOf(shown.flat());
    const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => columns(row[column] ?? ''))));
    return shown
        .map((row) =>
            row
                .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - columns(cell)))
                .join(GAP)
                .trimEnd(),
        )
        .join('\n');
}

/** How many columns of a terminal a text takes. What knows that of every script is loaded only where it is needed. */
async function widthOf(texts: readonly string[]): Promise<(text: string) => number> {
    return texts.every((text) => /^[ -~…\uFFFD]*$/.test(text)) ? (text) => text.length : (await import('string-width')).default;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Units with their length in seconds, and what one of them ago and from now is called where it has a name. */
const UNITS: readonly (readonly [unit: string, seconds: number, ago?: string, ahead?: string])[] = [
    ['year', 365 * DAY, 'last year', 'next year'],
    ['month', 30 * DAY, 'last month', 'next month'],
    ['day', DAY, 'yesterday', 'tomorrow'],
    ['hour', HOUR],
    ['minute', MINUTE],
    ['second', 1],
];

/**
 * `5 minutes ago`, `in 2 hours`, `now`; `never` for null. By hand, since `Intl.RelativeTimeFormat` takes longer to load than all else
 * that a command needs.
 *
 * @param time An ISO 8601 text or a date.
 */
export function relativeTime(time: string | Date | null, now: Date): string {
    if (time === null) {
        return 'never';
    }

    const seconds = Math.round((new Date(time).getTime() - now.getTime()) / 1000);
    const [unit, size, ago, ahead] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['', 1];
    const count = Math.floor(Math.abs(seconds) / size);
    const named = seconds < 0 ? ago : ahead;
    if (count === 0 || (count === 1 && named !== undefined)) {
        return named ?? 'now';
    }

    const span = `${count} ${unit}${count === 1 ? '' : 's'}`;
    return seconds < 0 ? `${span} ago` : `in ${span}`;
}

/** `2026-11-21 09:30:00 UTC`. */
export function utcTime(time: string | Date): string {
    return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** `1,234`, or `10,000+`. */
export function countText({ count, more }: { readonly count: number; readonly more: boolean }): string {
    return `${count.toLocaleString('en')}${more ? '+' : ''}`;
}

/** The day of a time in UTC: `2026-11-27`. */
export function isoDay(time: Date | string): string {
    return new Date(time).toISOString().slice(0, 10);
}
