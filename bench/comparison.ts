import Table from 'cli-table3';
import type { Figure, Figures, Measured } from './section.ts';

interface Interval {
    readonly low: number;
    readonly high: number;
}

type Verdict = 'better' | 'same' | 'worse';

/** A figure of scanwire, over that of the peer or of the other checkout. */
interface Comparison {
    readonly ours: number;
    readonly theirs: number;
    /** Median of the ratios of each round. */
    readonly ratio: number;
    /** Of the ratio; null where rounds are too few. */
    readonly interval: Interval | null;
    /** `same` unless the interval lies wholly on one side of 1. */
    readonly verdict: Verdict;
    /** Whether the ratio, of a time or a cost its inverse, is {@link KEPT} at least. */
    readonly keeps: boolean;
}

/** What a change may leave of a speed. A ratio is held to it whatever its interval: many rounds can find less than 3 % worse, and few miss more. */
const KEPT = 0.97;

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
    const moreIsBetter = figures[name]?.moreIsBetter ?? false;
    const ratio = median(ratios);
    const keeps = (moreIsBetter ? ratio : 1 / ratio) >= KEPT;
    return { ours: median(ours), theirs: median(theirs), ratio, interval, verdict: verdictOf(interval, moreIsBetter), keeps };
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
const MISS = 0.05;

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

/** Between rows. */
const NO_LINES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** A table of each measurement, with a verdict on each figure where another checkout was measured beside it. */
export function tablesOf(measurements: readonly Measured[], withVerdict: boolean): string {
    return measurements.map((measured) => `${measured.title}\n${tableOf(measured, withVerdict)}`).join('\n\n');
}

function tableOf(measured: Measured, withVerdict: boolean): string {
    const compares =
        measured.beside === undefined
            ? []
            : [measured.beside.name, 'ratio', '90 % interval', ...(withVerdict ? ['verdict', `≥ ${KEPT}`] : [])];
    const withBar = Object.values(measured.figures).some(({ bar }) => bar !== undefined);
    const head = ['', 'scanwire', ...compares, ...(withBar ? ['bar'] : [])];
    const table = new Table({
        head,
        chars: NO_LINES,
        style: { head: [], border: [] },
        colAligns: head.map((_, index) => (index === 0 ? 'left' : 'right')),
    });
    for (const [name, figure] of Object.entries(measured.figures)) {
        const cells = cellsOf(measured, name, figure);
        if (cells !== null) {
            table.push([figure.label, ...cells.slice(0, 1 + compares.length), ...(withBar ? [figure.bar ?? ''] : [])]);
        }
    }

    return table.toString();
}

/** Null where nothing was measured, as CPU time of a server elsewhere. */
function cellsOf(measured: Measured, name: string, { digits = 0 }: Figure): readonly string[] | null {
    const comparison = compared(measured, name);
    if (comparison !== null) {
        const { ratio, interval, verdict, keeps } = comparison;
        const between = interval === null ? '' : `${fixed(interval.low, 2)} to ${fixed(interval.high, 2)}`;
        const [ours, theirs] = [measured.scanwire, measured.beside?.runs ?? []].map((runs) => spreadOf(valuesOf(runs, name), digits));
        return [ours ?? '', theirs ?? '', fixed(ratio, 2), between, interval === null ? '' : verdict, keeps ? 'yes' : 'no'];
    }

    const values = valuesOf(measured.scanwire, name);
    return values.length === 0 ? null : [spreadOf(values, digits), '', '', '', '', ''];
}

function valuesOf(runs: readonly Figures[], name: string): readonly number[] {
    return runs.map((figures) => figures[name]).filter((value) => value !== undefined);
}

/** The median, and between what all rounds lie where there are several. */
export function spreadOf(values: readonly number[], digits: number): string {
    const [least, most] = [Math.min(...values), Math.max(...values)].map((value) => fixed(value, digits));
    const middle = fixed(median(values), digits);
    return values.length === 1 ? middle : `${middle} (${least} to ${most})`;
}

/** How many figures there are of each verdict, and which are worse; and how many keep {@link KEPT}, and which do not. */
export function summaryOf(measurements: readonly Measured[]): string {
    const all = measurements.flatMap((measured) =>
        Object.entries(measured.figures).flatMap(([name, { label }]) => {
            const comparison = compared(measured, name);
            return comparison === null ? [] : [{ ...comparison, what: `${measured.title}: ${label.trim()}` }];
        }),
    );
    const line = ({ what, ratio }: (typeof all)[number]): string => `  ${what}: ${fixed(ratio, 2)}`;
    const judged = all.filter(({ interval }) => interval !== null);
    const of = (verdict: Verdict) => judged.filter((one) => one.verdict === verdict);
    const counts = `${of('better').length} better, ${of('same').length} the same, ${of('worse').length} worse`;
    const lost = all.filter(({ keeps }) => !keeps);
    return [
        `${counts}; by chance alone up to ${Math.ceil(judged.length * MISS)} would be worse`,
        ...of('worse').map(line),
        `${all.length - lost.length} of ${all.length} keep ${KEPT} of what the other has${lost.length === 0 ? '' : ', and these do not:'}`,
        ...lost.map(line),
    ].join('\n');
}

function fixed(value: number, digits: number): string {
    return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
