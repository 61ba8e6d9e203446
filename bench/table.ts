import Table from 'cli-table3';
import { type Comparison, compared, MISS, median } from './comparison.ts';
import type { Figure, Measured } from './section.ts';

/** Between rows. */
const NO_LINES = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' };

/** A table of each measurement, with a verdict on each figure where another checkout was measured beside it. */
export function tablesOf(measurements: readonly Measured[], withVerdict: boolean): string {
    return measurements.map((measured) => `${measured.title}\n${tableOf(measured, withVerdict)}`).join('\n\n');
}

function tableOf(measured: Measured, withVerdict: boolean): string {
    const compares =
        measured.beside === undefined ? [] : [measured.beside.name, 'ratio', '90 % interval', ...(withVerdict ? ['verdict'] : [])];
    const head = ['', 'scanwire', ...compares];
    const table = new Table({
        head,
        chars: NO_LINES,
        style: { head: [], border: [] },
        colAligns: head.map((_, index) => (index === 0 ? 'left' : 'right')),
    });
    for (const [name, figure] of Object.entries(measured.figures)) {
        const cells = cellsOf(measured, name, figure);
        if (cells !== null) {
            table.push([figure.label, ...cells].slice(0, head.length));
        }
    }

    return table.toString();
}

/** Null where nothing was measured, as CPU time of a server elsewhere. */
function cellsOf(measured: Measured, name: string, { digits = 0 }: Figure): readonly string[] | null {
    const comparison = compared(measured, name);
    if (comparison !== null) {
        const { ours, theirs, ratio, interval, verdict } = comparison;
        const between = interval === null ? '' : `${fixed(interval.low, 2)} to ${fixed(interval.high, 2)}`;
        return [fixed(ours, digits), fixed(theirs, digits), fixed(ratio, 2), between, interval === null ? '' : verdict];
    }

    const values = measured.scanwire.map((figures) => figures[name]).filter((value) => value !== undefined);
    return values.length === 0 ? null : [fixed(median(values), digits), '', '', '', ''];
}

/** How many figures there are of each verdict, and which are worse. */
export function summaryOf(measurements: readonly Measured[]): string {
    const judged = measurements.flatMap((measured) =>
        Object.entries(measured.figures)
            .map(([name, { label }]) => ({ what: `${measured.title}: ${label.trim()}`, comparison: compared(measured, name) }))
            .filter(({ comparison }) => comparison !== null && comparison.interval !== null),
    );
    const of = (verdict: Comparison['verdict']) => judged.filter(({ comparison }) => comparison?.verdict === verdict);
    const worse = of('worse').map(({ what, comparison }) => `  ${what}: ${fixed(comparison?.ratio ?? 0, 2)}`);
    const counts = `${of('better').length} better, ${of('same').length} the same, ${worse.length} worse`;
    return [`${counts}; by chance alone up to ${Math.round(judged.length * MISS)} would be worse`, ...worse].join('\n');
}

function fixed(value: number, digits: number): string {
    return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
