export interface TapTotals {
    readonly passed: number;
    readonly failed: number;
}

/** How many assertions passed and failed, from the last line of totals in tap's own output. */
export function tapTotals(output: string): TapTotals {
    const line = output.match(/^# \{ total: .*\}$/gm)?.at(-1) ?? '';
    return { passed: count(line, 'pass'), failed: count(line, 'fail') };
}

function count(line: string, name: string): number {
    return Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
}
