const NO_LINES = {
    top: '',
    'top-mid': '',
    'top-left': '',
    'top-right': '',
    bottom: '',
    'bottom-mid': '',
    'bottom-left': '',
    'bottom-right': '',
    left: '',
    'left-mid': '',
    mid: '',
    'mid-mid': '',
    right: '',
    'right-mid': '',
    middle: '  ',
};

/** Aligned columns under a head, without lines or colours. `none` is said when there are no rows. */
export async function table(head: readonly string[], rows: readonly (readonly string[])[], none: string): Promise<string> {
    return rows.length === 0 ? none : align([head, ...rows]);
}

/** Names and values below each other. */
export async function facts(pairs: readonly (readonly [name: string, value: string])[]): Promise<string> {
    return align(pairs);
}

/** The module is loaded only when something is drawn: it takes as long as a whole command otherwise does. */
async function align(rows: readonly (readonly string[])[]): Promise<string> {
    const { default: Table } = await import('cli-table3');
    const drawn = new Table({ chars: NO_LINES, style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true } });
    drawn.push(...rows.map((row) => row.map(printable)));
    return drawn
        .toString()
        .split('\n')
        .map((line) => line.trimEnd())
        .join('\n');
}

/** Text from outside, safe to print on a terminal: control and direction characters are shown as `�`. */
export function printable(text: string): string {
    return text.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\uFFFD');
}

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
