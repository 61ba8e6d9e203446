import { printable } from './printable.ts';

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
