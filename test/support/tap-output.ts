export interface TapTotals {
    readonly passed: number;
    readonly failed: number;
}

/** How many assertions passed and failed, when this is the line of tap's output that says so; else null. */
export function tapTotals(line: string): TapTotals | null {
    return /^# \{ total: .*\}$/.test(line) ? { passed: count(line, 'pass'), failed: count(line, 'fail') } : null;
}

/** The name of the test, when this is the line of one that was skipped; else null. */
export function skippedTest(line: string): string | null {
    return /^\s*ok \d+ - (.*?) # skip\b/i.exec(line)?.[1] ?? null;
}

/** A line for each test that was skipped with why it may be, out of the list of those that may, and whether all may. */
export function skipsOf(
    skipped: ReadonlySet<string>,
    reasons: Readonly<Record<string, string>>,
): { readonly lines: readonly string[]; readonly allowed: boolean } {
    const known = new Map(Object.entries(reasons));
    const lines = [...skipped].map(
        (name) => `${known.has(name) ? 'ok' : 'not ok'} - ${name}: ${known.get(name) ?? 'not in test/allowed-skips.json'}`,
    );
    return { lines, allowed: [...skipped].every((name) => known.has(name)) };
}

/** False for the lines of tap's output about what passed inside a file, which are very many. */
export function isWorthReading(line: string): boolean {
    return (
        !/^\s+(?:ok |# Subtest|# time=|\d+\.\.\d+)|^\s*$|^# Subtest|^TAP version|^\d+\.\.\d+|^# No coverage/.test(line) ||
        /# (?:skip|todo)/i.test(line)
    );
}

function count(line: string, name: string): number {
    return Number(new RegExp(`\\b${name}: (\\d+)`).exec(line)?.[1] ?? 0);
}
