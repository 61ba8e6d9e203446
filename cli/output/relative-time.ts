const STEPS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
    ['year', 31_536_000],
    ['month', 2_592_000],
    ['day', 86_400],
    ['hour', 3600],
    ['minute', 60],
    ['second', 1],
];

/**
 * `5 minutes ago`, `in 2 hours`, `now`; `never` for null.
 *
 * @param time An ISO 8601 text or a date.
 */
export function relativeTime(time: string | Date | null, now: Date): string {
    if (time === null) {
        return 'never';
    }

    const seconds = Math.round((new Date(time).getTime() - now.getTime()) / 1000);
    const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ['second', 1];
    return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(Math.trunc(seconds / size), unit);
}
