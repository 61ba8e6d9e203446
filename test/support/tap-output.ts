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

/** What the list says of tests of programs that a run installs where it may. */
const NOT_INSTALLED = /^without root or apt\b/;

/**
 * A line for each test that was skipped with why it may be, out of the list of those that may, and whether all may.
 *
 * @param options.installs Whether this run installs the programs of others: then a test is not skipped for want of one.
 */
export function skipsOf(
    skipped: ReadonlySet<string>,
    reasons: Readonly<Record<string, string>>,
    { installs = false }: { readonly installs?: boolean } = {},
): { readonly lines: readonly string[]; readonly allowed: boolean } {
    const known = new Map(Object.entries(reasons));
    const judged = [...skipped].map((name) => {
        const reason = known.get(name);
        if (reason === undefined) {
            return { allowed: false, line: `not ok - ${name}: not in test/allowed-skips.json` };
        }

        const isWrong = installs && NOT_INSTALLED.test(reason);
        return { allowed: !isWrong, line: isWrong ? `not ok - ${name}: ${reason}; here are both` : `ok - ${name}: ${reason}` };
    });
    return { lines: judged.map(({ line }) => line), allowed: judged.every(({ allowed }) => allowed) };
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
