import { type Medians, medians } from './rounds.ts';

/** What one run takes of all its threads together. */
export interface CpuCost {
    readonly cpuSeconds: number;
    readonly [figure: string]: number;
}

export interface Pair<Figures> {
    readonly ours: Medians<Figures>;
    readonly peer: Medians<Figures>;
    /** Median over the rounds: how many times as fast as the peer in the same round. */
    readonly speed: number;
}

/**
 * Runs two contenders at the same time on the one core that both are kept to, and compares the CPU time that they take. The clock
 * of a small machine changes from second to second, by a quarter and more: in turn, each run meets another one; like this,
 * both meet the same. The first round warms up and does not count.
 */
export async function sideBySide<Figures extends CpuCost>(
    ours: () => Promise<Figures>,
    peer: () => Promise<Figures>,
    count: number,
): Promise<Pair<Figures>> {
    const runs: (readonly [Figures, Figures])[] = [];
    for (let round = 0; round <= count; round += 1) {
        const both = await bothAtOnce(ours, peer);
        if (round > 0) {
            runs.push(both);
        }
    }

    const { speed } = medians(runs.map(([our, peers]) => ({ speed: peers.cpuSeconds / our.cpuSeconds })));
    return { ours: medians(runs.map(([our]) => our)), peer: medians(runs.map(([, peers]) => peers)), speed };
}

/** The one that is ready first goes on with runs that do not count, so that the other has company to its end. */
async function bothAtOnce<Figures>(ours: () => Promise<Figures>, peer: () => Promise<Figures>): Promise<readonly [Figures, Figures]> {
    let running = 2;
    const runOf = async (contender: () => Promise<Figures>): Promise<Figures> => {
        const figures = await contender();
        running -= 1;
        while (running > 0) {
            await contender();
        }

        return figures;
    };
    return await Promise.all([runOf(ours), runOf(peer)]);
}
