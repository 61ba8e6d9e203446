/** A thing to measure: one run gives some figures. */
export interface Contender<Figures> {
    readonly name: string;
    run(): Promise<Figures>;
}

/** The median of each figure. */
export type Medians<Figures> = { readonly [Name in keyof Figures]: number };

/**
 * Runs the contenders in turn, A B A B, so that a machine that is slow for a minute is slow for all of them, and takes the
 * median of each figure. The first round warms up and does not count.
 */
export async function rounds<Figures extends Readonly<Record<string, number>>>(
    contenders: readonly Contender<Figures>[],
    count: number,
): Promise<readonly Medians<Figures>[]> {
    const runs = contenders.map((): Figures[] => []);
    for (let round = 0; round <= count; round += 1) {
        for (const [index, contender] of contenders.entries()) {
            const figures = await contender.run();
            if (round > 0) {
                runs[index]?.push(figures);
            }
        }
    }

    return runs.map((figures) => medians(figures));
}

export function medians<Figures extends Readonly<Record<string, number>>>(runs: readonly Figures[]): Medians<Figures> {
    const names = Object.keys(runs[0] ?? {});
    return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name] as number))])) as Medians<Figures>;
}

function median(values: readonly number[]): number {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted.length >> 1;
    return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}
