/** What one run has measured, by name. */
export type Figures = Readonly<Record<string, number>>;

export type Run = () => Promise<Figures>;

/**
 * Runs in turn, A B, then B A, so that a machine that is slow for a minute is slow for all, and no run is always the one after
 * another. Gives for each what its rounds have measured, without the first rounds, which `discarded` counts.
 */
export async function interleaved(runs: readonly Run[], count: number, discarded: number): Promise<readonly (readonly Figures[])[]> {
    const measured = runs.map((): Figures[] => []);
    for (let round = 0; round < discarded + count; round += 1) {
        const order = [...runs.keys()];
        for (const index of round % 2 === 0 ? order : order.reverse()) {
            measured[index]?.push(await (runs[index] as Run)());
        }
    }

    return measured.map((figures) => figures.slice(discarded));
}

/**
 * Runs two at the same time on the one core that both are kept to, for figures of CPU time. The clock of a small machine changes
 * from second to second, by a quarter and more: in turn, each run meets another one; like this, both meet the same.
 */
export async function together(pair: readonly [Run, Run], count: number, discarded: number): Promise<readonly (readonly Figures[])[]> {
    const measured: readonly [Figures[], Figures[]] = [[], []];
    for (let round = 0; round < discarded + count; round += 1) {
        const [first, second] = await bothAtOnce(pair);
        measured[0].push(first);
        measured[1].push(second);
    }

    return measured.map((figures) => figures.slice(discarded));
}

/** The one that is ready first goes on with runs that do not count, so that the other has company to its end. */
async function bothAtOnce(pair: readonly [Run, Run]): Promise<readonly [Figures, Figures]> {
    let running = 2;
    const withCompany = async (run: Run): Promise<Figures> => {
        const figures = await run();
        running -= 1;
        while (running > 0) {
            await run();
        }

        return figures;
    };
    return Promise.all([withCompany(pair[0]), withCompany(pair[1])]);
}
