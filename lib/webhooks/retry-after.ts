const MAX_DELAY = 24 * 60 * 60 * 1000;

const MONTH = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
/** The three forms of RFC 9110, 5.6.7: the usual one, RFC 850's and that of C's `asctime`. */
const DATES: readonly RegExp[] = [
    new RegExp(`^[A-Z][a-z]{2}, \\d{2} (${MONTH}) \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$`),
    new RegExp(`^[A-Z][a-z]{5,8}, \\d{2}-(${MONTH})-\\d{2} \\d{2}:\\d{2}:\\d{2} GMT$`),
    new RegExp(`^[A-Z][a-z]{2} (${MONTH}) [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}$`),
];

/**
 * A receiver's `Retry-After` in milliseconds from `now`, at most 24 hours. Null for anything but one value of whole seconds or
 * one HTTP date; a date that has passed is 0.
 */
export function retryAfter(value: string | readonly string[] | undefined, now: Date): number | null {
    if (typeof value !== 'string') {
        return null;
    }

    const text = value.trim();
    const delay = /^\d{1,15}$/.test(text) ? Number(text) * 1000 : dateOf(text) - now.getTime();
    return Number.isFinite(delay) ? Math.min(Math.max(delay, 0), MAX_DELAY) : null;
}

function dateOf(text: string): number {
    const form = DATES.findIndex((pattern) => pattern.test(text));
    return form === -1 ? Number.NaN : Date.parse(form === 2 ? `${text} GMT` : text);
}
